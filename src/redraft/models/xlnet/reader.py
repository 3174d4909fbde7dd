"""XLNet as a model of sentences: scorer and proposer over words, with everything that was read kept.

A forward reader reads the words as a reader sees them, the opening one capitalised. A backward reader reads them from
the end; it only proposes, and takes every word in its plain form, because the opening word is not known from behind.
A masked reader proposes from both sides at once, which leaves nothing to keep.

A word may be several pieces, and its pieces are the same wherever it stands. Only words that are one piece are
proposed: nothing can be glued to a word or put between its pieces.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    stacked_at_end,
)
from redraft.models.output_layer import log_sum_exp, picked_logits
from redraft.models.pieces import SentencePieces
from redraft.models.precision import precision_name
from redraft.models.vocabulary import SPECIALS, Vocabulary
from redraft.models.xlnet.network import Memory, ReadingOrder, XlnetLM
from redraft.models.xlnet.scoring import ScoreBound, SlotFillings, SlotStates, XlnetScoring
from redraft.numerics import Array

_CALL_PIECES = 1024  # read in one call: what is computed of them stays in the cache
_CALL_PAIRS = 4_000_000  # pieces that look at each other in one call; some 32 bytes each for every head
_MOST_PADDING = 0.2  # of a call's pieces: bounds what padding costs
_FREE_PADDING = 64  # pieces that cost less than another call would
_KEPT = 100_000  # scores that are remembered, some 50 a slot
_KNOWN = 1 << 18  # words whose pieces are remembered: a guard for servers that run for months


class PieceWords:
    """Between words and pieces. ``vocabulary`` holds the words that are one piece, after the special symbols."""

    def __init__(self, splitter: SentencePieces):
        whole = splitter.whole_words()
        self.splitter = splitter
        self.vocabulary = Vocabulary([*SPECIALS, *(word for word, _ in whole)])
        self._pieces = torch.tensor([splitter.end] * len(SPECIALS) + [piece for _, piece in whole])
        self._known: dict[str, tuple[int, ...]] = {}

    @property
    def proposable(self) -> NDArray[np.bool_]:
        return np.arange(len(self.vocabulary)) >= len(SPECIALS)

    def split(self, word: str) -> tuple[int, ...]:
        """A word's pieces."""
        if word not in self._known:
            if len(self._known) > _KNOWN:
                self._known.clear()
            self._known[word] = self.splitter.split(word)
        return self._known[word]

    def flat(self, words: Iterable[str]) -> list[int]:
        """The pieces of several words."""
        return [piece for word in words for piece in self.split(word)]

    def log_dist(self, logits: Tensor, slots: Sequence[Slot]) -> NDArray[np.float32]:
        """Logits [slots, pieces] to log-probabilities [slots, words]."""
        logits = logits.float()
        log_probs = logits[:, self._pieces] - logits.logsumexp(1, keepdim=True)
        log_probs[:, : len(SPECIALS)] = -np.inf
        dist: NDArray[np.float32] = log_probs.numpy()
        self.vocabulary.use_plain_openings(dist, slots)
        return dist


@dataclass(frozen=True, slots=True)
class XlnetReading:
    """A sentence as one reader has read it; the arrays have a row for each number of pieces read, from none to all."""

    ids: tuple[int, ...]  # in reading order
    firsts: tuple[int, ...]  # pieces read before each word, and in all
    key: Tensor  # [layers, heads, pieces + 1, size]
    value: Tensor
    hidden: Tensor  # [pieces + 1, d]: predicts the piece that comes next
    log_probs: Tensor  # [pieces + 1], float64: each piece given those before it, then the end


@dataclass(frozen=True, slots=True)
class _Start:
    """Where reading goes on: after some pieces of a reading."""

    reading: XlnetReading
    count: int

    @property
    def key(self) -> Tensor:
        return self.reading.key[:, :, : self.count + 1]

    @property
    def value(self) -> Tensor:
        return self.reading.value[:, :, : self.count + 1]


