"""Scores of filled slots by an XLNet, no closer than a decision needs.

Half of the work on a candidate's sentence is the sum over all pieces that normalises each prediction. The sum over
the frequent ones alone is an eighth of it and nearly as large, so it bounds the score closely from above; the rest
is added for the sentences that still matter.
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

_FREQUENT, _SHARE = 2000, 8  # columns of the first sum, no more than this part of all; ids are ranks
_PARTS = 64  # read before their scores are looked at, which bounds memory
_HELD = 200_000  # predictions that wait for their sums; beyond that they are completed at once, to bound memory


@dataclass
class ScoreBound:
    """What is known of a sentence's log-probability; it becomes more as it is scored."""

    bound: float = np.inf
    is_final: bool = False

    def lower(self, bound: float, *, is_final: bool) -> None:
        """What is final stays, and no bound is given up for a looser one."""
        if not self.is_final:
            self.bound, self.is_final = min(self.bound, bound), is_final


class SlotStates(NamedTuple):
    """Fillings of a slot after the layers, their predictions one after the other."""

    log_probs: Array  # [fillings]: of what stands before the slot and of a filling's first piece
    hidden: Tensor  # [predictions, d]
    target: Tensor  # [predictions]
    lengths: Sequence[int]  # predictions of each filling


class SlotFillings(NamedTuple):
    """Some fillings of a slot, all by their numbers."""

    slot: int
    numbers: Sequence[int]


class FillingReader(Protocol):
    """Reads fillings of slots as far as the output layer."""

    @property
    def network(self) -> XlnetLM: ...

    def parts(self, wanted: Sequence[SlotFillings]) -> list[list[SlotFillings]]:
        """Fillings as they are best read together."""

    def read(self, part: Sequence[SlotFillings]) -> list[SlotStates]:
        """What is found of each."""


@dataclass
class _Predictions:
    """Those of one filling: their bounds, of which the first ``num_full`` are log-probabilities."""

    log_prob: float  # of everything before them
    hidden: Tensor
    picked: Tensor
    log_sums: Tensor  # over the frequent columns
    bounds: Array
    num_full: int = 0

    @property
    def bound(self) -> float:
        return self.log_prob + float(self.bounds.sum())

    @property
    def num_left(self) -> int:
        return len(self.bounds) - self.num_full


class XlnetScoring:
    """Sentences of several slots, each scored as closely as was asked for.

    ``lengths`` are the predictions after the first of each slot's fillings. Chains that ask for the same sentence have
    the same score of it.
    """

    # Bounds are close from the start, so a few scores leave most of the others without a chance.
    pace = Pace(leaders=8, stride=0)

    def __init__(self, layers: FillingReader, scores: Sequence[Sequence[ScoreBound]], lengths: Sequence[Sequence[int]]):
        self._layers, self._scores, self._lengths = layers, scores, lengths
        self._predictions: dict[int, _Predictions] = {}  # by the identity of a score
        self._num_held = 0
        self._head = layers.network.transformer.word_embedding.weight, layers.network.lm_loss.bias
        self._num_frequent = min(_FREQUENT, max(1, len(self._head[1]) // _SHARE))
        everything = [range(len(some)) for some in scores]
        self._read([(i, j) for i, j in self._places(everything) if np.isinf(scores[i][j].bound)])

    @property
    def bounds(self) -> list[Array]:
        return [np.array([score.bound for score in some]) for some in self._scores]

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Predictions of each sentence whose sum is not complete."""
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
        """Slot and number of the sentences that are not final, each once."""
        found = {id(self._scores[i][j]): (i, j) for i, numbers in enumerate(wanted) for j in numbers}
        return [(i, j) for i, j in found.values() if not self._scores[i][j].is_final]

    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Complete ``num`` more sums, or all, of the sentences with the given numbers, slot by slot."""
        places = self._places(wanted)
        # What an earlier scoring left as a bound has to be read again.
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
            # Rounding must not lift a score above what was its bound.
            row.bounds[span] = np.minimum(bounds, full[at : at + len(bounds)])
            row.num_full += len(bounds)
            at += len(bounds)
            score.lower(row.bound, is_final=not row.num_left)
            if score.is_final:
                self._num_held -= len(row.bounds)
                self._predictions.pop(id(score), None)

    def _read(self, places: Sequence[tuple[int, int]]) -> None:
        """Take fillings through the layers and the frequent columns."""
        wanted: dict[int, list[int]] = {}
        for i, j in places:
            wanted.setdefault(i, []).append(j)
        parts = self._layers.parts([SlotFillings(i, numbers) for i, numbers in wanted.items()])
        for start in range(0, len(parts), _PARTS):
            some = parts[start : start + _PARTS]
            for part, found in zip(some, side_by_side(self._predictions_of, some), strict=True):
                for filled, rows in zip(part, found, strict=True):
                    scores = [self._scores[filled.slot][j] for j in filled.numbers]
                    for score, row in zip(scores, rows, strict=True):
                        score.lower(row.bound, is_final=not row.num_left)
                    self._hold([(s, row) for s, row in zip(scores, rows, strict=True) if not s.is_final])

    def _predictions_of(self, part: Sequence[SlotFillings]) -> list[list[_Predictions]]:
        result = []
        for read in self._layers.read(part):
            log_sums = log_sum_exp(read.hidden, *(whole[: self._num_frequent] for whole in self._head))
            picked = picked_logits(read.hidden, read.target, *self._head)
            # A target that is not among them is part of the sum all the same.
            rare = read.target >= self._num_frequent
            bounds = (picked - torch.where(rare, torch.logaddexp(log_sums, picked), log_sums)).double().numpy()
            ends = np.cumsum([0, *read.lengths]).tolist()
            spans = [slice(first, end) for first, end in pairwise(ends)]
            result.append(
                [
                    _Predictions(float(log_prob), read.hidden[span], picked[span], log_sums[span], bounds[span].copy())
                    for log_prob, span in zip(read.log_probs, spans, strict=True)
                ]
            )
        return result

    def _hold(self, rows: Sequence[tuple[ScoreBound, _Predictions]]) -> None:
        self._predictions |= {id(score): row for score, row in rows}
        self._num_held += sum(len(row.bounds) for _, row in rows)
        if self._num_held > _HELD:
            self._complete(rows)
