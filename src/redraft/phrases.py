"""Words, phrases and templates from the user: cleaning, parsing, counting, finding them in a sentence."""

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from redraft import text
from redraft.errors import ConstraintError
from redraft.parts import Part

_MAX_LOCKED = 1000  # words; far beyond any sentence, and a guard against a file given by mistake
_MAX_LETTERS = 200  # of one word
# Zero-width spaces, soft hyphens, fillers and marks of direction, which come along with copied text. The zero-width
# joiners U+200C and U+200D are not among them: Persian, Hindi and emoji need them.
_INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u2800\u3164\ufeff\uffa0"
)
BLANK = "___"
BLANKS = re.compile(r"_{3,}(?:\{([\d\s,]*)\})?")  # with the number of words that a blank holds: ___{3} ___{2,4}
_MOST_IN_BLANK = 1000  # words


def clean(given: str, what: str) -> str:
    """Compose Unicode, so that "é" is one letter however it was typed. Control and invisible characters are refused."""
    kinds = {c: unicodedata.category(c) for c in given}
    if byte := next((c for c, kind in kinds.items() if kind == "Cs"), None):
        raise ConstraintError(f"{what} is not UTF-8 text (U+{ord(byte):04X}); in a terminal, set LC_ALL=C.UTF-8")
    if bad := next((c for c, kind in kinds.items() if kind == "Cc" and not c.isspace()), None):
        raise ConstraintError(f"{what} contains the control character U+{ord(bad):04X}; remove it")
    if bad := next((c for c in kinds if c in _INVISIBLE), None):
        raise ConstraintError(f"{what} contains the invisible character U+{ord(bad):04X}; remove it")
    return unicodedata.normalize("NFC", given)


def parse_keyword(given: str, what: str) -> Part:
    """A keyword or a phrase. An empty one, bare punctuation and blanks are refused."""
    part = Part.of(clean(given, what), what)
    if not part.words:
        raise ConstraintError(f"{what} is empty; give a word or a phrase")
    if not all(any(map(_is_visible_word, words)) for words in part.realisations):
        raise ConstraintError(f"{what} {given!r} is only punctuation; give a word or a phrase")
    if BLANK in given:
        raise ConstraintError(f"{what} {given!r} has a blank; give it as a template instead")
    return part


def _is_visible_word(word: str) -> bool:
    return text.is_word(word) and not all(unicodedata.category(c) in ("Cf", "Mn", "Me") for c in word)


class NumWords(NamedTuple):
    """The numbers of words that a blank may hold; ``most`` is None without a limit."""

    least: int = 0
    most: int | None = None

    @property
    def exact(self) -> int | None:
        """The number of words, if only one is allowed."""
        return self.most if self.least == self.most else None

    @property
    def written(self) -> str:
        """The blank in a template."""
        if self.most is None:
            return BLANK
        return f"{BLANK}{{{self.most}}}" if self.least == self.most else f"{BLANK}{{{self.least},{self.most}}}"

    def plus(self, other: "NumWords") -> "NumWords":
        """The numbers for two blanks together."""
        if self.most is None or other.most is None:
            return NumWords()
        return NumWords(self.least + other.least, self.most + other.most)


