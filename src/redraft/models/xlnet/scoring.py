"""Scores of filled slots by an XLNet, only as precise as a decision needs.

Half of the work on a candidate is the sum over all pieces that normalises each prediction. The sum over the frequent
pieces alone costs an eighth of it and is nearly as large. It gives a close upper bound of the score. The rest of the
sum is added for the sentences that still matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.base import Pace
from redraft.models.output_layer import log_sum_exp, picked_logits
from redraft.models.threads import side_by_side
from redraft.models.xlnet.network import XlnetLM
from redraft.numerics import Array

_FREQUENT, _SHARE = 2000, 8  # pieces of the first sum: at most 2000, and at most an eighth. Ids are frequency ranks.
_PARTS = 64  # calls whose results are held in memory at a time
_HELD = 200_000  # predictions with incomplete sums held in memory; beyond that, sums are completed at once


@dataclass
class ScoreBound:
    """An upper bound of a sentence's log-probability. Scoring lowers it until it is final."""

    bound: float = np.inf
    is_final: bool = False

    def lower(self, bound: float, *, is_final: bool) -> None:
        """Lower the bound. A final bound stays as it is, and a looser bound is ignored."""
        if not self.is_final:
            self.bound, self.is_final = min(self.bound, bound), is_final


class SlotStates(NamedTuple):
    """The states of a slot's fillings after the last layer, concatenated."""

    log_probs: Array  # [fillings]: of everything before the slot and of the filling's first piece
    hidden: Tensor  # [predictions, d]
    target: Tensor  # [predictions]
    lengths: Sequence[int]  # number of predictions of each filling


class SlotFillings(NamedTuple):
    """Some fillings of a slot, by number."""

    slot: int
    numbers: Sequence[int]


class FillingReader(Protocol):
    """Computes fillings of slots up to the output layer."""

    @property
    def network(self) -> XlnetLM: ...

    def parts(self, wanted: Sequence[SlotFillings]) -> list[list[SlotFillings]]:
        """Split fillings into calls."""

    def read(self, part: Sequence[SlotFillings]) -> list[SlotStates]:
        """The states of the fillings of one call."""


@dataclass
class _Predictions:
    """The predictions of one filling. The first ``num_full`` bounds are exact log-probabilities."""

    log_prob: float  # of everything before the predictions
    hidden: Tensor
    picked: Tensor  # logits of the targets
    log_sums: Tensor  # log-sum-exp over the frequent pieces
    bounds: Array
    num_full: int = 0

    @property
    def bound(self) -> float:
        return self.log_prob + float(self.bounds.sum())

    @property
    def num_left(self) -> int:
        return len(self.bounds) - self.num_full


