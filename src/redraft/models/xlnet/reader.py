"""XLNet as a scorer and proposer of words, with cached keys and values.

A forward reader reads a sentence as it is written, with a capital at its beginning. A backward reader reads from the
end. It only proposes, and it reads every word in its plain form, because from the end it cannot know which word is the
first. See redraft.models.xlnet.masked for a reader that sees both sides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
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
    stacked_at_end,
)
from redraft.models.output_layer import log_sum_exp, picked_logits
from redraft.models.precision import precision_name
from redraft.models.xlnet.network import Memory, XlnetLM
from redraft.models.xlnet.scoring import ScoreBound, SlotFillings, SlotStates, XlnetScoring
from redraft.models.xlnet.words import PieceWords
from redraft.numerics import Array

_CALL_PIECES = 1024  # read in one call: their activations fit into the processor's cache
_CALL_PAIRS = 4_000_000  # of query and key in one call, at about 32 bytes for every head
_MOST_PADDING = 0.2  # share of a call's pieces: limits the cost of padding
_FREE_PADDING = 64  # pieces that cost less than another call
_KEPT = 100_000  # scores that are remembered, about 50 per slot


@dataclass(frozen=True, slots=True)
class XlnetReading:
    """A sentence as one reader has read it. Tensors have an entry for every prefix, from no piece to all pieces."""

    ids: tuple[int, ...]  # in reading order
    firsts: tuple[int, ...]  # number of pieces before each word, then of all pieces
    key: Tensor  # [layers, heads, pieces + 1, head size]
    value: Tensor
    hidden: Tensor  # [pieces + 1, d]: the states that predict the next piece
    log_probs: Tensor  # [pieces + 1], float64: of each piece given the pieces before it, then of the end


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The first ``count`` pieces of a reading, from which reading continues."""

    reading: XlnetReading
    count: int

    @property
    def key(self) -> Tensor:
        return self.reading.key[:, :, : self.count + 1]

    @property
    def value(self) -> Tensor:
        return self.reading.value[:, :, : self.count + 1]


