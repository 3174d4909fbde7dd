"""Any causal language model as a scorer of sentences, and as a proposer of next words.

The log-probability of a sentence is that of the tokens of its words, one word after the other, and of a line's end; see
redraft.models.causal.line for how words become tokens.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.errors import InputError
from redraft.models.base import Pace, Slot, Words
from redraft.models.batching import BatchShape, Memo, common_prefix, groups, padded
from redraft.models.causal import hub
from redraft.models.causal.line import CausalLine, Tokens, WordTable
from redraft.models.causal.network import CausalNetwork, HubNetwork, Output, Past, Row
from redraft.models.checkpoints import fingerprint, local_path
from redraft.models.precision import compute_dtype, precision_name
from redraft.numerics import Array

_MAX_SCORES = 1 << 26  # numbers in one call's output, a vocabulary for each token: a quarter of a gigabyte
_KEPT = 1 << 16  # sentences whose scores are remembered
_CALL_TOKENS = 26  # a call costs as much as this many tokens: more padding than that and two calls are cheaper


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as a model has read it. What a new reading shares with its old one is held once, but for ``past``."""

    tokens: tuple[Tokens, ...]  # of each word
    log_probs: tuple[float, ...]  # of each word given those before it, then of the end
    following: tuple[Tensor, ...]  # after no word, one word, ... all: log-probabilities [vocabulary] of the next token
    past: Past  # of the sentence alone, without its start

    def num_tokens(self, num_words: int) -> int:
        return sum(map(len, self.tokens[:num_words]))


class _Unread(NamedTuple):
    """A sentence that is being scored: the tokens left, what was read, the log-probability up to the first one left."""

    words: Words
    tokens: Tokens
    past: Past
    kept: int
    log_prob: float
    origin: "_Origin | None" = None  # None where the score was known, or what was read is not kept
    logits: tuple[Tensor, ...] = ()  # after each token that was read, call by call


class _Origin(NamedTuple):
    """Where the scoring of a sentence set out: its words' tokens, and how many of them a reading had."""

    reading: Reading
    tokens: tuple[Tokens, ...]
    kept: int


class _Scored(NamedTuple):
    """A sentence that was scored to its end: what a reading of it is made of."""

    origin: _Origin
    past: Past  # of the first ``kept`` tokens
    kept: int
    added: Past  # of the others
    logits: tuple[Tensor, ...]