class XlnetReader:
    """A trained network that reads forward, or backward."""

    def __init__(self, name: str, network: XlnetLM, words: PieceWords, *, backward: bool = False):
        self.name = name
        self.vocabulary = words.vocabulary
        self.network, self.pieces, self.backward = network.eval(), words, backward
        splitter = words.splitter
        self.begin, self.end = (splitter.end, splitter.begin) if backward else (splitter.begin, splitter.end)
        self._nothing = self._read_nothing()
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
    def _read_nothing(self) -> XlnetReading:
        hidden, kept = self.network.transformer.causal(torch.tensor([[self.begin]]), backward=self.backward)
        return XlnetReading(
            (), (0,), kept.key[:, :, 0], kept.value[:, :, 0], hidden[0], torch.empty(0, dtype=torch.float64)
        )

    def _split(self, words: Words) -> list[tuple[int, ...]]:
        """Pieces of each word, all in reading order."""
        if self.backward:
            return [self.pieces.split(word)[::-1] for word in reversed(words)]
        return [self.pieces.split(word) for word in text.surface(words)]

    @torch.inference_mode()
    def read(self, sentences: Sequence[Words], old: Sequence[XlnetReading | None]) -> list[XlnetReading]:
        """Read sentences, each from where it leaves its old reading."""
        split = [self._split(words) for words in sentences]
        ids = [tuple(piece for word in words for piece in word) for words in split]
        starts = [_leaving(new, before or self._nothing) for new, before in zip(ids, old, strict=True)]
        new = [[list(row[start.count :])] for row, start in zip(ids, starts, strict=True)]
        readings: list[XlnetReading | None] = [None] * len(ids)
        for group in groups(_lengths(new), _fits):
            hidden, kept = self.go_on([new[i] for i in group], [starts[i] for i in group])
            for row, i in enumerate(group):
                readings[i] = self._extended(starts[i], split[i], ids[i], hidden[row], kept, row)
        return self._scored([reading for reading in readings if reading], starts)

    def _extended(
        self, start: _Start, split: list[tuple[int, ...]], ids: tuple[int, ...], hidden: Tensor, kept: Memory, row: int
    ) -> XlnetReading:
        """The reading that goes on from another, still without the scores of what is new."""
        firsts = tuple(np.cumsum([0, *map(len, split)]).tolist())
        count = len(ids) - start.count
        return XlnetReading(
            ids,
            firsts,
            torch.cat([start.key, kept.key[:, :, row, :count]], 2),
            torch.cat([start.value, kept.value[:, :, row, :count]], 2),
            torch.cat([start.reading.hidden[: start.count + 1], hidden[:count]]),
            start.reading.log_probs[: start.count],
        )

    def _scored(self, readings: Sequence[XlnetReading], starts: Sequence[_Start]) -> list[XlnetReading]:
        """Readings with the log-probabilities of what is new in them. A backward reader scores nothing."""
        if self.backward:
            return list(readings)
        targets = [[*r.ids[start.count :], self.end] for r, start in zip(readings, starts, strict=True)]
        hidden = torch.cat([r.hidden[start.count :] for r, start in zip(readings, starts, strict=True)])
        flat = self.network.log_prob_of(hidden, torch.tensor([target for row in targets for target in row])).double()
        parts = torch.split(flat, [len(row) for row in targets])
        return [
            XlnetReading(r.ids, r.firsts, r.key, r.value, r.hidden, torch.cat([r.log_probs, part]))
            for r, part in zip(readings, parts, strict=True)
        ]

    def go_on(self, rows: Sequence[Sequence[list[int]]], starts: Sequence[_Start]) -> tuple[Tensor, Memory]:
        """Read on from each start with each of its rows of pieces.

        Gives what predicts [starts x rows, time, d] and what was kept; a start with fewer rows than another is
        filled up with empty ones.
        """
        most = max(map(len, rows))
        ids, _ = padded([row for some in rows for row in (*some, *[()] * (most - len(some)))], self.end)
        return self.network.transformer.causal(ids, backward=self.backward, memory=_memory(starts))

    def log_prob(self, reading: XlnetReading) -> float:
        return float(reading.log_probs.sum())

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[XlnetReading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of the words that a sentence may hold at each slot."""
        read = [len(slot.words) - slot.end if self.backward else slot.start for slot in slots]
        states = torch.stack([r.hidden[r.firsts[at]] for r, at in zip(readings, read, strict=True)])
        return self.pieces.log_dist(self.network(states), slots)

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[XlnetReading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences; only what comes from the slot on is computed, and not twice."""
        scoring = self.scoring(slots, fillings, readings)
        scoring.advance([range(len(some)) for some in fillings])
        return scoring.bounds

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[XlnetReading]
    ) -> XlnetScoring:
        """The same, as closely as is asked for."""
        rows = [
            ids_from_slot(slot, words, self.pieces.flat, self._shown_ids)
            for slot, words in zip(slots, fillings, strict=True)
        ]
        starts = [_Start(r, r.firsts[slot.start]) for r, slot in zip(readings, slots, strict=True)]
        scores = [self._known(slot, words) for slot, words in zip(slots, fillings, strict=True)]
        return XlnetScoring(_FilledSlots(self, rows, starts), scores, _lengths(rows))

    def _known(self, slot: Slot, fillings: Sequence[Words]) -> list[ScoreBound]:
        """What is known of the scores of a slot's fillings, to be refined."""
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
    """What XlnetScoring scores: for each slot rows of pieces, from where the slot starts to the end of the sentence."""

    reader: XlnetReader
    rows: Sequence[list[list[int]]]
    starts: Sequence[_Start]

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
            for some in _slices(self._rows_of(one), self.starts[one.slot])
        ]
        return [[taken[at] for at in group] for group in groups(_lengths(map(self._rows_of, taken)), _fits)]

    def _rows_of(self, filled: SlotFillings) -> list[list[int]]:
        return [self.rows[filled.slot][number] for number in filled.numbers]

    def read(self, part: Sequence[SlotFillings]) -> list[SlotStates]:
        """Each slot's rows of pieces and the end, read from where the slot starts."""
        rows, starts = [self._rows_of(one) for one in part], [self.starts[one.slot] for one in part]
        hidden, _ = self.reader.go_on(rows, starts)
        by_row = hidden.view(len(rows), -1, *hidden.shape[1:])
        # What comes first in a slot is predicted from the same state in every row of it.
        before = torch.stack([start.reading.hidden[start.count] for start in starts])
        reads = []
        for at, (some, start) in enumerate(zip(rows, starts, strict=True)):
            targets = [[*row, self.reader.end] for row in some]
            log_prob = float(start.reading.log_probs[: start.count].sum()) - self.log_sums[part[at].slot]
            firsts = torch.tensor([row[0] for row in targets])
            lengths = [len(row) for row in some]
            reads.append(
                SlotStates(
                    log_prob + picked_logits(before[at : at + 1], firsts, *self._head).double().numpy(),
                    torch.cat([by_row[at, number, :length] for number, length in enumerate(lengths)]),
                    torch.tensor([target for row in targets for target in row[1:]], dtype=torch.long),
                    lengths,
                )
            )
        return reads

    @cached_property
    def log_sums(self) -> list[float]:
        """Of what may come first in each slot."""
        before = torch.stack([start.reading.hidden[start.count] for start in self.starts])
        with torch.inference_mode():
            found: list[float] = log_sum_exp(before, *self._head).tolist()
        return found


