"""A causal language model as a scorer of sentences and a proposer of next words.

The log-probability of a sentence is the sum over the tokens of its words and the end of the line. See
redraft.models.causal.line for how words become tokens.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.errors import InputError
from redraft.models.base import Pace, Slot, Words
from redraft.models.batching import BatchShape, Memo, common_prefix, groups, padded
from redraft.models.causal.line import CausalLine, TextTokenizer, Tokens, WordTable
from redraft.models.causal.network import CausalNetwork, KvCache, NetworkOutput, TokenRow
from redraft.models.precision import precision_name
from redraft.numerics import Array

_MAX_SCORES = 1 << 26  # logits in the output of one call: a quarter of a gigabyte
_KEPT = 1 << 16  # sentences whose scores are remembered
_CALL_TOKENS = 26  # a call costs as much as this many tokens: with more padding than that, two calls are cheaper


@dataclass(frozen=True, slots=True)
class CausalReading:
    """A sentence as a model has read it. A new reading shares its tensors with its old one, except for ``cache``."""

    tokens: tuple[Tokens, ...]  # of each word
    log_probs: tuple[float, ...]  # of each word given the words before it, then of the end
    next_log_dists: tuple[Tensor, ...]  # log-probabilities [vocabulary] of the next token after 0, 1, ... all words
    cache: KvCache  # of the sentence, without its start

    def num_tokens(self, num_words: int) -> int:
        return sum(map(len, self.tokens[:num_words]))


class _Candidate(NamedTuple):
    """A sentence that is being scored."""

    words: Words
    tokens: Tokens  # that are not read yet
    cache: KvCache
    num_cached: int
    log_prob: float  # up to and including the first token that is not read
    origin: "_Origin | None" = None  # None if the score was known, or if there is no room to keep what was read
    logits: tuple[Tensor, ...] = ()  # after each token that was read, one tensor per call


class _Origin(NamedTuple):
    """The reading from which the scoring of a sentence started."""

    reading: CausalReading
    tokens: tuple[Tokens, ...]  # of each word of the new sentence
    num_shared: int  # words that the reading had


class _Scored(NamedTuple):
    """A sentence that was scored to its end: everything that a reading of it needs."""

    origin: _Origin
    cache: KvCache  # of the first ``num_cached`` tokens
    num_cached: int
    added: KvCache  # of the others
    logits: tuple[Tensor, ...]


class CausalReader:
    """A causal language model with its tokenizer. It reads sentences at the start of a line or after a context.

    ``lead`` is what every text of the model begins with (None: its begin-of-text token, if it has one). ``words`` are
    the words that it proposes, if they are a single token.
    """

    def __init__(
        self,
        name: str,
        network: CausalNetwork,
        tokenizer: TextTokenizer,
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
    def read(self, sentences: Sequence[Words], old: Sequence[CausalReading | None]) -> list[CausalReading]:
        """Read sentences. Each is read from the first word that differs from its old reading."""
        before = [reading or self._empty for reading in old]
        result = [self._recall(*arguments) for arguments in zip(sentences, before, strict=True)]
        left = [i for i, reading in enumerate(result) if reading is None]
        tokens = {i: self.line.tokens(sentences[i]) for i in left}
        for i in left:
            self.line.require_fit(sentences[i], tokens[i])
        origins = {i: _Origin(before[i], tokens[i], common_prefix(tokens[i], before[i].tokens)) for i in left}
        rows = {i: _new_tokens(origin) for i, origin in origins.items()}
        for group in self.groups([rows[i] for i in left]):
            chosen = [left[at] for at in group]
            logits, added = self.run([rows[i] for i in chosen])
            for at, i in enumerate(chosen):
                length = len(rows[i].tokens)
                new = KvCache(*(part[at] for part in added)).first(length)
                cache = before[i].cache.first(rows[i].num_cached).then(new)
                result[i] = self._reading(origins[i], logits[at, :length], cache)
        for i, row in rows.items():
            if not row.tokens:
                result[i] = self._reading(origins[i], before[i].next_log_dists[0][:0], row.cache.first(row.num_cached))
        return [reading for reading in result if reading is not None]

    def _recall(self, words: Words, old: CausalReading) -> CausalReading | None:
        """Return the reading of a sentence that was just scored from the old one: a proposal that was accepted."""
        found = self._scored.get(words)
        if found is None or found.origin.reading is not old:
            return None
        cache = found.cache.first(found.num_cached).then(found.added)
        return self._reading(found.origin, torch.cat(found.logits), cache)

    def _reading(self, origin: _Origin, logits: Tensor, cache: KvCache) -> CausalReading:
        """Make a reading. ``logits`` are those after each token that the old reading did not have."""
        old, tokens, num_shared = origin
        log_dists = [old.next_log_dists[num_shared], *logits.float().log_softmax(-1)]
        log_probs, next_log_dists = list(old.log_probs[:num_shared]), list(old.next_log_dists[: num_shared + 1])
        at = 0
        for word in tokens[num_shared:]:
            log_probs.append(sum(float(log_dists[at + i][token]) for i, token in enumerate(word)))
            at += len(word)
            next_log_dists.append(log_dists[at].clone())
        log_probs.append(float(log_dists[at][self.line.end]))
        return CausalReading(tokens, tuple(log_probs), tuple(next_log_dists), cache)

    def log_prob(self, reading: CausalReading) -> float:
        return sum(reading.log_probs)

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[CausalReading]
    ) -> list[Array]:
        """Log-probabilities of whole sentences. Only tokens from the slot on are computed."""
        scoring = self.scoring(slots, fillings, readings)
        scoring.advance([range(len(filled)) for filled in fillings])
        return scoring.bounds

    def scoring(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[CausalReading]
    ) -> "CausalScoring":
        """Score filled slots a few tokens at a time."""
        candidates = [
            [self._candidate(slot.fill(words), slot.start, reading) for words in filled]
            for slot, filled, reading in zip(slots, fillings, readings, strict=True)
        ]
        scoring = CausalScoring(self, candidates)
        self._scored = scoring.scored  # of the latest scoring only: it is large
        return scoring

    def _candidate(self, words: Words, start: int, reading: CausalReading) -> _Candidate:
        """A sentence that equals a reading up to word ``start``. It is scored from there, unless its score is known."""
        if (known := self.memo.get(words)) is not None:
            return _Candidate(words, (), reading.cache, 0, known)
        tokens = self.line.tokens(words)
        if not self.line.fits(tokens):
            return _Candidate(words, (), reading.cache, 0, -np.inf)
        origin = _Origin(reading, tokens, min(common_prefix(tokens, reading.tokens), start))
        row = _new_tokens(origin)
        return _Candidate(words, row.tokens, row.cache, row.num_cached, self._known_log_prob(origin), origin)

    def remember(self, words: Words, log_prob: float) -> None:
        """Keep a score. A chain often returns to a sentence: a rejected proposal, or the word that was there before."""
        self.memo.put(words, log_prob)
        self.memo.trim(_KEPT)

    def _known_log_prob(self, origin: _Origin) -> float:
        """Log-probability of the shared words and of the first token after them."""
        reading, tokens, num_shared = origin
        left = _flat(tokens[num_shared:])
        first = left[0] if left else self.line.end
        return sum(reading.log_probs[:num_shared]) + float(reading.next_log_dists[num_shared][first])

    # The network

    @torch.inference_mode()
    def _read_start(self) -> CausalReading:
        """Read the start. Returns the reading of no words, which all others continue."""
        try:
            logits, self._prefix = self._network.begin(self.line.start)
        except InputError as error:
            raise InputError(f"{self.name} cannot be used: {error}") from error
        log_dist = logits.float().log_softmax(-1).clone()
        return CausalReading((), (float(log_dist[self.line.end]),), (log_dist,), self._prefix.first(0))

    def run(self, rows: Sequence[TokenRow]) -> NetworkOutput:
        """Run the network on rows that follow the start."""
        return self._network.run(rows, self._prefix)

    def groups(self, rows: Sequence[TokenRow]) -> Iterator[list[int]]:
        """Yield the indices of rows to compute in one call. Rows without tokens are left out."""
        most = max(1, _MAX_SCORES // len(self._empty.next_log_dists[0]))
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

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[CausalReading]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of the next word given the words before the slot.

        They are -inf for words of several tokens.
        """
        if self._table is None:
            raise ValueError("this reader has no words to propose")
        dists = []
        for slot, log_dist in zip(slots, self._next_log_dists(slots, readings), strict=True):
            glued = not self.line.pieces((*slot.before, "x"))[-1].startswith(" ")
            after_mark = bool(slot.before) and not text.is_word(slot.before[-1])
            ids = self._table.ids(slot.opens_sentence, glued, after_mark)
            dists.append(np.where(ids < 0, -np.inf, log_dist[ids]).astype(np.float32))
        return np.stack(dists)

    @torch.inference_mode()
    def _next_log_dists(self, slots: Sequence[Slot], readings: Sequence[CausalReading]) -> list[NDArray[np.float32]]:
        """Log-probabilities [vocabulary] of the next token after the words before each slot.

        A punctuation mark before the slot may have been read as one token with a mark in the slot. Then it is read
        again by itself.
        """
        result = [reading.next_log_dists[slot.start] for slot, reading in zip(slots, readings, strict=True)]
        rows: dict[int, TokenRow] = {}
        for i, (slot, reading) in enumerate(zip(slots, readings, strict=True)):
            if slot.before and not reading.tokens[slot.start - 1]:
                tokens = self.line.tokens(slot.before)
                rows[i] = _new_tokens(_Origin(reading, tokens, common_prefix(tokens, reading.tokens)))
        places = list(rows)
        for group in self.groups(list(rows.values())):
            logits, _ = self.run([rows[places[at]] for at in group])
            for row, at in enumerate(group):
                result[places[at]] = logits[row, len(rows[places[at]].tokens) - 1].float().log_softmax(-1)
        return [log_dist.numpy() for log_dist in result]


