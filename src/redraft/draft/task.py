"""What a drafter has to write, and what it wrote."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from redraft.models.base import Words
from redraft.models.causal.prompts import keywords_prompt, pieces_of, template_prompt
from redraft.phrases import NumWords
from redraft.sentence import Constraints, Order, Part, Sentence
from redraft.stretches import Stretch


class Drafted(NamedTuple):
    """A sentence that meets the constraints, its log-probability given the prompt, and its log importance weight."""

    sentence: Sentence
    log_prob: float
    num_tokens: int
    log_weight: float


@dataclass(frozen=True)
class DraftTask:
    """What has to be written: given parts in their order, with None for each gap between them.

    ``pieces`` have the first realisation of each part; this is what the model is asked for.
    """

    constraints: Constraints
    pieces: tuple[Words | None, ...]
    parts: tuple[Part, ...]
    any_order: bool
    fills_blanks: bool  # whether every gap needs a free word
    room: tuple[NumWords, ...]  # of each gap: before each part, and after the last

    @classmethod
    def of(cls, constraints: Constraints) -> "DraftTask":
        any_order = constraints.order is Order.ANY and constraints.template is None
        outline = constraints.outline()
        return cls(
            constraints,
            tuple(pieces_of(outline)),
            constraints.parts,
            any_order,
            constraints.template is not None,
            constraints.room,
        )

    @classmethod
    def around(cls, constraints: Constraints, sentence: Sentence, stretch: Stretch) -> "DraftTask":
        """All words but those of a stretch are given. A blank of a template must not become empty."""
        words = sentence.words
        pieces = (words[: stretch.start] or None, None, words[stretch.end :] or None)
        fills = constraints.template is not None and stretch.is_whole_gap
        parts = tuple(Part("", (piece,)) for piece in pieces if piece)
        shown = tuple(one for i, one in enumerate(pieces) if one or i == 1)
        room = tuple(NumWords(0, None if i == 1 else 0) for i, one in enumerate(pieces) if one or i == 1)
        return cls(constraints, shown, parts, False, fills, room)

    @cached_property
    def realisations(self) -> tuple[Words, ...]:
        """The realisations of all parts that a reader tells apart."""
        return tuple(itertools.chain.from_iterable(part.distinct for part in self.parts))

    @cached_property
    def part_of(self) -> tuple[int, ...]:
        """The part of each realisation."""
        return tuple(number for number, part in enumerate(self.parts) for _ in part.distinct)

    @property
    def has_forms(self) -> bool:
        """Whether a part may be written in several ways or left out."""
        return not all(part.is_plain for part in self.parts)

    @property
    def begins_given(self) -> bool:
        """Whether all sentences begin with the same given words."""
        return not self.opens and self.parts[0].is_plain

    @property
    def opens(self) -> bool:
        """Whether free words may come before the first part."""
        return self.pieces[0] is None

    @property
    def closes(self) -> bool:
        """Whether free words may come after the last part."""
        return self.pieces[-1] is None

    def is_closed_by(self, part: int | None) -> bool:
        """Whether a sentence must end after a part."""
        return part == len(self.parts) - 1 and not self.closes and not self.any_order

    def prompt(self, style: str) -> str:
        return (
            keywords_prompt(style, [part.words for part in self.parts])
            if self.any_order
            else template_prompt(style, self.pieces)
        )

    @property
    def limit(self) -> int:
        """Most words, the ending left out where it is not part of what is given."""
        return self.constraints.limit - (self.constraints.has_ending and self.closes)
