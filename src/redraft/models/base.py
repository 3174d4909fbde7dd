"""The interfaces of models. A model is anything that scores words.

A *scorer* gives the log-probability of a sentence; it decides what is accepted. A *proposer* gives a distribution over
words for a slot; it suggests candidates. Each model maps words to its own tokens. So a scorer, a proposer and a
classifier with different vocabularies work together.

A *reading* holds what a model has computed for a sentence of one chain. Readings are values: a model makes a new
reading from an old one and reuses what both sentences share. So results do not depend on the other chains of a batch.
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
    """A place in a sentence. A filling replaces ``words[start:end]``; if start equals end, the slot is a gap."""

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
        """The sentence with a filling, which may be empty, in the slot."""
        return self.before + filling + self.after


class Pace(NamedTuple):
    """How a round of partial scoring divides its work.

    In each round, one of ``leaders`` undecided sentences, the likeliest first, is scored to its end. The others advance
    by ``stride`` tokens.
    """

    leaders: int
    stride: int


class Reader(Protocol):
    """Reads sentences and keeps what it computed."""

    def read(self, sentences: Sequence[Words], old: Sequence[Any]) -> list[Any]:
        """Read whole sentences. ``old`` holds an earlier reading to start from, or None, for each."""


class Scorer(Reader, Protocol):
    """Scores sentences. Log-probabilities are natural logarithms and include the end of the sentence."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str:
        """The precision it computes in: float32 or bfloat16."""

    def log_prob(self, reading: Any) -> float:
        """Log-probability of the sentence of a reading."""

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Any]
    ) -> list[Array]:
        """For each slot, the log-probabilities of the sentences with each of its fillings."""


class Proposer(Reader, Protocol):
    """Suggests words for a slot."""

    @property
    def words(self) -> Sequence[str]:
        """The columns of a distribution."""

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which words may be suggested. Special symbols may not."""

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Any]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word in each slot."""