@dataclass(frozen=True)
class Template:
    """A sentence with blanks: the known parts in order, and whether it begins or ends with a blank.

    ``blanks`` are the numbers of words that the blanks may hold, in order.
    """

    parts: tuple[Part, ...]
    opens_blank: bool
    closes_blank: bool
    blanks: tuple[NumWords, ...]

    @classmethod
    def parse(cls, template: str) -> "Template":
        """A template from text with blanks. Blanks without a word between them are one blank."""
        shown = clean(template, "the template")
        found = list(BLANKS.finditer(shown))
        if not found:
            raise ConstraintError(f"the template has no blank; mark each with {BLANK}")
        edges = [0, *(edge for blank in found for edge in blank.span()), len(shown)]
        pieces = [_known_part(shown[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        blanks: list[NumWords] = []
        for before, blank in zip(pieces, found, strict=False):
            if shown[blank.end() :].startswith("{"):
                raise ConstraintError(f"{_shown_brace(shown, blank)}: {_HOW_MANY}")
            num = _num_words(blank)
            blanks.append(blanks.pop().plus(num) if blanks and before is None else num)
        known = tuple(piece for piece in pieces if piece is not None)
        return cls(known, pieces[0] is None, pieces[-1] is None, tuple(blanks))

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """The number of words of each blank where only one is allowed; None elsewhere."""
        return tuple(blank.exact for blank in self.blanks)

    def with_lengths(self, lengths: Sequence[int]) -> "Template":
        """The template with a number of words for each blank."""
        return replace(self, blanks=tuple(NumWords(length, length) for length in lengths))

    def takes(self, lengths: Sequence[int]) -> bool:
        """Whether there is one number of words for each blank, and none in the template itself."""
        return len(lengths) == len(self.blanks) and all(blank == NumWords() for blank in self.blanks)

    @property
    def written(self) -> str:
        """The template as text, with the numbers of words that are known."""
        parts, blanks = [part.written for part in self.parts], [blank.written for blank in self.blanks]
        first, second = (blanks, parts) if self.opens_blank else (parts, blanks)
        return " ".join(one for pair in zip_longest(first, second) for one in pair if one)

    def occurs_in(self, words: Sequence[str], fewest: int = 0) -> bool:
        """Whether the words are the known parts with blanks filled, each with as many words as it may hold.

        Each blank holds at least the ``fewest`` words.
        """
        blanks = [(max(num.least, fewest), len(words) if num.most is None else num.most) for num in self.blanks]
        gaps = [*([] if self.opens_blank else [(0, 0)]), *blanks, *([] if self.closes_blank else [(0, 0)])]
        ends = {0}  # where the part before may end
        for (least, most), part in zip(gaps, self.parts, strict=False):
            starts = {start for end in ends for start in range(end + least, min(end + most, len(words)) + 1)}
            ends = {start + len(one) for start in starts for one in part.realisations if _matches(words, start, one)}
        least, most = gaps[-1]
        return any(least <= len(words) - end <= most for end in ends)


_HOW_MANY = f"the number of words of a blank is from 1 to {_MOST_IN_BLANK:,}, as in {BLANK}{{3}} or {BLANK}{{2,4}}"


def _known_part(given: str) -> Part | None:
    """A part of a template between blanks; None where there is none."""
    if not given.strip():
        return None
    part = Part.of(given.strip(), "the template, in")
    if part.is_optional:
        raise ConstraintError(f"the template: {given.strip()!r} stands alone, so it cannot be optional; leave ? out")
    return part


def _shown_brace(template: str, blank: re.Match[str]) -> str:
    return f"{template[blank.start() :].split()[0]}, character {blank.end() + 1} of the template"


def _num_words(blank: re.Match[str]) -> NumWords:
    """The numbers of words that a blank may hold."""
    if blank[1] is None:
        return NumWords()
    given = [one.strip() for one in blank[1].split(",")]
    numbers = [int(one) for one in given if one.isdecimal() and 1 <= int(one) <= _MOST_IN_BLANK]
    if len(numbers) != len(given) or len(numbers) > 2 or numbers != sorted(numbers):
        raise ConstraintError(f"{blank[0]}: {_HOW_MANY}")
    return NumWords(numbers[0], numbers[-1])


def respelled(chunks: Iterable[str]) -> list[tuple[str, str]]:
    """What was given without a space but is written with one, because it is several words here: "US$5"."""
    written = [(chunk, text.detokenise(text.tokenise(chunk))) for chunk in chunks]
    return [(chunk, shown) for chunk, shown in written if " " in shown]


class Order(enum.Enum):
    """Whether keywords must occur in the given order or may occur in any order.

    Examples:
        >>> words = redraft.Constraints(["dog", "ball"], order=redraft.Order.ANY)
        >>> words == redraft.Constraints(["dog", "ball"], order="any")
        True
        >>> words.met_by(["The", "ball", "hit", "the", "dog", "."])
        True
    """

    GIVEN = "given"
    ANY = "any"

    @classmethod
    def of(cls, given: object) -> "Order":
        """Convert a name to an order; an order stays as it is.

        Examples:
            >>> redraft.Order.of("any")
            <Order.ANY: 'any'>
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, str) or given not in [order.value for order in cls]:
            raise ConstraintError(f"order must be 'given' or 'any', not {given!r}")
        return cls(given)


def check_size(words: Sequence[str]) -> None:
    """Refuse given words that cannot be meant for one sentence."""
    if len(words) > _MAX_LOCKED:
        raise ConstraintError(f"{len(words):,} given words are too many for one sentence (at most {_MAX_LOCKED:,})")
    if long := next((word for word in words if len(word) > _MAX_LETTERS), None):
        raise ConstraintError(f"{long[:20]}... has {len(long):,} letters; a word has at most {_MAX_LETTERS}")


def check_ending(ending: str) -> None:
    """Refuse an ending that is not one word or one punctuation mark."""
    if list(text.tokenise(clean(ending, "an ending"))) != [ending]:
        raise ConstraintError(f"the ending {ending!r} is not one word or punctuation mark; give them separately")


def num_words(words: Iterable[str]) -> int:
    """The number of words as people count them: without punctuation and clitics ('s, 't)."""
    return sum(text.is_word(word) and not text.is_clitic(word) for word in words)


def is_listed(word: str, listed: frozenset[str]) -> bool:
    """Whether a word may be used where only listed words may; punctuation and clitics may always."""
    return word.lower() in listed or not text.is_word(word) or text.is_clitic(word)


@lru_cache(maxsize=8)
def listed_words(allowed: tuple[str, ...]) -> frozenset[str]:
    """The words that a list allows, in lower case. All inputs of a file have the same list."""
    parts = (Part.of(clean(one, "an allowed word"), f"allowed word {i}") for i, one in enumerate(allowed, 1))
    return frozenset(word.lower() for part in parts for words in part.realisations for word in words)


def lowered(words: Iterable[str]) -> list[str]:
    """The words in lower case."""
    return [word.lower() for word in words]


def contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a phrase occurs in the words. Case matters."""
    return any(tuple(words[i : i + len(phrase)]) == tuple(phrase) for i in range(len(words) - len(phrase) + 1))


def occurs_in_order(parts: Iterable[Part], words: Sequence[str]) -> bool:
    """Whether the required parts occur one after the other, without overlap."""
    at = 0
    for part in parts:
        if not part.is_optional:
            ends = (end for start, end in occurrences(part, words) if start >= at)
            if (first := min(ends, default=None)) is None:
                return False
            at = first
    return True


def occurs_in_any_order(parts: Iterable[Part], words: Sequence[str]) -> bool:
    """Whether each required part occurs, without overlap. The longest part is placed first."""
    required = sorted((part for part in parts if not part.is_optional), key=lambda part: -len(part.words))
    found = [occurrences(part, words) for part in required]

    def can_place(number: int, taken: frozenset[int], after: int) -> bool:
        """Whether the parts from a number on can be placed; ``after`` orders equal parts, which spares tries."""
        if number == len(required):
            return True
        is_repeated = number > 0 and required[number] == required[number - 1]
        for start, end in found[number]:
            place = frozenset(range(start, end))
            if (not is_repeated or start >= after) and not place & taken and can_place(number + 1, taken | place, end):
                return True
        return False

    return all(found) and can_place(0, frozenset(), 0)


def occurrences(part: Part, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where a part begins and ends in the words, whatever its realisation."""
    return sorted(
        (start, start + len(one))
        for one in part.realisations
        for start in range(len(words) - len(one) + 1)
        if _matches(words, start, one)
    )


def _matches(words: Sequence[str], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase occurs at a place. The capital letter that opens a sentence makes no difference."""
    window = words[at : at + len(phrase)]
    if list(window) == list(phrase):
        return True
    return text.opening(words) is not None and list(window) == text.surface([*words[:at], *phrase])[at:]
