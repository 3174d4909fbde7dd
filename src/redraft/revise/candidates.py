"""Which words are candidates for a slot: the top K of one proposer, or of the product of several (FLM x BLM).

To add a generator of candidates, implement ``CandidateSource`` and name it with ``assemble.register_generator``.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.errors import PackError
from redraft.models.base import Proposer, Reader, Scorer, Slot
from redraft.numerics import Array, draw, log_normalise
from redraft.phrases import is_listed
from redraft.sentence import ENDING, FREE, Action, Constraints, Sentence

_MASKS = 64  # sets of banned words whose masks are kept


def slot_of(sentence: Sentence, action: Action, position: int) -> Slot:
    """The slot of a move: the place of a word, the gap before it, or the span that is swapped."""
    return Slot(sentence.words, *sentence.span(action, position))


@dataclass(frozen=True)
class Candidates:
    """Words for one slot, likeliest first, and the wide distribution over all words that may ever fill it.

    Both depend on what is around the slot, not on the word in it.
    """

    words: tuple[str, ...]
    log_dist: NDArray[np.floating]  # one column for each of ``columns``
    columns: dict[str, int]

    @cached_property
    def log_wide(self) -> Array:
        """Normalised. Computed on demand: only the exact kernels use it."""
        return log_normalise(self.log_dist.astype(np.float64))

    def log_wide_of(self, word: str) -> float:
        at = self.columns.get(word)
        return -np.inf if at is None else float(self.log_wide[at])

    def draw_wide(self, rng: np.random.Generator) -> str:
        at = draw(self.log_wide, rng)
        return next(itertools.islice(self.columns, at, None))  # no copy of the whole vocabulary at every step


@dataclass(frozen=True)
class ScoredCandidates(Candidates):
    """Candidates after the first of two stages: a cheap model has scored their sentences."""

    log_cheap: Array  # log-probability of the sentence with each word in the slot
    log_cheap_empty: float  # and of the sentence with nothing in the slot


CandidatesT = TypeVar("CandidatesT", bound=Candidates, covariant=True)


class CandidateSource(Protocol[CandidatesT]):
    """Where candidates come from. ``readers`` are the models whose readings it needs."""

    @property
    def readers(self) -> Sequence[Reader]: ...

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> Sequence[CandidatesT]:
        """Candidates for each slot. ``readings[i]`` are those of reader i, one for each sentence."""


class CandidateGenerator:
    """The K likeliest words of a slot under the product of the proposers' distributions (not divided by p(word))."""

    def __init__(self, proposers: Sequence[Proposer], num: int):
        if len({tuple(proposer.words) for proposer in proposers}) != 1:
            raise PackError(
                "the models of the pack do not share their words, so their distributions cannot be multiplied; "
                "choose --generator forward"
            )
        self.readers = tuple(proposers)
        self.num = num
        self._words = tuple(proposers[0].words)
        self._columns = {word: column for column, word in enumerate(self._words)}
        self._proposable = np.logical_and.reduce([proposer.proposable for proposer in proposers])
        self._mask = lru_cache(_MASKS)(self._make_mask)
        self._negation = np.array([text.is_negation(word) for word in self._words])

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> list[Candidates]:
        log_dist = np.asarray(sum(p.log_dist(slots, read) for p, read in zip(self.readers, readings, strict=True)))
        return [self._choose(*arguments) for arguments in zip(sentences, slots, constraints, log_dist, strict=True)]

    def _choose(
        self, sentence: Sentence, slot: Slot, constraints: Constraints, log_dist: NDArray[np.float32]
    ) -> Candidates:
        if slot.end > slot.start and sentence.locks[slot.start] == ENDING:
            return _endings(constraints)
        allowed = self._mask(constraints.banned_words, constraints.listed_words)
        if slot.start > 0 and sentence.locks[slot.start - 1] != FREE:
            allowed = allowed & ~self._negation  # "won" followed by "'t" would be another word
        log_dist = np.where(allowed, log_dist, -np.inf)
        num = min(self.num, len(log_dist) - 1)
        top = np.argpartition(-log_dist, num)[:num]
        top = top[np.lexsort((top, -log_dist[top]))]  # ties by rank, so that the order is the same everywhere
        words = (self._words[i] for i in top if np.isfinite(log_dist[i]))
        kept = tuple(word for word in words if constraints.has_no_banned_phrase(slot.fill((word,))))
        return Candidates(kept, log_dist, self._columns)

    def _make_mask(self, banned: frozenset[str], listed: frozenset[str] | None) -> NDArray[np.bool_]:
        allowed = np.array([word.lower() not in banned for word in self._words]) if banned else True
        if listed is not None:
            allowed = allowed & np.array([is_listed(word, listed) for word in self._words])
        return np.asarray(self._proposable & allowed)


class Merged:
    """The best words of several sources in turn, up to K. The wide distribution is that of the first source."""

    def __init__(self, sources: Sequence[CandidateSource[Candidates]], num: int):
        self._sources, self._num = tuple(sources), num
        self.readers = tuple(reader for source in sources for reader in source.readers)

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> list[Candidates]:
        left = iter(readings)
        found = [
            source.candidates(sentences, slots, constraints, [next(left) for _ in source.readers])
            for source in self._sources
        ]
        return [self._merge(several) for several in zip(*found, strict=True)]

    def _merge(self, several: Sequence[Candidates]) -> Candidates:
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*(one.words for one in several)))
        words = dict.fromkeys(word for word in in_turn if word is not None)
        return replace(several[0], words=tuple(itertools.islice(words, self._num)))


class CheaplyScored:
    """The first of two stages: candidates whose sentences a cheap model has scored."""

    def __init__(self, source: CandidateSource[Candidates], scorer: Scorer):
        self._source, self._scorer = source, scorer
        self.readers = (*source.readers, scorer)

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> list[ScoredCandidates]:
        found = self._source.candidates(sentences, slots, constraints, readings[:-1])
        fillings = [[*((word,) for word in one.words), ()] for one in found]
        scores = self._scorer.log_probs_filled(slots, fillings, readings[-1])
        return [
            ScoredCandidates(one.words, one.log_dist, one.columns, score[:-1], float(score[-1]))
            for one, score in zip(found, scores, strict=True)
        ]


def _endings(constraints: Constraints) -> Candidates:
    columns = {word: column for column, word in enumerate(constraints.allowed_endings)}
    return Candidates(constraints.allowed_endings, np.zeros(len(columns)), columns)
