"""Words and natural text: tokenise, detokenise, render.

A sentence inside redraft is a sequence of words with punctuation apart (``the doctor 's view ,``). This module is
the only place that knows how people write such words (``the doctor's view,``).

Two laws hold for every text (tests/test_text.py):

* ``"".join(tokenise(text))`` is the text without its white space: nothing is lost or changed;
* ``tokenise(detokenise(words)) == words`` for all words that ``tokenise`` can give.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

# Everything that may be inside a word. The negative form keeps combining marks, emoji joiners and every script's
# letters together, which \w does not. U+02BC is how some newspapers write the apostrophe.
_PUNCTUATION = r"""!-/:-@\[-^`{-~\u00a1\u00ab\u00bb\u00bf\u02bc\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011"""
_LETTER = rf"[^\s{_PUNCTUATION}]"
_APOSTROPHE = "['\u2019\u02bc]"
_CLITIC = rf"{_APOSTROPHE}(?:s|t|re|ve|ll|m|d)(?!{_LETTER})"
# What joins two parts of a word: o'clock, two-thirds, AT&T, key=value, Ke$ha ("US$5" are two), http://a.b
_JOINT = rf"(?:(?!{_CLITIC}){_APOSTROPHE}|[-./,:&@+=\u2010\u2011]|\$(?=[A-Za-z])|://)"
_ABBREVIATIONS = (
    "Mr Mrs Ms Dr St Lt Col Gen Maj Sgt Capt Cpl Pvt Adm Gov Sen Sens Rep Reps Rev Hon Prof Pres "
    "Jr Sr Inc Corp Ltd Co Bros No Nos vs v etc al ca cf Jan Feb Aug Sept Oct Nov Dec Ave Blvd Rd Mt Ft"
)

_TOKEN = re.compile(
    rf"""
      \.{{2,}} | -{{2,}}                                         # ... and --
    | (?:{"|".join(_ABBREVIATIONS.split())})\.(?!{_LETTER})      # Mr.
    | (?:[A-Za-z]\.){{2,}}(?!{_LETTER})                          # U.S. and a.m.
    | [A-HJ-Z]\.(?!{_LETTER})                                    # an initial; "I." ends a sentence
    | {_CLITIC}                                                  # 's 't 'll
    | (?:@(?={_LETTER})|(?<!\S)(?:-(?=\d)|\.(?=[A-Z]{{2}})))?     # @name, -5, .NET
      {_LETTER}+(?:{_JOINT}(?={_LETTER}){_LETTER}+)*
      (?:(?:\+{{1,2}}|\#)(?!{_LETTER}))?                          # C++ and C#
    | \S
    """,
    re.VERBOSE,
)
_HAS_LETTER = re.compile(rf"{_LETTER}")
_LETTERS_ONLY_COMMA = re.compile(rf"[^\W\d_]{_LETTER}*[,:]{_LETTER}")

_NO_SPACE_BEFORE = frozenset(
    [",", ".", ";", ":", "!", "?", "%", ")", "]", "}", "...", "..", "....", "”", "’", "»", "…"]
)
_NO_SPACE_AFTER = frozenset(["(", "[", "{", "$", "£", "€", "¥", "#", "“", "‘", "«", "¡", "¿"])
_NOT_PLURAL = frozenset("is was has does says this thus as its his us yes always perhaps".split())
_IS_CLITIC = re.compile(rf"{_CLITIC}$", re.IGNORECASE)


@lru_cache(maxsize=1 << 18)
def _tokenise_chunk(chunk: str) -> tuple[str, ...]:
    """Split the text between two spaces."""
    return tuple(part for token in _TOKEN.findall(chunk) for part in _split_run_on(token))


def _split_run_on(token: str) -> tuple[str, ...]:
    # "2,900" and "12:15" are one word, "said,then" is three.
    if not _LETTERS_ONLY_COMMA.search(token):
        return (token,)
    return tuple(re.findall(r"[,:]|[^,:]+", token))


def tokenise(text: str) -> list[str]:
    """Split natural text into words. Punctuation and clitics ('s, 't, 'll) are words of their own."""
    return [word for chunk in text.split() for word in _tokenise_chunk(chunk)]


@lru_cache(maxsize=1 << 16)
def is_word(token: str) -> bool:
    """Whether a token is more than punctuation: it has a letter, a digit or a symbol of some script."""
    return _HAS_LETTER.search(token) is not None


def is_clitic(token: str) -> bool:
    """Whether a token attaches to the word before it: 's, 't, 'll."""
    return _IS_CLITIC.match(token) is not None


def is_negation(token: str) -> bool:
    """Whether a token turns the word before it into another one: won't."""
    return token.lower() in ("'t", "\u2019t", "\u02bct")


class _Spacing:
    """Decides, from left to right, whether a word follows the one before it without a space."""

    def __init__(self, words: Sequence[str]) -> None:
        self._num_single = words.count("'")  # that are still to come
        self._open: set[str] = set()  # the straight quotes that are open
        self._glue_next = False

    def glue(self, previous: str | None, word: str) -> bool:
        glued, self._glue_next = self._glue_next, word in _NO_SPACE_AFTER
        if previous is None:
            return False
        is_possessive = word == "'" and self._is_possessive(previous)
        self._num_single -= word == "'"
        if word in ('"', "'") and not is_possessive:
            if word in self._open:
                self._open.remove(word)
                return True
            self._open.add(word)
            self._glue_next = True
            return glued
        return glued or word == "'" or word in _NO_SPACE_BEFORE or is_clitic(word)

    def start(self, word: str) -> None:
        self._glue_next = word in _NO_SPACE_AFTER or word in "\"'"
        if word in ('"', "'"):
            self._open.add(word)
            self._num_single -= word == "'"

    def _is_possessive(self, previous: str) -> bool:
        """Whether a quote ends "workers'". After "was" or "says" it opens, if another one is there to close."""
        if "'" in self._open or not previous.endswith(("s", "S")):
            return False
        return previous.lower() not in _NOT_PLURAL or self._num_single == 1


def detokenise(words: Sequence[str]) -> str:
    """Write words as people do, with spaces only where they belong. No letter is changed."""
    if not words:
        return ""
    spacing = _Spacing(words)
    spacing.start(words[0])
    chunks: list[list[str]] = [[words[0]]]
    for previous, word in itertools.pairwise(words):
        glued = spacing.glue(previous, word)
        # A space is left out only if tokenising the text gives the same words again.
        if glued and list(_tokenise_chunk("".join([*chunks[-1], word]))) == [*chunks[-1], word]:
            chunks[-1].append(word)
        else:
            chunks.append([word])
    return " ".join("".join(chunk) for chunk in chunks)


def spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each word in the detokenised text."""
    shown, at, found = detokenise(words), 0, []
    for word in words:
        at += shown[at:].startswith(" ")
        found.append((at, at + len(word)))
        at += len(word)
    return found


def capitalise(word: str) -> str:
    """The word at the start of a sentence: its first letter is capitalised, that of ``iPhone`` too."""
    return word[:1].upper() + word[1:] if len(word[:1].upper()) == 1 else word


def opening(words: Iterable[str]) -> int | None:
    """Index of the word that is capitalised in a sentence: the first that is more than punctuation."""
    return next((i for i, word in enumerate(words) if is_word(word)), None)


def surface(words: Sequence[str]) -> list[str]:
    """The words as a reader sees them: the first word capitalised. Models score these."""
    shown = list(words)
    first = opening(words)
    if first is not None:
        shown[first] = capitalise(shown[first])
    return shown


def render(words: Sequence[str]) -> str:
    """The natural text of a sentence. A final full stop is left out after a word that ends in one, or in "!" or "?"."""
    shown = surface(words)
    is_stopped = shown[-1:] == ["."] and "".join(shown[-2:-1]).endswith((".", "!", "?", "…"))
    return detokenise(shown[:-1] if is_stopped else shown)
