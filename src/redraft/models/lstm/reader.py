"""The LSTM as a model of sentences: scorer and proposer over words, with every prefix state kept.

A forward reader reads the words as a reader sees them, the opening one capitalised. A backward reader reads them from
the end; it only proposes, and takes every word in its plain form, because the opening word is not known from behind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.models.base import Slot, Words
from redraft.models.lstm.network import LstmLM, State
from redraft.models.memo import ScoreMemo
from redraft.models.precision import precision_name
from redraft.models.vocabulary import END, SPECIALS, START, Vocabulary
from redraft.numerics import Array

_GROUP_ROWS = 2048  # rows scored in one call
_MIN_FILL = 0.8  # shortest over longest row of a call: bounds what padding costs


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as one reader has read it. ``state`` has a row for each number of words read, from none to all."""

    ids: tuple[int, ...]  # in reading order
    state: State  # [layers, words + 1, size]
    log_probs: Tensor  # [words + 1], float64: each word given those before it, then the end

    def rows(self, count: int) -> State:
        return self.state[0][:, :count], self.state[1][:, :count]


class LstmReader:
    """A trained network with its vocabulary and its direction."""

    def __init__(self, name: str, network: LstmLM, vocabulary: Vocabulary, *, backward: bool = False):
        self.name = name
        self.vocabulary = vocabulary
        self._network = network.eval()
        self._backward = backward
        self._memo = ScoreMemo()
        with torch.inference_mode():
            _, self._start = network(torch.tensor([[START]]))

    @property
    def precision(self) -> str:
        return precision_name(torch.float32)  # on every processor

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
    def read(self, sentences: Sequence[Words], old: Sequence[Reading | None]) -> list[Reading]:
        """Read sentences, each from where it leaves its old reading."""
        ids = [self._ids(words) for words in sentences]
        kept = [_shared(new, before.ids) if before else 0 for new, before in zip(ids, old, strict=True)]
        longest = max(map(len, ids))
        hidden, cell = (part.expand(-1, len(ids), -1).unsqueeze(2).repeat(1, 1, longest + 1, 1) for part in self._start)
        for row, (before, count) in enumerate(zip(old, kept, strict=True)):
            if before:
                hidden[:, row, : count + 1], cell[:, row, : count + 1] = before.rows(count + 1)
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
            readings.append(Reading(sentence, state, new))
        return readings

    def _new_log_probs(
        self, ids: Sequence[tuple[int, ...]], kept: Sequence[int], hidden: Tensor
    ) -> list[Tensor | None]:
        """Log-probabilities of the words that were not read before; hidden is [rows, time, size]."""
        targets = [[*sentence[count:], END] for sentence, count in zip(ids, kept, strict=True)]
        states = torch.cat([hidden[row, count : len(ids[row]) + 1] for row, count in enumerate(kept)])
        flat = self._network.softmax.log_prob_of(states, torch.tensor([t for row in targets for t in row]))
        return list(torch.split(flat.double(), [len(row) for row in targets]))

    def log_prob(self, reading: Reading) -> float:
        return float(reading.log_probs.sum())

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Reading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of the words that a sentence may hold at each slot."""
        rows = [len(slot.words) - slot.end if self._backward else slot.start for slot in slots]
        states = torch.stack([reading.state[0][-1, row] for reading, row in zip(readings, rows, strict=True)])
        dist: NDArray[np.float32] = self._network.softmax.log_prob(states).numpy()
        for row, slot in enumerate(slots):
            if text.opening(slot.before) is None:
                # A word that would open the sentence is proposed in its plain form with the probability of its capital.
                dist[row] = np.where(self.vocabulary.is_plain, dist[row][self.vocabulary.opening_ids], -np.inf)
        return dist

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Reading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences; only what comes from the slot on is computed."""
        return self._memo.scores(slots, fillings, readings, self._filled)

    @torch.inference_mode()
    def _filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Reading]
    ) -> list[Array]:
        targets = [self._targets(slot, words) for slot, words in zip(slots, fillings, strict=True)]
        results: list[Array] = [np.empty(0)] * len(slots)
        for group in _groups(targets):
            scores = self._continuations([targets[i] for i in group], [(readings[i], slots[i].start) for i in group])
            for i, score in zip(group, scores, strict=True):
                results[i] = float(readings[i].log_probs[: slots[i].start].sum()) + score
        return results

    def _targets(self, slot: Slot, fillings: Sequence[Words]) -> list[NDArray[np.int64]]:
        """Ids from the slot to the end, one array a filling."""
        if text.opening(slot.before) is None:  # the filling may take over the opening capital: write each one out
            filled = (self.vocabulary.surface_ids(slot.fill(words))[slot.start :] for words in fillings)
            return [np.array([*ids, END]) for ids in filled]
        after = [*self.vocabulary.ids(slot.after), END]
        return [np.array([*self.vocabulary.ids(words), *after]) for words in fillings]

    def _continuations(
        self, targets: Sequence[list[NDArray[np.int64]]], starts: Sequence[tuple[Reading, int]]
    ) -> list[Array]:
        """Log-probability of each row of target ids, read from the state where its slot starts."""
        flat = [row for rows in targets for row in rows]
        counts = [len(rows) for rows in targets]
        longest = max(map(len, flat))
        ids = np.full((longest, len(flat)), END, dtype=np.int64)
        real = np.zeros((longest, len(flat)), dtype=np.bool_)
        for column, row in enumerate(flat):
            ids[: len(row), column] = row
            real[: len(row), column] = True
        repeats = torch.tensor(counts)
        first = [
            torch.stack([r.state[part][:, at] for r, at in starts], 1).repeat_interleave(repeats, 1) for part in (0, 1)
        ]
        hidden = first[0][-1:]
        if longest > 1:
            following, _ = self._network(torch.from_numpy(ids[:-1]), (first[0], first[1]))
            hidden = torch.cat([hidden, following])
        mask = torch.from_numpy(real)
        log_probs = torch.zeros(real.shape, dtype=torch.float64)
        log_probs[mask] = self._network.softmax.log_prob_of(hidden[mask], torch.from_numpy(ids)[mask]).double()
        return [part.numpy() for part in torch.split(log_probs.sum(0), counts)]


def _shared(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common beginning."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _groups(targets: Sequence[list[NDArray[np.int64]]]) -> Iterator[list[int]]:
    """Slots whose rows are alike in length, so that few of the padded steps are wasted."""
    order = sorted((i for i, rows in enumerate(targets) if rows), key=lambda i: -max(map(len, targets[i])))
    group: list[int] = []
    rows = longest = 0
    for i in order:
        length = max(map(len, targets[i]))
        if group and (length < _MIN_FILL * longest or rows + len(targets[i]) > _GROUP_ROWS):
            yield group
            group, rows = [], 0
        if not group:
            longest = length
        group.append(i)
        rows += len(targets[i])
    if group:
        yield group