class XlnetReader:
    """A trained network that reads forward or backward."""

    def __init__(self, name: str, network: XlnetLM, words: PieceWords, *, backward: bool = False):
        self.name = name
        self.vocabulary = words.vocabulary
        self.network, self.pieces, self.backward = network.eval(), words, backward
        splitter = words.splitter
        self.begin, self.end = (splitter.end, splitter.begin) if backward else (splitter.begin, splitter.end)
        self._empty = self._read_empty()
        self._memo: Memo[FilledKey, ScoreBound] = Memo()

    @property
    def precision(self) -> str:
        return precision_name(self.network.lm_loss.bias.dtype)

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    @property
    def proposable(self) -> NDArray[np.bool_]:
        return self.pieces.proposable

    @torch.inference_mode()
    def _read_empty(self) -> XlnetReading:
        """The reading of no words."""
        hidden, memory = self.network.transformer.causal(torch.tensor([[self.begin]]), backward=self.backward)
        key, value = memory.key[:, :, 0], memory.value[:, :, 0]
        return XlnetReading((), (0,), key, value, hidden[0], torch.empty(0, dtype=torch.float64))

    def _split(self, words: Words) -> list[tuple[int, ...]]:
        """The pieces of each word, in reading order."""
        if self.backward:
            return [self.pieces.split(word)[::-1] for word in reversed(words)]
        return [self.pieces.split(word) for word in text.surface(words)]

    @torch.inference_mode()
    def read(self, sentences: Sequence[Words], old: Sequence[XlnetReading | None]) -> list[XlnetReading]:
        """Read sentences. Each is read from the first piece that differs from its old reading."""
        split = [self._split(words) for words in sentences]
        ids = [tuple(piece for word in words for piece in word) for words in split]
        shared = [_shared_prefix(new, before or self._empty) for new, before in zip(ids, old, strict=True)]
        new = [[list(row[prefix.count :])] for row, prefix in zip(ids, shared, strict=True)]
        readings: list[XlnetReading | None] = [None] * len(ids)
        for group in groups(row_lengths(new), fits):
            hidden, memory = self.extend([new[i] for i in group], [shared[i] for i in group])
            for row, i in enumerate(group):
                readings[i] = self._extended(shared[i], split[i], ids[i], hidden[row], memory, row)
        return self._scored([reading for reading in readings if reading], shared)

    def _extended(
        self,
        prefix: _Prefix,
        split: list[tuple[int, ...]],
        ids: tuple[int, ...],
        hidden: Tensor,
        memory: Memory,
        row: int,
    ) -> XlnetReading:
        """The reading of a sentence that begins with a prefix, without the log-probabilities of the new pieces."""
        firsts = tuple(np.cumsum([0, *map(len, split)]).tolist())
        count = len(ids) - prefix.count
        return XlnetReading(
            ids,
            firsts,
            torch.cat([prefix.key, memory.key[:, :, row, :count]], 2),
            torch.cat([prefix.value, memory.value[:, :, row, :count]], 2),
            torch.cat([prefix.reading.hidden[: prefix.count + 1], hidden[:count]]),
            prefix.reading.log_probs[: prefix.count],
        )

    def _scored(self, readings: Sequence[XlnetReading], shared: Sequence[_Prefix]) -> list[XlnetReading]:
        """Add the log-probabilities of the new pieces to readings. A backward reader has none."""
        if self.backward:
            return list(readings)
        targets = [[*r.ids[prefix.count :], self.end] for r, prefix in zip(readings, shared, strict=True)]
        hidden = torch.cat([r.hidden[prefix.count :] for r, prefix in zip(readings, shared, strict=True)])
        flat = self.network.log_prob_of(hidden, torch.tensor([target for row in targets for target in row])).double()
        parts = torch.split(flat, [len(row) for row in targets])
        return [replace(r, log_probs=torch.cat([r.log_probs, part])) for r, part in zip(readings, parts, strict=True)]

    def extend(self, rows: Sequence[Sequence[list[int]]], prefixes: Sequence[_Prefix]) -> tuple[Tensor, Memory]:
        """Read several rows of pieces after each prefix.

        Returns the predicting states [prefixes x rows, time, d] and the keys and values of the rows. All prefixes get
        the same number of rows; missing ones are padding.
        """
        most = max(map(len, rows))
        ids, _ = padded([row for some in rows for row in (*some, *[()] * (most - len(some)))], self.end)
        return self.network.transformer.causal(ids, backward=self.backward, memory=_memory(prefixes))

    def log_prob(self, reading: XlnetReading) -> float:
        return float(reading.log_probs.sum())

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[XlnetReading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word in each slot."""
        read = [len(slot.words) - slot.end if self.backward else slot.start for slot in slots]
        states = torch.stack([r.hidden[r.firsts[at]] for r, at in zip(readings, read, strict=True)])
        return self.pieces.log_dist(self.network(states), slots)

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[XlnetReading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences. Only pieces from the slot on are computed, and none of them twice."""
        scoring = self.scoring(slots, fillings, readings)
        scoring.advance([range(len(some)) for some in fillings])
        return scoring.bounds

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[XlnetReading]
    ) -> XlnetScoring:
        """Score filled slots only as precisely as a decision needs."""
        rows = [
            ids_from_slot(slot, words, self.pieces.flat, self._shown_ids)
            for slot, words in zip(slots, fillings, strict=True)
        ]
        prefixes = [_Prefix(r, r.firsts[slot.start]) for r, slot in zip(readings, slots, strict=True)]
        scores = [self._bounds_of(slot, words) for slot, words in zip(slots, fillings, strict=True)]
        return XlnetScoring(_FilledSlots(self, rows, prefixes), scores, row_lengths(rows))

    def _bounds_of(self, slot: Slot, fillings: Sequence[Words]) -> list[ScoreBound]:
        """The remembered bounds of a slot's fillings, which scoring lowers."""
        scores = []
        for key in filled_keys(slot, fillings):
            score = self._memo.get(key)
            if score is None:
                score = ScoreBound()
                self._memo.put(key, score)
            scores.append(score)
        self._memo.trim(_KEPT)
        return scores

    def _shown_ids(self, words: Words, start: int) -> list[int]:
        return self.pieces.flat(text.surface(words)[start:])