class XlnetMaskedReader:
    """Proposes what may stand in a slot, given the words on both sides of it."""

    def __init__(self, name: str, network: XlnetLM, words: PieceWords):
        self.name = name
        self.vocabulary = words.vocabulary
        self._network, self._words = network.eval(), words

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    @property
    def proposable(self) -> NDArray[np.bool_]:
        return self._words.proposable

    def read(self, sentences: Sequence[Words], old: Sequence[None]) -> list[None]:
        """Nothing: what a word is to its neighbours hangs on which of them is asked for."""
        return [None] * len(sentences)

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[None]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word standing in each slot."""
        result = np.empty((len(slots), len(self.vocabulary)), dtype=np.float32)
        before = [[self._words.splitter.begin, *self._words.flat(text.surface(slot.before))] for slot in slots]
        after = [[*self._words.flat(slot.after), self._words.splitter.end] for slot in slots]
        rows = [[[*left, self._words.splitter.padding, *right]] for left, right in zip(before, after, strict=True)]
        for group in groups(_lengths(rows), _fits):
            hidden = self._queries([rows[i][0] for i in group], [len(before[i]) for i in group])
            result[group] = self._words.log_dist(self._network(hidden), [slots[i] for i in group])
        return result

    def _queries(self, rows: Sequence[list[int]], places: Sequence[int]) -> Tensor:
        """The query stream where each row is asked for, [rows, d]."""
        ids, real = padded(rows, self._words.splitter.padding)
        asked = torch.arange(ids.shape[1]) == torch.tensor(places)[:, None]
        hidden: Tensor = self._network.transformer(ids, real, asked)[asked]
        return hidden


def reader(name: str, network: XlnetLM, words: PieceWords, order: ReadingOrder) -> "XlnetReader | XlnetMaskedReader":
    """A network as the reader of an order."""
    name = f"{name}/{order.value}"
    if order is ReadingOrder.MASKED:
        return XlnetMaskedReader(name, network, words)
    return XlnetReader(name, network, words, backward=order is ReadingOrder.BACKWARD)


def _leaving(ids: Sequence[int], before: XlnetReading) -> _Start:
    """Where a sentence leaves the one that was read before."""
    return _Start(before, common_prefix(ids, before.ids))


def _memory(starts: Sequence[_Start]) -> Memory:
    """What was read before each start, padded in front."""
    key, real = stacked_at_end([start.key for start in starts], 2)
    value, _ = stacked_at_end([start.value for start in starts], 2)
    return Memory(key, value, real)


def _slices(rows: Sequence[Sequence[int]], start: _Start) -> Iterator[slice]:
    """Which rows of a slot are read at a time: all, unless they are so long that memory would not do."""
    longest = 1 + max(map(len, rows), default=0)
    num = max(1, _CALL_PAIRS // (longest * (longest + start.count)))
    yield from (slice(at, at + num) for at in range(0, len(rows), num))


def _lengths(rows: Iterable[Sequence[Sequence[int]]]) -> list[list[int]]:
    return [[len(row) for row in some] for some in rows]


def _fits(batch: BatchShape) -> bool:
    size = batch.num_items * batch.most_rows * batch.longest
    return size <= _CALL_PIECES and size - batch.num_tokens <= max(_FREE_PADDING, _MOST_PADDING * size)
