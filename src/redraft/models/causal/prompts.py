"""What the infiller is asked: a line with the given words and blanks, after which it writes the sentence.

    News: ___ victim ___ hospitalized ___ injuries ___      keywords in this order, or a template
    News words: injuries / victim / hospitalized            keywords in any order

The first word is the style. It says which kind of text the sentence should come from.
"""

import itertools
from collections.abc import Iterable, Sequence

from redraft import text
from redraft.models.base import Words
from redraft.sentence import BLANK, ENDING, Sentence

DEFAULT_STYLE = "News"
_SEPARATOR = " / "


def template_prompt(style: str, pieces: Iterable[Words | None]) -> str:
    """The prompt for known parts in their order; None is a blank."""
    written = (BLANK if piece is None else text.detokenise(piece) for piece in pieces)
    return f"{style}: {' '.join(written)}"


def keywords_prompt(style: str, keywords: Iterable[Sequence[str]]) -> str:
    """The prompt for keywords whose order is free."""
    return f"{style} words: {_SEPARATOR.join(map(text.detokenise, keywords))}"


def pieces_of(sentence: Sentence) -> list[Words | None]:
    """The locked words of a sentence in runs, with None for each open gap. An ending belongs to the last gap."""
    pieces: list[Words | None] = []
    for word, lock, is_open in itertools.zip_longest(sentence.words, sentence.locks, sentence.open_gaps):
        if is_open and (not pieces or pieces[-1] is not None):
            pieces.append(None)
        if word is None or lock == ENDING:
            continue
        last = pieces[-1] if pieces else None
        if last is None:
            pieces.append((word,))
        else:
            pieces[-1] = (*last, word)
    return pieces