@dataclass(frozen=True)
class _FilledSlots:
    """The fillings that XlnetScoring scores: rows of pieces from the slot to the end of the sentence."""

    reader: XlnetReader
    rows: Sequence[list[list[int]]]
    prefixes: Sequence[_Prefix]

    @property
    def network(self) -> XlnetLM:
        return self.reader.network

    @property
    def _head(self) -> tuple[Tensor, Tensor]:
        return self.network.transformer.word_embedding.weight, self.network.lm_loss.bias

    def parts(self, wanted: Sequence[SlotFillings]) -> list[list[SlotFillings]]:
        taken = [
            SlotFillings(one.slot, one.numbers[some])
            for one in wanted
            for some in _slices(self._rows_of(one), self.prefixes[one.slot])
        ]
        return [[taken[at] for at in group] for group in groups(row_lengths(map(self._rows_of, taken)), fits)]

    def _rows_of(self, fillings: SlotFillings) -> list[list[int]]:
        return [self.rows[fillings.slot][number] for number in fillings.numbers]

    def read(self, part: Sequence[SlotFillings]) -> list[SlotStates]:
        rows, prefixes = [self._rows_of(one) for one in part], [self.prefixes[one.slot] for one in part]
        hidden, _ = self.reader.extend(rows, prefixes)
        by_row = hidden.view(len(rows), -1, *hidden.shape[1:])
        # The first piece of every filling of a slot is predicted from the same state.
        before = torch.stack([prefix.reading.hidden[prefix.count] for prefix in prefixes])
        states = []
        for at, (some, prefix) in enumerate(zip(rows, prefixes, strict=True)):
            targets = [[*row, self.reader.end] for row in some]
            log_prob = float(prefix.reading.log_probs[: prefix.count].sum()) - self.log_sums[part[at].slot]
            firsts = torch.tensor([row[0] for row in targets])
            lengths = [len(row) for row in some]
            states.append(
                SlotStates(
                    log_prob + picked_logits(before[at : at + 1], firsts, *self._head).double().numpy(),
                    torch.cat([by_row[at, number, :length] for number, length in enumerate(lengths)]),
                    torch.tensor([target for row in targets for target in row[1:]], dtype=torch.long),
                    lengths,
                )
            )
        return states

    @cached_property
    def log_sums(self) -> list[float]:
        """For each slot, the log-sum-exp that normalises the prediction of its first piece."""
        before = torch.stack([prefix.reading.hidden[prefix.count] for prefix in self.prefixes])
        with torch.inference_mode():
            found: list[float] = log_sum_exp(before, *self._head).tolist()
        return found


def _shared_prefix(ids: Sequence[int], before: XlnetReading) -> _Prefix:
    """The pieces that a sentence shares with a reading."""
    return _Prefix(before, common_prefix(ids, before.ids))


def _memory(prefixes: Sequence[_Prefix]) -> Memory:
    """The cached keys and values of prefixes."""
    key, real = stacked_at_end([prefix.key for prefix in prefixes], 2)
    value, _ = stacked_at_end([prefix.value for prefix in prefixes], 2)
    return Memory(key, value, real)


def _slices(rows: Sequence[Sequence[int]], prefix: _Prefix) -> Iterator[slice]:
    """Split the rows of a slot if they are too long for one call."""
    longest = 1 + max(map(len, rows), default=0)
    num = max(1, _CALL_PAIRS // (longest * (longest + prefix.count)))
    yield from (slice(at, at + num) for at in range(0, len(rows), num))


def fits(batch: BatchShape) -> bool:
    """Return whether a call may have a shape."""
    size = batch.num_items * batch.most_rows * batch.longest
    return size <= _CALL_PIECES and size - batch.num_tokens <= max(_FREE_PADDING, _MOST_PADDING * size)
