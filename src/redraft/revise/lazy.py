"""Scoring no further than a decision needs.

A draw from softmax(scores) is the argmax of score + Gumbel noise, and the score of a sentence's beginning bounds that
of the whole. So sentences are read a few tokens at a time, the leading ones to their end, and one is left alone once
it cannot change what is drawn or whether it is accepted. The noise is drawn before, so the decisions are those of full
scoring. What comes out are upper bounds, which a kernel takes for scores.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Pace, Scorer, Slot, Words
from redraft.numerics import Array, log_sum
from redraft.sentence import Action

_AT_ONCE = 200  # with so few tokens left, the calls of another round cost more than the tokens that it could spare


class Scoring(Protocol):
    """Sentences of several slots, each scored as far as was asked for."""

    @property
    def pace(self) -> Pace: ...

    @property
    def bounds(self) -> list[Array]:
        """Log-probabilities of what was read: at least those of the whole sentences."""

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Tokens that are still to be read."""

    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Read ``num`` more tokens, or all, of the sentences with the given numbers, slot by slot."""


@runtime_checkable
class PartialScorer(Scorer, Protocol):
    """A scorer that can stop halfway."""

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Any]
    ) -> Scoring: ...


Undecided = Callable[[int, Array, NDArray[np.bool_]], list[int]]  # slot, bounds, which are final: what still matters


def settle(scoring: Scoring, undecided: Undecided) -> list[Array]:
    """Score until nothing that is left matters."""
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
    """Which sentences still matter to a step of the paper's kernel, the weightiest first.

    ``bounds`` are those of the candidates and, for a deletion, of the sentence without the word at the end.
    """
    if not len(bounds):
        return []  # nothing could be drawn
    if action is Action.DELETE:
        return _undecided_deletion(bounds, is_final, log_old, log_level)
    if action is Action.INSERT:
        threshold = log_old + log_level
        if not log_sum(bounds) > threshold:
            return []  # refused, whatever comes
        if not log_sum(bounds[is_final]) > threshold:
            return _by_weight(bounds, ~is_final)
    noisy = bounds + noise
    best = max(noisy[is_final], default=-np.inf)
    return _by_weight(noisy, ~is_final & (noisy >= best))


def _undecided_deletion(bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float) -> list[int]:
    """Accepted where the sum of candidates and old sentence stays below the shorter sentence over the level."""
    limit = float(bounds[-1]) - log_level
    if log_sum(np.append(bounds[:-1][is_final[:-1]], log_old)) >= limit:
        return []  # refused
    if not is_final[-1]:
        return [len(bounds) - 1]
    if log_sum(np.append(bounds[:-1], log_old)) < limit:
        return []  # accepted
    return _by_weight(bounds, ~is_final)


def _by_weight(weights: Array, mask: NDArray[np.bool_]) -> list[int]:
    numbers = np.flatnonzero(mask & (weights > -np.inf))
    return [int(i) for i in numbers[np.argsort(-weights[numbers], kind="stable")]]
