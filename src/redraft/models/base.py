"""What a model is to the rest of redraft: something that scores words.

Two roles. A *scorer* gives the log-probability of a sentence; it decides. A *proposer* gives a distribution over its
words at a slot; it suggests. An adapter maps words to its model's own tokens, so a scorer, a proposer and a
classifier with different vocabularies work together.

Both remember what they have read in a ``Reading``, which belongs to one chain. A reading is a value: an adapter makes
a new one from an old one and keeps what both sentences share. So nothing depends on who else is in the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.numerics import Array

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place that can be filled: the filling comes instead of ``words[start:end]``, a gap where they are equal."""

    words: Words
    start: int
    end: int

    @property
    def before(self) -> Words:
        return self.words[: self.start]

    @property
    def after(self) -> Words:
        return self.words[self.end :]

    @property
    def opens_sentence(self) -> bool:
        """Whether the first word of a filling is capitalised: only punctuation stands before the slot."""
        return text.opening(self.before) is None

    def fill(self, filling: Words) -> Words:
        """The sentence with words in the slot, or with none."""
        return self.before + filling + self.after


class Pace(NamedTuple):
    """How fast sentences are scored while some of them may turn out not to matter."""

    leaders: int  # of so many that still matter, one is scored to its end
    stride: int  # tokens of each of the others, 0 for none


class Reader(Protocol):
    """Reads sentences and remembers what it computed."""

    def read(self, sentences: Sequence[Words], old: Sequence[Any]) -> list[Any]:
        """Readings of whole sentences; ``old`` are earlier readings to start from, or None."""


class Scorer(Reader, Protocol):
    """Scores sentences. Log-probabilities are natural logarithms and include the end of the sentence."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str:
        """What it computes in: float32, bfloat16."""

    def log_prob(self, reading: Any) -> float:
        """Log-probability of a sentence that was read."""

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Any]
    ) -> list[Array]:
        """For each slot, the log-probabilities of the sentences in which its fillings stand in it."""


class Proposer(Reader, Protocol):
    """Suggests words for a slot."""

    @property
    def words(self) -> Sequence[str]:
        """The words that can be suggested; a distribution's columns."""

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which of them may be suggested at all (never a special symbol)."""

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Any]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word standing in each slot."""
