"""Words, phrases and templates from the user: cleaning, parsing, counting, finding them in a sentence."""

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redraft import text
from redraft.errors import ConstraintError

_MAX_LOCKED = 1000  # words; far beyond any sentence, and a guard against a file given by mistake
_MAX_LETTERS = 200  # of one word
BLANK = "___"
BLANKS = re.compile(r"_{3,}")


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
    """A sentence with blanks: the known parts in order, and whether it begins or ends with a blank."""

    parts: tuple[tuple[str, ...], ...]
    opens_blank: bool
    closes_blank: bool

    @classmethod
    def parse(cls, template: str) -> "Template":
        """A template from text with blanks."""
        pieces = [tuple(text.tokenise(piece)) for piece in BLANKS.split(clean(template, "the template"))]
        if len(pieces) == 1:
            raise ConstraintError(f"the template has no blank; mark each with {BLANK}")
        return cls(tuple(piece for piece in pieces if piece), not pieces[0], not pieces[-1])

    def occurs_in(self, words: Sequence[str]) -> bool:
        """Whether the known parts occur in order, those without a blank before or after them at the very ends."""
        return occurs_in_order(self.parts, words, is_begin=not self.opens_blank, is_end=not self.closes_blank)


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


def occurs_in_order(
    parts: Sequence[Sequence[str]], words: Sequence[str], *, is_begin: bool = False, is_end: bool = False
) -> bool:
    """Whether the parts occur one after another, without overlap.

    With ``is_begin`` the first part must begin the sentence, with ``is_end`` the last one must end it.
    """
    at = 0
    for number, part in enumerate(parts):
        last = len(words) - len(part)
        places = range(at, last + 1)
        if is_begin and number == 0:
            places = range(0, 1)
        if is_end and number == len(parts) - 1:
            places = range(last, last + 1) if last in places else range(0)
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
