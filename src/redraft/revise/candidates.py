"""Which words may stand in a slot: the top K of one proposer, or of the product of several (FLM x BLM)."""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Proposer, Slot
from redraft.sentence import ENDING, FREE, Action, Constraints, Sentence


class Generator(enum.Enum):
    """The paper's candidate generators, by what they look at."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "forward x backward"


def slot_of(sentence: Sentence, action: Action, position: int) -> Slot:
    """The slot that a move opens: a word's place, or the gap before it."""
    return Slot(sentence.words, position, position + (action is not Action.INSERT))


class CandidateGenerator:
    """The K likeliest words of a slot under the product of the proposers' distributions, not divided by p(word)."""

    def __init__(self, proposers: Sequence[Proposer], num: int):
        if len({tuple(proposer.words) for proposer in proposers}) != 1:
            raise ValueError("proposers that are multiplied must share their words")
        self.proposers = tuple(proposers)
        self.num = num
        self._words = proposers[0].words
        self._proposable = np.logical_and.reduce([proposer.proposable for proposer in proposers])
        self._masks: dict[frozenset[str], NDArray[np.bool_]] = {}
        self._not = np.array([word.lower() in ("'t", "\u2019t") for word in self._words])

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[Any]],
    ) -> list[list[str]]:
        """Words for each slot, likeliest first; ``readings[i]`` are the readings of proposer i."""
        log_dist = sum(p.log_dist(slots, read) for p, read in zip(self.proposers, readings, strict=True))
        return [
            self._choose(*arguments)
            for arguments in zip(sentences, slots, constraints, np.asarray(log_dist), strict=True)
        ]

    def _choose(
        self, sentence: Sentence, slot: Slot, constraints: Constraints, log_dist: NDArray[np.float32]
    ) -> list[str]:
        if slot.end > slot.start and sentence.locks[slot.start] == ENDING:
            return list(constraints.endings)
        allowed = self._mask(constraints.banned_words)
        if slot.start > 0 and sentence.locks[slot.start - 1] != FREE:
            allowed = allowed & ~self._not  # "won" followed by "'t" would be another word
        log_dist = np.where(allowed, log_dist, -np.inf)
        num = min(self.num, len(log_dist) - 1)
        top = np.argpartition(-log_dist, num)[:num]
        top = top[np.lexsort((top, -log_dist[top]))]  # ties by rank, so that the order is the same everywhere
        words = [self._words[i] for i in top if np.isfinite(log_dist[i])]
        return [word for word in words if constraints.allows(slot.fill(word))]

    def _mask(self, banned: frozenset[str]) -> NDArray[np.bool_]:
        if banned not in self._masks:
            forbidden = np.array([word.lower() in banned for word in self._words]) if banned else False
            self._masks[banned] = self._proposable & ~np.asarray(forbidden)
        return self._masks[banned]