class XlnetScoring:
    """Upper bounds of the scores of filled slots, lowered on demand.

    ``lengths`` are the numbers of predictions of each filling, without the first. Chains with the same filled slot
    share its bound.
    """

    # Bounds are close from the start, so the exact scores of the best eighth rule out most of the others.
    pace = Pace(leaders=8, stride=0)

    def __init__(
        self, filling_reader: FillingReader, scores: Sequence[Sequence[ScoreBound]], lengths: Sequence[Sequence[int]]
    ):
        self._filling_reader, self._scores, self._lengths = filling_reader, scores, lengths
        self._predictions: dict[int, _Predictions] = {}  # by the identity of a score
        self._num_held = 0
        network = filling_reader.network
        self._head = network.transformer.word_embedding.weight, network.lm_loss.bias
        self._num_frequent = min(_FREQUENT, max(1, len(self._head[1]) // _SHARE))
        everything = [range(len(some)) for some in scores]
        self._read([(i, j) for i, j in self._places(everything) if np.isinf(scores[i][j].bound)])

    @property
    def bounds(self) -> list[Array]:
        return [np.array([score.bound for score in some]) for some in self._scores]

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Number of predictions of each sentence whose sum is incomplete."""
        return [
            np.array([self._num_left(i, j) for j in range(len(some))], dtype=np.int64)
            for i, some in enumerate(self._scores)
        ]

    def _num_left(self, i: int, j: int) -> int:
        if self._scores[i][j].is_final:
            return 0
        found = self._predictions.get(id(self._scores[i][j]))
        return self._lengths[i][j] if found is None else found.num_left

    def _places(self, wanted: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Slot and number of the sentences whose score is not final, without duplicates."""
        found = {id(self._scores[i][j]): (i, j) for i, numbers in enumerate(wanted) for j in numbers}
        return [(i, j) for i, j in found.values() if not self._scores[i][j].is_final]

    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Complete ``num`` more sums, or all, of the sentences whose numbers are given for each slot."""
        places = self._places(wanted)
        # Sentences with a bound from an earlier scoring have to be read again.
        self._read([(i, j) for i, j in places if id(self._scores[i][j]) not in self._predictions])
        scores = [self._scores[i][j] for i, j in places]
        self._complete([(score, self._predictions[id(score)]) for score in scores if not score.is_final], num)

    @torch.inference_mode()
    def _complete(self, rows: Sequence[tuple[ScoreBound, _Predictions]], num: int | None = None) -> None:
        if not rows:
            return
        spans = [slice(row.num_full, None if num is None else row.num_full + num) for _, row in rows]
        hidden, picked, frequent = (
            torch.cat([getattr(row, name)[span] for (_, row), span in zip(rows, spans, strict=True)])
            for name in ("hidden", "picked", "log_sums")
        )
        rare = [whole[self._num_frequent :] for whole in self._head]
        full = (picked - torch.logaddexp(frequent, log_sum_exp(hidden, *rare))).double().numpy()
        at = 0
        for (score, row), span in zip(rows, spans, strict=True):
            bounds = row.bounds[span]
            # Rounding must not raise a score above its bound.
            row.bounds[span] = np.minimum(bounds, full[at : at + len(bounds)])
            row.num_full += len(bounds)
            at += len(bounds)
            score.lower(row.bound, is_final=not row.num_left)
            if score.is_final:
                self._num_held -= len(row.bounds)
                self._predictions.pop(id(score), None)

    def _read(self, places: Sequence[tuple[int, int]]) -> None:
        """Compute fillings up to the sum over the frequent pieces."""
        wanted: dict[int, list[int]] = {}
        for i, j in places:
            wanted.setdefault(i, []).append(j)
        parts = self._filling_reader.parts([SlotFillings(i, numbers) for i, numbers in wanted.items()])
        for start in range(0, len(parts), _PARTS):
            some = parts[start : start + _PARTS]
            for part, found in zip(some, side_by_side(self._predictions_of, some), strict=True):
                for fillings, rows in zip(part, found, strict=True):
                    scores = [self._scores[fillings.slot][j] for j in fillings.numbers]
                    for score, row in zip(scores, rows, strict=True):
                        score.lower(row.bound, is_final=not row.num_left)
                    self._hold([(s, row) for s, row in zip(scores, rows, strict=True) if not s.is_final])

    def _predictions_of(self, part: Sequence[SlotFillings]) -> list[list[_Predictions]]:
        result = []
        for states in self._filling_reader.read(part):
            log_sums = log_sum_exp(states.hidden, *(whole[: self._num_frequent] for whole in self._head))
            picked = picked_logits(states.hidden, states.target, *self._head)
            # The sum includes the target even if it is not a frequent piece.
            rare = states.target >= self._num_frequent
            bounds = (picked - torch.where(rare, torch.logaddexp(log_sums, picked), log_sums)).double().numpy()
            ends = np.cumsum([0, *states.lengths]).tolist()
            spans = [slice(first, end) for first, end in pairwise(ends)]
            result.append(
                [
                    _Predictions(
                        float(log_prob), states.hidden[span], picked[span], log_sums[span], bounds[span].copy()
                    )
                    for log_prob, span in zip(states.log_probs, spans, strict=True)
                ]
            )
        return result

    def _hold(self, rows: Sequence[tuple[ScoreBound, _Predictions]]) -> None:
        self._predictions |= {id(score): row for score, row in rows}
        self._num_held += sum(len(row.bounds) for _, row in rows)
        if self._num_held > _HELD:
            self._complete(rows)