def _log_probs_of(logits: Tensor, tokens: Sequence[Tokens]) -> list[float]:
    """Log-probability of each row of tokens under logits [rows, tokens, vocabulary]."""
    ids, real = padded(tokens)
    log_probs = logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1).double() - logits.float().logsumexp(-1)
    return [float(score) for score in (log_probs * real).sum(1)]


class CausalScoring:
    """Partial scores of sentences. The log-probability of a prefix is an upper bound of that of the sentence."""

    pace = Pace(leaders=4, stride=3)

    def __init__(self, reader: CausalReader, candidates: list[list[_Candidate]]):
        self._reader, self._candidates = reader, candidates
        self._num_logits = 0
        self.scored: dict[Words, _Scored] = {}  # sentences that were read to their end, as long as memory allows

    @property
    def bounds(self) -> list[Array]:
        return [np.array([candidate.log_prob for candidate in some]) for some in self._candidates]

    @property
    def num_left(self) -> list[NDArray[np.int64]]:
        """Tokens of each sentence that are not read yet."""
        return [np.array([len(one.tokens) for one in some], dtype=np.int64) for some in self._candidates]

    @torch.inference_mode()
    def advance(self, wanted: Sequence[Sequence[int]], num: int | None = None) -> None:
        """Read ``num`` more tokens, or all, of the sentences whose numbers are given for each slot."""
        places = [(i, j) for i, numbers in enumerate(wanted) for j in numbers if self._candidates[i][j].tokens]
        left = [self._candidates[i][j] for i, j in places]
        rows = [TokenRow(one.tokens[:num], one.cache, one.num_cached) for one in left]
        for group in self._reader.groups(rows):
            logits, added = self._reader.run([rows[at] for at in group])
            targets = [(*left[at].tokens, self._reader.line.end)[1 : len(rows[at].tokens) + 1] for at in group]
            scores = _log_probs_of(logits, targets)
            self._num_logits += logits.numel()
            for row, (at, score) in enumerate(zip(group, scores, strict=True)):
                i, j = places[at]
                length = len(rows[at].tokens)
                cache = KvCache(*(part[row] for part in added)).first(length)
                self._candidates[i][j] = self._advanced(left[at], cache, logits[row, :length], score)

    def _advanced(self, old: _Candidate, added: KvCache, logits: Tensor, score: float) -> _Candidate:
        """A sentence after some more of its tokens were read."""
        origin = old.origin if self._num_logits <= _MAX_SCORES else None
        kept_logits = () if origin is None else (*old.logits, logits)
        log_prob, left = old.log_prob + score, old.tokens[len(logits) :]
        if left:
            cache = old.cache.first(old.num_cached).then(added)
            num_cached = old.num_cached + len(logits)
            return _Candidate(old.words, left, cache, num_cached, log_prob, origin, kept_logits)
        self._reader.remember(old.words, log_prob)
        if origin is not None:
            self.scored[old.words] = _Scored(origin, old.cache, old.num_cached, added, kept_logits)
        return _Candidate(old.words, (), old.cache, old.num_cached, log_prob)


def _new_tokens(origin: _Origin) -> TokenRow:
    """The tokens of the words that the old reading does not have, after its cache."""
    reading, tokens, num_shared = origin
    return TokenRow(_flat(tokens[num_shared:]), reading.cache, reading.num_tokens(num_shared))


def _flat(tokens: Sequence[Tokens]) -> Tokens:
    return tuple(itertools.chain.from_iterable(tokens))
