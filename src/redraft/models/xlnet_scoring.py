"""Scores of filled slots by an XLNet, no closer than a decision needs.

Half of the work on a candidate's sentence is the sum over all pieces that normalises each prediction. The sum over
the frequent ones alone is an eighth of it and nearly as large, so it bounds the score closely from above; the rest
is added for the sentences that still matter.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.base import Slot, Words
from redraft.models.output_layer import log_sum_exp, picked_logits
from redraft.models.xlnet import XlnetLM
from redraft.numerics import Array

_FREQUENT, _SHARE = 2000, 8  # columns of the first sum, no more than this part of all; ids are ranks
_CALL_LOGITS = 1024  # rows of the output layer computed in one call
_KEPT = 100_000  # bounds, of 50 or so a slot


@dataclass(frozen=True)
class SlotScores:
    """What is known of the sentences in which some fillings stand in a slot; it becomes more as they are scored."""

    bounds: Array  # log-probabilities, or more
    is_final: NDArray[np.bool_]  # the log-probability itself

    @classmethod
    def unknown(cls, num: int) -> "SlotScores":
        return cls(np.full(num, np.inf), np.zeros(num, dtype=np.bool_))


class KeptScores:
    """What was found of slots: a chain whose proposal was refused often asks for the same one again."""

    def __init__(self) -> None:
        self._slots: OrderedDict[tuple[Words, Words, tuple[Words, ...]], SlotScores] = OrderedDict()
        self._num = 0

    def of(self, slot: Slot, fillings: Sequence[Words]) -> SlotScores:
        """What is known of a slot's fillings, to be added to. Forgets what was not asked for lately."""
        key = slot.before, slot.after, tuple(fillings)
        if key not in self._slots:
            self._slots[key] = SlotScores.unknown(len(fillings))
            self._num += len(fillings)
        self._slots.move_to_end(key)
        while self._num > _KEPT and len(self._slots) > 1:
            _, old = self._slots.popitem(last=False)
            self._num -= len(old.bounds)
        return self._slots[key]


class Read(NamedTuple):
    """Fillings of a slot after the layers, their predictions one after the other."""

    log_probs: Array  # [fillings]: of what stands before the slot and of a filling's first piece
    hidden: Tensor  # [predictions, d]
    target: Tensor  # [predictions]
    lengths: Sequence[int]  # predictions of each filling


class Layers(Protocol):
    """Reads fillings of slots as far as the output layer."""

    @property
    def network(self) -> XlnetLM: ...

    def read_filled(self, wanted: Sequence[tuple[int, Sequence[int]]]) -> Iterator[tuple[int, Sequence[int], Read]]:
        """For slots, by number, some of their fillings; may come in another order and in parts."""


@dataclass
class _Predictions:
    """Those of one filling: their bounds, of which the first ``num_full`` are log-probabilities."""

    log_prob: float  # of everything before them
    hidden: Tensor
    picked: Tensor
    log_sums: Tensor  # over the frequent columns
    bounds: Array
    num_full: int = field(default=0)

    @property
    def bound(self) -> float:
        return self.log_prob + float(self.bounds.sum())

    @property
    def num_left(self) -> int:
        return len(self.bounds) - self.num_full


class XlnetScoring:
    """Sentences of several slots, each scored as closely as was asked for."""

    def __init__(self, layers: Layers, known: Sequence[SlotScores], lengths: Sequence[Sequence[int]]):
        self._layers, self._known, self._lengths = layers, known, lengths
        self._predictions: dict[tuple[int, int], _Predictions] = {}
        head = layers.network.transformer.word_embedding.weight, layers.network.lm_loss.bias
        frequent = min(_FREQUENT, max(1, len(head[1]) // _SHARE))
        self._num_frequent = frequent
        self._frequent = tuple(part[:frequent] for part in head)
        self._others = tuple(part[frequent:] for part in head)
        new = [(i, range(len(one.bounds))) for i, one in enumerate(known) if np.isinf(one.bounds).any()]
        self._read(new)

    @property
    def bounds(self) -> list[Array]:
        return [one.bounds.copy() for one in self._known]

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Predictions of each sentence whose sum is not complete."""
        return [
            np.array([self._num_left(i, j) for j in range(len(one.bounds))], dtype=np.int64)
            for i, one in enumerate(self._known)
        ]

    def _num_left(self, i: int, j: int) -> int:
        if self._known[i].is_final[j]:
            return 0
        found = self._predictions.get((i, j))
        return max(1, self._lengths[i][j]) if found is None else found.num_left

    @torch.inference_mode()
    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Complete ``num`` more sums, or all, of the sentences with the given numbers, slot by slot."""
        places = [(i, j) for i, numbers in enumerate(wanted) for j in numbers if not self._known[i].is_final[j]]
        unread: dict[int, list[int]] = {}
        for i, j in places:
            if (i, j) not in self._predictions:  # a bound of an earlier time
                unread.setdefault(i, []).append(j)
        self._read(list(unread.items()))
        rows = [self._predictions[place] for place in places]
        spans = [slice(row.num_full, len(row.bounds) if num is None else row.num_full + num) for row in rows]
        if not rows:
            return
        hidden, picked, frequent = (
            torch.cat([part[span] for part, span in zip(parts, spans, strict=True)])
            for parts in ([row.hidden for row in rows], [row.picked for row in rows], [row.log_sums for row in rows])
        )
        full = picked - torch.logaddexp(frequent, self._log_sums(hidden, self._others))
        at = 0
        for (i, j), row, span in zip(places, rows, spans, strict=True):
            length = len(row.bounds[span])
            row.bounds[span] = full[at : at + length].double().numpy()
            row.num_full += length
            at += length
            self._tell(i, j, row)

    @torch.inference_mode()
    def _read(self, wanted: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Take fillings through the layers and the frequent columns."""
        for i, numbers, read in self._layers.read_filled(wanted):
            log_sums = self._log_sums(read.hidden, self._frequent)
            picked = picked_logits(read.hidden, read.target, *self._head)
            # A target that is not among them is part of the sum all the same.
            rare = read.target >= self._num_frequent
            bounds = (picked - torch.where(rare, torch.logaddexp(log_sums, picked), log_sums)).double().numpy()
            ends = np.cumsum([0, *read.lengths])
            for j, log_prob, first, end in zip(numbers, read.log_probs, ends, ends[1:], strict=False):
                span = slice(first, end)
                row = _Predictions(
                    float(log_prob), read.hidden[span], picked[span], log_sums[span], bounds[span].copy()
                )
                self._predictions[i, j] = row
                self._tell(i, j, row)

    @property
    def _head(self) -> tuple[Tensor, Tensor]:
        network = self._layers.network
        return network.transformer.word_embedding.weight, network.lm_loss.bias

    def _tell(self, i: int, j: int, row: _Predictions) -> None:
        self._known[i].bounds[j] = row.bound
        self._known[i].is_final[j] = not row.num_left

    def _log_sums(self, hidden: Tensor, head: Sequence[Tensor]) -> Tensor:
        parts = [log_sum_exp(some, *head) for some in torch.split(hidden, _CALL_LOGITS)]
        return torch.cat(parts) if parts else hidden.new_empty(0, dtype=torch.float32)
