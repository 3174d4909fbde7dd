"""Templates whose blanks have known numbers of words: the sentence, word by word, with places for the missing ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redraft import text
from redraft.errors import ConstraintError
from redraft.sentence import ENDING, FREE, Constraints, Sentence, Template


def knows_lengths(constraints: Constraints) -> bool:
    """Whether the number of words of every blank is known, from the template or beside it."""
    if constraints.template is None:
        return False
    return constraints.lengths is not None or all(Template.parse(constraints.template).lengths)


def num_missing(constraints: Constraints) -> int:
    """The number of words that are missing in a template whose lengths are known: the steps of a pass."""
    if constraints.template is None or not knows_lengths(constraints):
        raise ConstraintError(
            "a pass over the blanks is as many steps as words are missing: give a template with lengths, or a number "
            "of steps instead of passes"
        )
    return sum(constraints.lengths or filter(None, Template.parse(constraints.template).lengths))


def told(constraints: Constraints) -> Constraints:
    """The constraints with the known lengths in the template, so that they must be kept."""
    if constraints.lengths is None or constraints.template is None:
        return constraints
    template = Template.parse(constraints.template).with_lengths(constraints.lengths)
    return replace(constraints, template=template.written, lengths=None)


@dataclass(frozen=True)
class Layout:
    """The words of a sentence, None where one is missing, and their locks. All gaps are closed.

    If the last word is missing and must be an ending, it is locked as one.
    """

    words: tuple[str | None, ...]
    locks: tuple[int, ...]

    @classmethod
    def of(cls, constraints: Constraints) -> "Layout":
        """The layout of a template all of whose lengths are known."""
        if constraints.template is None:
            raise ValueError("keywords have no layout")
        template = Template.parse(constraints.template)
        blanks = [[(None, FREE)] * (length or 0) for length in template.lengths]
        parts = [[(word, lock) for word in part.words] for lock, part in enumerate(template.parts)]
        in_turn = (blanks, parts) if template.opens_blank else (parts, blanks)
        places: list[tuple[str | None, int]] = []
        for at in range(len(blanks) + len(parts)):
            places += in_turn[at % 2][at // 2]
        if constraints.has_ending:
            places[-1] = (None, ENDING)
        return cls(tuple(word for word, _ in places), tuple(lock for _, lock in places))

    @property
    def missing(self) -> list[int]:
        """The positions of the missing words."""
        return [at for at, word in enumerate(self.words) if word is None]

    @property
    def opening(self) -> int:
        """The position of the word that is capitalised: a missing one, unless only punctuation is given before it."""
        return next((at for at, word in enumerate(self.words) if word is None or text.is_word(word)), 0)

    def follows_given(self, position: int) -> bool:
        """Whether the word before a position is given."""
        return position > 0 and self.words[position - 1] is not None

    def filled(self, words: Sequence[str]) -> Sentence:
        """The sentence with the missing words put in."""
        left = iter(words)
        whole = tuple(next(left) if word is None else word for word in self.words)
        return Sentence(whole, self.locks, (False,) * (len(whole) + 1))
