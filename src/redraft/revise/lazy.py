"""Lazy scoring: compute scores only as far as a decision depends on them.

A draw from softmax(scores) is the argmax of score + Gumbel noise, and the score of the beginning of a sentence is an
upper bound of the score of the whole. So sentences are read a few tokens at a time, the leading ones to their end. A
sentence is dropped once it can change neither what is drawn nor whether it is accepted. The noise is drawn first, so
the decisions are those of full scoring. The results are upper bounds, which a kernel uses as scores.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Pace, ReadingT, ScorerOf, Slot, Words
from redraft.numerics import Array, log_sum
from redraft.sentence import Action

_AT_ONCE = 200  # with so few tokens left, another round of calls costs more than it can save


class Scoring(Protocol):
    """The filled sentences of several slots, each scored as far as requested."""

    @property
    def pace(self) -> Pace:
        """How much to compute per round."""

    @property
    def bounds(self) -> list[Array]:
        """For each slot, upper bounds of the log-probabilities of its sentences; exact for those scored to the end."""

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """For each slot, the number of tokens of each sentence that are not scored yet."""

    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Score ``num`` more tokens, or all, of some sentences: ``wanted`` has their indices for each slot."""


@runtime_checkable
class PartialScorer(ScorerOf[ReadingT], Protocol[ReadingT]):
    """A scorer that can stop before the end of a sentence."""

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[ReadingT]
    ) -> Scoring: ...


Undecided = Callable[[int, Array, NDArray[np.bool_]], list[int]]  # slot, bounds, which are exact -> what matters


def settle(scoring: Scoring, undecided: Undecided) -> list[Array]:
    """Score in rounds until the rest cannot change a decision. Returns the bounds at that point.

    ``undecided`` returns the sentences of a slot that still matter, the likeliest first.
    """
    while True:
        bounds, left = scoring.bounds, scoring.num_left
        open_ = [undecided(i, bound, left[i] == 0) for i, bound in enumerate(bounds)]
        num_tokens = sum(int(left[i][numbers].sum()) for i, numbers in enumerate(open_))
        if num_tokens == 0:
            return bounds
        if num_tokens <= _AT_ONCE:
            scoring.advance(open_)
            continue
        num_leaders = [-(-len(numbers) // scoring.pace.leaders) for numbers in open_]
        scoring.advance([numbers[:num] for numbers, num in zip(open_, num_leaders, strict=True)])
        if scoring.pace.stride:
            others = [numbers[num:] for numbers, num in zip(open_, num_leaders, strict=True)]
            scoring.advance(others, scoring.pace.stride)


def undecided_by_paper(
    action: Action, bounds: Array, is_final: NDArray[np.bool_], noise: Array, log_old: float, log_level: float
) -> list[int]:
    """Which sentences can still change a step of the paper's kernel, the one with most weight first.

    ``bounds`` are those of the candidates and, for a deletion, of the sentence without the word at the end.
    """
    if not len(bounds):
        return []  # nothing could be drawn
    if action is Action.DELETE:
        return _undecided_deletion(bounds, is_final, log_old, log_level)
    if action is Action.INSERT:
        threshold = log_old + log_level
        if not log_sum(bounds) > threshold:
            return []  # rejected, whatever the other scores are
        if not log_sum(bounds[is_final]) > threshold:
            return _by_weight(bounds, ~is_final)
    noisy = bounds + noise
    best = max(noisy[is_final], default=-np.inf)
    return _by_weight(noisy, ~is_final & (noisy >= best))


def _undecided_deletion(bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float) -> list[int]:
    """A deletion is accepted if the sum of candidates and old sentence is below the shorter sentence / level."""
    limit = float(bounds[-1]) - log_level
    if log_sum(np.append(bounds[:-1][is_final[:-1]], log_old)) >= limit:
        return []  # rejected
    if not is_final[-1]:
        return [len(bounds) - 1]
    if log_sum(np.append(bounds[:-1], log_old)) < limit:
        return []  # accepted
    return _by_weight(bounds, ~is_final)


def _by_weight(weights: Array, mask: NDArray[np.bool_]) -> list[int]:
    numbers = np.flatnonzero(mask & (weights > -np.inf))
    return [int(i) for i in numbers[np.argsort(-weights[numbers], kind="stable")]]
