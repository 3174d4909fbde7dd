"""The interfaces of models. A model is anything that scores words.

A *scorer* gives the log-probability of a sentence; it decides what is accepted. A *proposer* gives a distribution over
words for a slot; it suggests candidates. Each model maps words to its own tokens. So a scorer, a proposer and a
classifier with different vocabularies work together.

A *reading* is what a model has computed for a sentence: hidden states, cached keys and values, log-probabilities.
Readings are values: a model makes a new reading from an old one and reuses what both sentences share. So results do not
depend on the other chains of a batch. Each kind of model has its own type of reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.numerics import Array

Words = tuple[str, ...]
ReadingT = TypeVar("ReadingT")


@dataclass(frozen=True, slots=True)
class Slot:
    """A span of a sentence to be filled: ``words[start:end]``. If start equals end, it is the gap before that word."""

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
        """Whether the first word of a filling is capitalised: there is only punctuation before the slot."""
        return text.opening(self.before) is None

    def fill(self, filling: Words) -> Words:
        """The sentence with a filling, which may be empty, in the slot."""
        return self.before + filling + self.after


class Pace(NamedTuple):
    """How much partial scoring computes per round, before it checks again which sentences still matter.

    The likeliest of the sentences that still matter, one in ``leaders`` of them, are scored completely. The others are
    scored ``stride`` tokens further; with a stride of 0 they wait. So ``Pace(leaders=4, stride=3)`` completes the
    likeliest quarter in each round and reads three more tokens of the rest.
    """

    leaders: int
    stride: int


class ReaderOf(Protocol[ReadingT]):
    """Reads sentences and returns what it computed for each."""

    def read(self, sentences: Sequence[Words], old: Sequence[ReadingT | None]) -> list[ReadingT]:
        """Read whole sentences. ``old`` has, for each, an earlier reading to start from, or None."""


class ScorerOf(ReaderOf[ReadingT], Protocol[ReadingT]):
    """Scores sentences. Log-probabilities are natural logarithms and include the end of the sentence."""

    @property
    def name(self) -> str: ...

    @property
    def precision(self) -> str:
        """The precision that it computes in: float32 or bfloat16."""

    def log_prob(self, reading: ReadingT) -> float:
        """Log-probability of the sentence of a reading."""

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[ReadingT]
    ) -> list[Array]:
        """For each slot, the log-probabilities of the sentences with each of its fillings."""


class ProposerOf(ReaderOf[ReadingT], Protocol[ReadingT]):
    """Suggests words for a slot."""

    @property
    def words(self) -> Sequence[str]:
        """The words that the columns of a distribution stand for."""

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which words may be suggested. Special symbols may not."""

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[ReadingT]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word in each slot."""


# A sampler stores readings of several kinds side by side, as objects that it never looks into, and passes each back to
# the model that made it. There, the type of a model's readings is left open.
Reader = ReaderOf[Any]
Scorer = ScorerOf[Any]
Proposer = ProposerOf[Any]