class CausalReader:
    """A causal language model with its tokenizer, at the start of a line or after a context.

    ``lead`` is what every text of this model begins with (None: its own begin token, if it has one). ``words`` are
    those that it proposes, where one token writes them.
    """

    def __init__(
        self,
        name: str,
        network: CausalNetwork,
        tokenizer: Any,
        *,
        context: str = "",
        lead: str | None = None,
        words: Sequence[str] = (),
    ):
        self.name = f"{name} after {context!r}" if context else name
        self._network = network
        self.line = CausalLine(self.name, tokenizer, network.max_tokens, network.num_tokens, context=context, lead=lead)
        self.memo: Memo[Words, float] = Memo()
        self._scored: dict[Words, _Scored] = {}
        self._empty = self._read_start()
        self._table = WordTable(words, self.line) if words else None

    @property
    def precision(self) -> str:
        return precision_name(self._prefix.keys.dtype)

    # Scoring

    @torch.inference_mode()
    def read(self, sentences: Sequence[Words], old: Sequence[Reading | None]) -> list[Reading]:
        """Read sentences, each from where it leaves its old reading."""
        before = [reading or self._empty for reading in old]
        result = [self._recall(*arguments) for arguments in zip(sentences, before, strict=True)]
        left = [i for i, reading in enumerate(result) if reading is None]
        tokens = {i: self.line.tokens(sentences[i]) for i in left}
        for i in left:
            self.line.require_fit(sentences[i], tokens[i])
        kept = {i: common_prefix(tokens[i], before[i].tokens) for i in left}
        rows = {i: Row(_flat(tokens[i][kept[i] :]), before[i].past, before[i].num_tokens(kept[i])) for i in left}
        for group in self.groups([rows[i] for i in left]):
            chosen = [left[at] for at in group]
            logits, added = self.run([rows[i] for i in chosen])
            for at, i in enumerate(chosen):
                length = len(rows[i].tokens)
                past = before[i].past.first(rows[i].kept).then(Past(*(part[at] for part in added)).first(length))
                result[i] = self._reading(_Origin(before[i], tokens[i], kept[i]), logits[at, :length], past)
        for i, row in rows.items():
            if not row.tokens:
                origin = _Origin(before[i], tokens[i], kept[i])
                result[i] = self._reading(origin, before[i].following[0][:0], row.past.first(row.kept))
        return [reading for reading in result if reading is not None]

    def _recall(self, words: Words, old: Reading) -> Reading | None:
        """The reading of a sentence that was scored from the old one just now: a proposal that was accepted."""
        found = self._scored.get(words)
        if found is None or found.origin.reading is not old:
            return None
        return self._reading(found.origin, torch.cat(found.logits), found.past.first(found.kept).then(found.added))

    def _reading(self, origin: _Origin, logits: Tensor, past: Past) -> Reading:
        """``logits`` are those after each token that the old reading did not have."""
        old, tokens, kept = origin
        log_dists = [old.following[kept], *logits.float().log_softmax(-1)]
        log_probs, following = list(old.log_probs[:kept]), list(old.following[: kept + 1])
        at = 0
        for word in tokens[kept:]:
            log_probs.append(sum(float(log_dists[at + i][token]) for i, token in enumerate(word)))
            at += len(word)
            following.append(log_dists[at].clone())
        log_probs.append(float(log_dists[at][self.line.end]))
        return Reading(tokens, tuple(log_probs), tuple(following), past)

    def log_prob(self, reading: Reading) -> float:
        return sum(reading.log_probs)

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Reading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences; only what comes from the slot on is computed."""
        scoring = self.scoring(slots, fillings, readings)
        scoring.advance([range(len(filled)) for filled in fillings])
        return scoring.bounds

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Reading]
    ) -> "CausalScoring":
        """The same, a few tokens at a time."""
        rows = [
            [self._unread(slot.fill(words), slot.start, reading) for words in filled]
            for slot, filled, reading in zip(slots, fillings, readings, strict=True)
        ]
        scoring = CausalScoring(self, rows)
        self._scored = scoring.scored  # the latest alone: it is large
        return scoring

    def _unread(self, words: Words, start: int, reading: Reading) -> "_Unread":
        """A sentence that is as a reading has it up to a place, to be scored from there unless it was scored before."""
        if (known := self.memo.get(words)) is not None:
            return _Unread(words, (), reading.past, 0, known)
        tokens = self.line.tokens(words)
        if not self.line.fits(tokens):
            return _Unread(words, (), reading.past, 0, -np.inf)
        kept = min(common_prefix(tokens, reading.tokens), start)
        score = self._start_score(reading, tokens, kept)
        origin = _Origin(reading, tokens, kept)
        return _Unread(words, _flat(tokens[kept:]), reading.past, reading.num_tokens(kept), score, origin)

    def remember(self, words: Words, log_prob: float) -> None:
        """A chain often comes back to a sentence: a refused proposal, the word that stood there already."""
        self.memo.put(words, log_prob)
        self.memo.trim(_KEPT)

    def _start_score(self, reading: Reading, tokens: tuple[Tokens, ...], kept: int) -> float:
        """Log-probability of the words that were read before, and of the first token after them: known already."""
        following = _flat(tokens[kept:])
        first = following[0] if following else self.line.end
        return sum(reading.log_probs[:kept]) + float(reading.following[kept][first])

    # The network

    @torch.inference_mode()
    def _read_start(self) -> Reading:
        """The reading of no words at all, which every other goes on from."""
        try:
            logits, self._prefix = self._network.begin(self.line.start)
        except InputError as error:
            raise InputError(f"{self.name} cannot be used: {error}") from error
        log_dist = logits.float().log_softmax(-1).clone()
        return Reading((), (float(log_dist[self.line.end]),), (log_dist,), self._prefix.first(0))

    def run(self, rows: Sequence[Row]) -> Output:
        """Read rows after the start."""
        return self._network.run(rows, self._prefix)

    def groups(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """Indexes of rows that have tokens, of like length, as many as fit into a call."""
        most = max(1, _MAX_SCORES // len(self._empty.following[0]))
        lengths = [[len(row.tokens)] if row.tokens else [] for row in rows]

        def fits(batch: BatchShape) -> bool:
            size = batch.num_items * batch.longest
            return size <= most and size - batch.num_tokens <= _CALL_TOKENS

        return groups(lengths, fits)

    # Proposing

    @property
    def words(self) -> tuple[str, ...]:
        return self._table.words if self._table else ()

    @property
    def proposable(self) -> NDArray[np.bool_]:
        return self._table.proposable if self._table else np.empty(0, dtype=np.bool_)

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Reading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of the next word, given the words before it; -inf for several tokens."""
        if self._table is None:
            raise ValueError("this reader was made without words to propose")
        dists = []
        for slot, log_dist in zip(slots, self._following(slots, readings), strict=True):
            glued = not self.line.pieces((*slot.before, "x"))[-1].startswith(" ")
            after_mark = bool(slot.before) and not text.is_word(slot.before[-1])
            ids = self._table.ids(slot.opens_sentence, glued, after_mark)
            dists.append(np.where(ids < 0, -np.inf, log_dist[ids]).astype(np.float32))
        return np.stack(dists)

    @torch.inference_mode()
    def _following(self, slots: Sequence[Slot], readings: Sequence[Reading]) -> list[NDArray[np.float32]]:
        """What is expected after the words before each slot, whatever stands in it.

        A mark before the slot may have been read as one token with a mark after it; then it is read by itself.
        """
        result = [reading.following[slot.start] for slot, reading in zip(slots, readings, strict=True)]
        rows: dict[int, Row] = {}
        for i, (slot, reading) in enumerate(zip(slots, readings, strict=True)):
            if slot.before and not reading.tokens[slot.start - 1]:
                tokens = self.line.tokens(slot.before)
                kept = common_prefix(tokens, reading.tokens)
                rows[i] = Row(_flat(tokens[kept:]), reading.past, reading.num_tokens(kept))
        places = list(rows)
        for group in self.groups(list(rows.values())):
            logits, _ = self.run([rows[places[at]] for at in group])
            for row, at in enumerate(group):
                result[places[at]] = logits[row, len(rows[places[at]].tokens) - 1].float().log_softmax(-1)
        return [log_dist.numpy() for log_dist in result]


