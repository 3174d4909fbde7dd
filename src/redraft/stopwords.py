"""Content words and function words."""

import re

from redraft import text

_LIST = """
a an the this that these those such same other another each every either neither both all any some no none few
many much more most less least several own only
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves one ones oneself who whom whose which what whoever
whatever whichever someone somebody something anyone anybody anything everyone everybody everything nobody nothing
be am is are was were been being have has had having do does did doing done will would shall should can could may
might must ought need get gets got cannot ca wo ai don doesn didn isn aren wasn weren hasn haven hadn won wouldn
couldn shouldn mustn
and or but nor so yet if then else than as because since while until unless although though whether whereas
of to in on at by for with from into onto upon about above below over under between among through during before
after against across along around behind beside besides beyond despite down except inside outside near off out
per since toward towards up via within without like
not never also too very just even still again once here there where when why how ever now rather quite almost
already however therefore thus hence perhaps maybe indeed instead
say says said
mr mrs ms dr
"""
_STOP_WORDS = frozenset(_LIST.split())
_LETTERS = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")


def is_content(word: str) -> bool:
    """Whether a word is made of letters and is neither a function word nor a clitic."""
    return bool(_LETTERS.fullmatch(word)) and not text.is_clitic(word) and word.lower() not in _STOP_WORDS
