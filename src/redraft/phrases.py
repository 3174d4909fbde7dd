"""Words, phrases and templates from the user: cleaning, parsing, counting, finding them in a sentence."""

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from redraft import text
from redraft.errors import ConstraintError

_MAX_LOCKED = 1000  # words; far beyond any sentence, and a guard against a file given by mistake
_MAX_LETTERS = 200  # of one word
BLANK = "___"
BLANKS = re.compile(r"_{3,}(?:\{([\d\s,]*)\})?")  # with the number of words that a blank holds: ___{3}
_MOST_IN_BLANK = 1000  # words


def clean(given: str, what: str) -> str:
    """Compose Unicode, so that "é" is one letter however it was typed. Control characters are refused."""
    if bad := next((c for c in given if unicodedata.category(c) in ("Cc", "Cs") and not c.isspace()), None):
        raise ConstraintError(f"{what} contains the control character U+{ord(bad):04X}; remove it")
    return unicodedata.normalize("NFC", given)


def parse_phrase(given: str, what: str) -> tuple[str, ...]:
    """The words of a keyword or a phrase. An empty one, bare punctuation and blanks are refused."""
    words = tuple(text.tokenise(clean(given, what)))
    if not words:
        raise ConstraintError(f"{what} is empty; give a word or a phrase")
    if not any(text.is_word(word) for word in words):
        raise ConstraintError(f"{what} {given!r} is only punctuation; give a word or a phrase")
    if BLANK in given:
        raise ConstraintError(f"{what} {given!r} has a blank; give it as a template instead")
    return words


@dataclass(frozen=True)
class Template:
    """A sentence with blanks: the known parts in order, and whether it begins or ends with a blank.

    ``lengths`` are the numbers of words that the blanks hold, in order; None for any number.
    """

    parts: tuple[tuple[str, ...], ...]
    opens_blank: bool
    closes_blank: bool
    lengths: tuple[int | None, ...]

    @classmethod
    def parse(cls, template: str) -> "Template":
        """A template from text with blanks. Blanks without a word between them are one blank."""
        shown = clean(template, "the template")
        found = list(BLANKS.finditer(shown))
        if not found:
            raise ConstraintError(f"the template has no blank; mark each with {BLANK}")
        edges = [0, *(edge for blank in found for edge in blank.span()), len(shown)]
        pieces = [tuple(text.tokenise(shown[a:b])) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        lengths: list[int | None] = []
        for before, blank in zip(pieces, found, strict=False):
            length = _length(blank)
            if lengths and not before:
                previous = lengths.pop()
                length = None if previous is None or length is None else previous + length
            lengths.append(length)
        return cls(tuple(piece for piece in pieces if piece), not pieces[0], not pieces[-1], tuple(lengths))

    def takes(self, lengths: Sequence[int]) -> bool:
        """Whether there is one number of words for each blank, and none in the template itself."""
        return len(lengths) == len(self.lengths) and not any(self.lengths)

    @property
    def written(self) -> str:
        """The template as text, with the numbers of words that are known."""
        parts = [text.detokenise(part) for part in self.parts]
        blanks = [BLANK if length is None else f"{BLANK}{{{length}}}" for length in self.lengths]
        first, second = (blanks, parts) if self.opens_blank else (parts, blanks)
        return " ".join(one for pair in zip_longest(first, second) for one in pair if one)

    def occurs_in(self, words: Sequence[str]) -> bool:
        """Whether the words are the known parts with blanks filled, each with as many words as it holds."""
        blanks = [(length or 0, len(words) if length is None else length) for length in self.lengths]
        gaps = [*([] if self.opens_blank else [(0, 0)]), *blanks, *([] if self.closes_blank else [(0, 0)])]
        ends = {0}  # where the part before may end
        for (least, most), part in zip(gaps, self.parts, strict=False):
            starts = {start for end in ends for start in range(end + least, min(end + most, len(words)) + 1)}
            ends = {start + len(part) for start in starts if _matches(words, start, part)}
        least, most = gaps[-1]
        return any(least <= len(words) - end <= most for end in ends)


def _length(blank: re.Match[str]) -> int | None:
    """The number of words that a blank holds; None for any number."""
    given = blank[1]
    if given is None:
        return None
    if not given.strip().isdecimal() or not 1 <= int(given) <= _MOST_IN_BLANK:
        raise ConstraintError(
            f"{blank[0]}: the number of words of a blank is one number from 1 to {_MOST_IN_BLANK:,}, as in {BLANK}{{3}}"
        )
    return int(given)


def respelled(given: Iterable[str]) -> list[tuple[str, str]]:
    """What was given without a space but is written with one, because it is several words here: "US$5"."""
    chunks = (chunk for one in given for chunk in clean(one, "").split() if not BLANKS.search(chunk))
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


def lowered(words: Iterable[str]) -> list[str]:
    """The words in lower case."""
    return [word.lower() for word in words]


def contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a phrase occurs in the words. Case matters."""
    return any(tuple(words[i : i + len(phrase)]) == tuple(phrase) for i in range(len(words) - len(phrase) + 1))


def occurs_in_order(parts: Sequence[Sequence[str]], words: Sequence[str]) -> bool:
    """Whether the parts occur one after the other, without overlap."""
    at = 0
    for part in parts:
        places = range(at, len(words) - len(part) + 1)
        at = next((i for i in places if _matches(words, i, part)), -1)
        if at < 0:
            return False
        at += len(part)
    return True


def occurs_in_any_order(parts: Sequence[Sequence[str]], words: Sequence[str]) -> bool:
    """Whether each part occurs, without overlap. The longest part is placed first, in the leftmost free place."""
    taken: set[int] = set()
    for part in sorted(parts, key=len, reverse=True):
        spans = (range(i, i + len(part)) for i in range(len(words) - len(part) + 1) if _matches(words, i, part))
        span = next((s for s in spans if taken.isdisjoint(s)), None)
        if span is None:
            return False
        taken.update(span)
    return True


def _matches(words: Sequence[str], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase occurs at a place. The capital letter that opens a sentence makes no difference."""
    window = words[at : at + len(phrase)]
    if list(window) == list(phrase):
        return True
    return text.opening(words) is not None and list(window) == text.surface([*words[:at], *phrase])[at:]
