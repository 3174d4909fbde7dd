"""The LSTM as a scorer and proposer of words. The state after every prefix is kept.

A forward reader reads a sentence as it is written, with a capital at its beginning. A backward reader reads from the
end. It only proposes, and it reads every word in its plain form, because from the end it cannot know which word is the
first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.base import Slot, Words
from redraft.models.batching import (
    BatchShape,
    FilledKey,
    Memo,
    common_prefix,
    filled_keys,
    groups,
    ids_from_slot,
    padded,
    row_lengths,
)
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.precision import precision_name
from redraft.models.vocabulary import END, SPECIALS, START, Vocabulary
from redraft.numerics import Array

_KEPT = 100_000  # scores that are remembered, about 50 per slot
_MAX_ROWS = 2048  # scored in one call
_MIN_FILL = 0.8  # shortest over longest row of a call: limits the cost of padding


@dataclass(frozen=True, slots=True)
class LstmReading:
    """A sentence as one reader has read it. ``state`` has a row for every prefix, from no word to all words."""

    ids: tuple[int, ...]  # in reading order
    state: LstmState  # [layers, words + 1, size]
    log_probs: Tensor  # [words + 1], float64: of each word given the words before it, then of the end

    def first_states(self, count: int) -> LstmState:
        """The states of the ``count`` shortest prefixes."""
        return self.state[0][:, :count], self.state[1][:, :count]


class LstmReader:
    """A trained network with its vocabulary and its direction."""

    def __init__(self, name: str, network: LstmLM, vocabulary: Vocabulary, *, backward: bool = False):
        self.name = name
        self.vocabulary = vocabulary
        self._network = network.eval()
        self._backward = backward
        self._memo: Memo[FilledKey, float] = Memo()
        with torch.inference_mode():
            _, self._start = network(torch.tensor([[START]]))

    @property
    def precision(self) -> str:
        return precision_name(torch.float32)  # whatever the processor

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    @property
    def proposable(self) -> NDArray[np.bool_]:
        allowed = np.ones(len(self.vocabulary), dtype=np.bool_)
        allowed[: len(SPECIALS)] = False
        return allowed

    def _ids(self, words: Words) -> tuple[int, ...]:
        if self._backward:
            return tuple(self.vocabulary.ids(reversed(words)))
        return tuple(self.vocabulary.surface_ids(words))

    @torch.inference_mode()
    def read(self, sentences: Sequence[Words], old: Sequence[LstmReading | None]) -> list[LstmReading]:
        """Read sentences. Each is read from the first word that differs from its old reading."""
        ids = [self._ids(words) for words in sentences]
        kept = [common_prefix(new, before.ids) if before else 0 for new, before in zip(ids, old, strict=True)]
        longest = max(map(len, ids))
        hidden, cell = (part.expand(-1, len(ids), -1).unsqueeze(2).repeat(1, 1, longest + 1, 1) for part in self._start)
        for row, (before, count) in enumerate(zip(old, kept, strict=True)):
            if before:
                hidden[:, row, : count + 1], cell[:, row, : count + 1] = before.first_states(count + 1)
        for at in range(min(kept), longest):
            rows = [row for row in range(len(ids)) if kept[row] <= at < len(ids[row])]
            if rows:
                inputs = torch.tensor([[ids[row][at] for row in rows]])
                _, (new_hidden, new_cell) = self._network(inputs, (hidden[:, rows, at], cell[:, rows, at]))
                hidden[:, rows, at + 1], cell[:, rows, at + 1] = new_hidden, new_cell
        log_probs = [None] * len(ids) if self._backward else self._new_log_probs(ids, kept, hidden[-1])
        readings = []
        for row, sentence in enumerate(ids):
            count = len(sentence) + 1
            state = hidden[:, row, :count].clone(), cell[:, row, :count].clone()
            before, new = old[row], log_probs[row]
            if new is None:
                new = torch.empty(0, dtype=torch.float64)
            elif before:
                new = torch.cat([before.log_probs[: kept[row]], new])
            readings.append(LstmReading(sentence, state, new))
        return readings

    def _new_log_probs(
        self, ids: Sequence[tuple[int, ...]], kept: Sequence[int], hidden: Tensor
    ) -> list[Tensor | None]:
        """Log-probabilities of the words that were not read before. ``hidden`` is [rows, time, size]."""
        targets = [[*sentence[count:], END] for sentence, count in zip(ids, kept, strict=True)]
        states = torch.cat([hidden[row, count : len(ids[row]) + 1] for row, count in enumerate(kept)])
        flat = self._network.softmax.log_prob_of(states, torch.tensor([t for row in targets for t in row]))
        return list(torch.split(flat.double(), [len(row) for row in targets]))

    def log_prob(self, reading: LstmReading) -> float:
        return float(reading.log_probs.sum())

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[LstmReading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word in each slot."""
        rows = [len(slot.words) - slot.end if self._backward else slot.start for slot in slots]
        states = torch.stack([reading.state[0][-1, row] for reading, row in zip(readings, rows, strict=True)])
        dist: NDArray[np.float32] = self._network.softmax.log_prob(states).numpy()
        self.vocabulary.use_plain_openings(dist, slots)
        return dist

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[LstmReading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences. Only words from the slot on are computed, and none of them twice."""
        keys = [filled_keys(slot, words) for slot, words in zip(slots, fillings, strict=True)]
        scores = [[self._memo.get(key) for key in some] for some in keys]
        missing = {i: [j for j, score in enumerate(some) if score is None] for i, some in enumerate(scores)}
        missing = {i: numbers for i, numbers in missing.items() if numbers}
        found = self._filled(
            [slots[i] for i in missing],
            [[fillings[i][j] for j in numbers] for i, numbers in missing.items()],
            [readings[i] for i in missing],
        )
        for (i, numbers), new in zip(missing.items(), found, strict=True):
            for j, score in zip(numbers, new.tolist(), strict=True):
                scores[i][j] = score
                self._memo.put(keys[i][j], score)
        self._memo.trim(_KEPT)
        return [np.array(some, dtype=np.float64) for some in scores]

    @torch.inference_mode()
    def _filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[LstmReading]
    ) -> list[Array]:
        ids = [
            ids_from_slot(slot, words, self.vocabulary.ids, self._shown_ids)
            for slot, words in zip(slots, fillings, strict=True)
        ]
        targets = [[[*row, END] for row in some] for some in ids]
        results: list[Array] = [np.empty(0)] * len(slots)
        for group in groups(row_lengths(targets), _fits):
            scores = self._continuations([targets[i] for i in group], [(readings[i], slots[i].start) for i in group])
            for i, score in zip(group, scores, strict=True):
                results[i] = float(readings[i].log_probs[: slots[i].start].sum()) + score
        return results

    def _shown_ids(self, words: Words, start: int) -> list[int]:
        return self.vocabulary.surface_ids(words)[start:]

    def _continuations(
        self, targets: Sequence[list[list[int]]], starts: Sequence[tuple[LstmReading, int]]
    ) -> list[Array]:
        """Log-probability of each row of target ids, read from the state at the start of its slot."""
        flat = [row for rows in targets for row in rows]
        counts = [len(rows) for rows in targets]
        ids, real = (part.T.contiguous() for part in padded(flat, END))
        repeats = torch.tensor(counts)
        first = [
            torch.stack([r.state[part][:, at] for r, at in starts], 1).repeat_interleave(repeats, 1) for part in (0, 1)
        ]
        hidden = first[0][-1:]
        if len(ids) > 1:
            following, _ = self._network(ids[:-1], (first[0], first[1]))
            hidden = torch.cat([hidden, following])
        log_probs = torch.zeros(real.shape, dtype=torch.float64)
        log_probs[real] = self._network.softmax.log_prob_of(hidden[real], ids[real]).double()
        return [part.numpy() for part in torch.split(log_probs.sum(0), counts)]


def _fits(batch: BatchShape) -> bool:
    return batch.shortest >= _MIN_FILL * batch.longest and batch.num_rows <= _MAX_ROWS
