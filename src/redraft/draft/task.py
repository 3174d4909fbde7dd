"""What a drafter has to write, and what it wrote."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from redraft.models.base import Words
from redraft.models.causal.prompts import keywords_prompt, pieces_of, template_prompt
from redraft.sentence import Constraints, Order, Sentence
from redraft.stretches import Stretch


class Drafted(NamedTuple):
    """A sentence that meets the constraints, its log-probability given the prompt, and its log importance weight."""

    sentence: Sentence
    log_prob: float
    num_tokens: int
    log_weight: float


@dataclass(frozen=True)
class DraftTask:
    """What has to be written: given parts in their order, with None for each gap between them."""

    constraints: Constraints
    pieces: tuple[Words | None, ...]
    any_order: bool
    fills_blanks: bool  # whether every gap needs a free word

    @classmethod
    def of(cls, constraints: Constraints) -> "DraftTask":
        any_order = constraints.order is Order.ANY and constraints.template is None
        return cls(constraints, tuple(pieces_of(constraints.start())), any_order, constraints.template is not None)

    @classmethod
    def around(cls, constraints: Constraints, sentence: Sentence, stretch: Stretch) -> "DraftTask":
        """All words but those of a stretch are given. A blank of a template must not become empty."""
        words = sentence.words
        pieces = (words[: stretch.start] or None, None, words[stretch.end :] or None)
        fills = constraints.template is not None and stretch.is_whole_gap
        return cls(constraints, tuple(one for i, one in enumerate(pieces) if one or i == 1), False, fills)

    @cached_property
    def parts(self) -> tuple[Words, ...]:
        return tuple(piece for piece in self.pieces if piece is not None)

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
        return keywords_prompt(style, self.parts) if self.any_order else template_prompt(style, self.pieces)

    @property
    def limit(self) -> int:
        """Most words, the ending left out where it is not part of what is given."""
        return self.constraints.limit - (self.constraints.has_ending and self.closes)