def _log_probs_of(logits: Tensor, tokens: Sequence[Tokens]) -> list[float]:
    """Log-probability of a row of tokens, each under the scores of its place; logits are [rows, tokens, vocabulary]."""
    ids, real = padded(tokens)
    log_probs = logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1).double() - logits.float().logsumexp(-1)
    return [float(score) for score in (log_probs * real).sum(1)]


class CausalScoring:
    """Sentences, each scored as far as was asked for. A score so far is at least that of the whole sentence."""

    pace = Pace(leaders=4, stride=3)

    def __init__(self, reader: CausalReader, rows: list[list[_Unread]]):
        self._reader, self._rows = reader, rows
        self._num_kept = 0
        self.scored: dict[Words, _Scored] = {}  # those that were read to their end, as many as memory bears

    @property
    def bounds(self) -> list[Array]:
        return [np.array([row.log_prob for row in rows]) for rows in self._rows]

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Tokens of each sentence that are still to be read."""
        return [np.array([len(row.tokens) for row in rows], dtype=np.int64) for rows in self._rows]

    @torch.inference_mode()
    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Read up to ``num`` more tokens of the sentences whose numbers are given for each slot; all by default."""
        places = [(i, j) for i, numbers in enumerate(wanted) for j in numbers if self._rows[i][j].tokens]
        left = [self._rows[i][j] for i, j in places]
        chunks = [Row(row.tokens[:num], row.past, row.kept) for row in left]
        for group in self._reader.groups(chunks):
            logits, added = self._reader.run([chunks[at] for at in group])
            following = [(*left[at].tokens, self._reader.line.end)[1 : len(chunks[at].tokens) + 1] for at in group]
            scores = _log_probs_of(logits, following)
            self._num_kept += logits.numel()
            for row, (at, score) in enumerate(zip(group, scores, strict=True)):
                i, j = places[at]
                length = len(chunks[at].tokens)
                past = Past(*(part[row] for part in added)).first(length)
                self._rows[i][j] = self._after(left[at], past, logits[row, :length], score)

    def _after(self, row: _Unread, added: Past, logits: Tensor, score: float) -> _Unread:
        """A sentence of which some more tokens were read."""
        origin = row.origin if self._num_kept <= _MAX_SCORES else None
        seen = () if origin is None else (*row.logits, logits)
        log_prob, left = row.log_prob + score, row.tokens[len(logits) :]
        if left:
            past = row.past.first(row.kept).then(added)
            return _Unread(row.words, left, past, row.kept + len(logits), log_prob, origin, seen)
        self._reader.remember(row.words, log_prob)
        if origin is not None:
            self.scored[row.words] = _Scored(origin, row.past, row.kept, added, seen)
        return _Unread(row.words, (), row.past, row.kept, log_prob)


def load_causal(
    location: str, *, context: str = "", words: Sequence[str] = (), dtype: torch.dtype | None = None
) -> CausalReader:
    """A model that was pulled, by its name, or any that transformers loads: a hub name, a folder, a ``.gguf`` file.

    It computes in the fastest precision unless one is given.
    """
    from redraft.models.pull import SOURCES, pulled

    if source := SOURCES.get(location):
        network, tokenizer = _load(str(pulled(location)), dtype)
        return CausalReader(location, network, tokenizer, context=context, lead=source.lead, words=words)
    network, tokenizer = _load(location, dtype)
    path = local_path(location)
    name = f"{location}@{fingerprint(path)}" if path.exists() else location
    return CausalReader(name, network, tokenizer, context=context, words=words)


def _load(location: str, dtype: torch.dtype | None) -> tuple[CausalNetwork, Any]:
    """Network and tokenizer; what transformers need not load is loaded without it."""
    from redraft.models.causal import llama

    folder = local_path(location)
    if llama.can_load(folder):
        return llama.load(folder, dtype or compute_dtype())
    tokenizer, model = hub.load(location, dtype)
    return HubNetwork(model), tokenizer


def _flat(tokens: Sequence[Tokens]) -> Tokens:
    return tuple(itertools.chain.from_iterable(tokens))
