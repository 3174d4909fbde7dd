"""Training the LSTM language models, forward and backward."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import corpus, text
from redraft.corpus import Encoded
from redraft.errors import CorpusError
from redraft.files import replacing
from redraft.models.lstm import LstmConfig, LstmLM
from redraft.models.vocabulary import END, START, UNKNOWN, Vocabulary
from redraft.training.loop import Schedule, train
from redraft.training.processes import WHOLE, Share, join
from redraft.training.progress import counted
from redraft.version import VERSION

Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")
NUM_WORDS = 50_000
_LEARNING_RATE = 2.5e-3  # the paper's 1e-4 is for far more steps than a laptop has time for
MAX_WORDS = 50  # a sentence; longer ones are cut
_POOL = 64  # batches that are sorted by length together


@dataclass(frozen=True)
class LmData:
    """A corpus as a word-level model reads it."""

    vocabulary: Vocabulary
    train: Encoded
    held_out: Encoded


def prepare(folder: Path, num_words: int = NUM_WORDS, cache: Path | None = None, *, quiet: bool = False) -> LmData:
    """Count words, keep the most frequent, encode. With ``cache`` the result is kept in that file."""
    fingerprint = json.dumps([VERSION, num_words, corpus.file_hashes(folder)])
    if cache and cache.exists():
        with np.load(cache) as kept:
            if str(kept["fingerprint"]) == fingerprint:
                return LmData(
                    Vocabulary(str(kept["words"]).split("\n")),
                    Encoded(kept["train_ids"], kept["train_starts"]),
                    Encoded(kept["held_ids"], kept["held_starts"]),
                )
    counts: Counter[str] = Counter()
    for line in counted(corpus.sentences(folder), "counting words:", quiet=quiet):
        if not corpus.is_held_out(line):
            counts.update(text.tokenise(line))
    vocabulary = Vocabulary.from_counts(counts, num_words)
    lines = counted(corpus.sentences(folder), "encoding:", quiet=quiet)
    train = encode(vocabulary, (line for line in lines if not corpus.is_held_out(line)))
    held_out = encode(vocabulary, (line for line in corpus.sentences(folder) if corpus.is_held_out(line)))
    if not len(train) or not len(held_out):
        raise CorpusError(f"{folder} is too small: {len(train)} sentences to train on, {len(held_out)} held out")
    if cache:
        _keep(cache, fingerprint, LmData(vocabulary, train, held_out))
    return LmData(vocabulary, train, held_out)


def _keep(cache: Path, fingerprint: str, data: LmData) -> None:
    with replacing(cache) as path, path.open("wb") as file:
        np.savez(
            file,
            fingerprint=fingerprint,
            words="\n".join(data.vocabulary.words),
            train_ids=data.train.ids,
            train_starts=data.train.starts,
            held_ids=data.held_out.ids,
            held_starts=data.held_out.starts,
        )


def encode(vocabulary: Vocabulary, lines: Iterable[str]) -> Encoded:
    """Sentences as ids."""

    @lru_cache(maxsize=1 << 20)
    def chunk_ids(chunk: str) -> NDArray[np.uint16]:
        return np.array(vocabulary.ids(text.tokenise(chunk)), dtype=np.uint16)

    pieces: list[NDArray[np.uint16]] = []
    lengths: list[int] = [0]
    for line in lines:
        ids = np.concatenate([chunk_ids(chunk) for chunk in line.split()])[:MAX_WORDS]
        pieces.append(ids)
        lengths.append(len(ids))
    return Encoded(np.concatenate(pieces) if pieces else np.empty(0, np.uint16), np.cumsum(lengths))


class Batches:
    """Shuffled batches of about ``num_tokens`` tokens, sentences of like length together.

    Batch ``step`` is a function of the seed and the step alone.
    """

    def __init__(self, data: Encoded, num_tokens: int, seed: int):
        self._data, self._num_tokens, self._seed = data, num_tokens, seed
        self._epoch, self._first_step = -1, 0
        self._plan: list[NDArray[np.int64]] = []

    def rows(self, step: int) -> NDArray[np.int64]:
        """Indices of the sentences of a batch."""
        if step < self._first_step:
            self._epoch, self._first_step, self._plan = -1, 0, []
        while step >= self._first_step + len(self._plan):
            self._first_step += len(self._plan)
            self._epoch += 1
            self._plan = self._shuffled(self._epoch)
        return self._plan[step - self._first_step]

    def _shuffled(self, epoch: int) -> list[NDArray[np.int64]]:
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(self._data))
        lengths = self._data.lengths + 1
        mean = float(lengths.mean())
        pool = max(1, int(_POOL * self._num_tokens / mean))
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            filled = np.cumsum(lengths[rows]) // self._num_tokens
            batches += np.split(rows, np.flatnonzero(np.diff(filled)) + 1)
        return [batches[i] for i in rng.permutation(len(batches))]


def padded(data: Encoded, rows: NDArray[np.int64], direction: Direction) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and which of them are real, each [time, rows]."""
    longest = int(data.lengths[rows].max())
    inputs = np.full((longest + 1, len(rows)), START, dtype=np.int64)
    targets = np.full((longest + 1, len(rows)), END, dtype=np.int64)
    real = np.zeros((longest + 1, len(rows)), dtype=np.bool_)
    for column, row in enumerate(rows):
        ids = data.sentence(row)
        if direction == "backward":
            ids = ids[::-1]
        inputs[1 : len(ids) + 1, column] = ids
        targets[: len(ids), column] = ids
        real[: len(ids) + 1, column] = True
    return torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(real)


def nll_per_word(model: LstmLM, data: Encoded, direction: Direction, batch: int = 64) -> float:
    """Mean negative log-likelihood of a word, the end of the sentence counted as one."""
    order = np.argsort(data.lengths, kind="stable")
    total, count = 0.0, 0
    for start in range(0, len(order), batch):
        inputs, targets, real = padded(data, order[start : start + batch], direction)
        total += model.loss(inputs, targets, real).item()
        count += int(real.sum())
    return total / count


@torch.inference_mode()
def word_nll(model: LstmLM, data: Encoded, direction: Direction, batch: int = 64) -> list[NDArray[np.float64]]:
    """Negative log-likelihood of each word of each sentence, as the text has them, then of the sentence's end."""
    result = [np.empty(0)] * len(data)
    order = np.argsort(data.lengths, kind="stable")
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs, targets, real = padded(data, rows, direction)
        hidden, _ = model(inputs)
        nll = torch.zeros(real.shape, dtype=torch.float64)
        nll[real] = -model.softmax.log_prob_of(hidden[real], targets[real]).double()
        for row, found in zip(rows, nll.T.numpy(), strict=True):
            result[row] = in_text_order(found[: data.lengths[row] + 1], is_backward=direction == "backward")
    return result


def known_words(vocabulary: Vocabulary, sentences: Iterable[Sequence[str]]) -> list[NDArray[np.bool_]]:
    """Which of what ``word_nll`` gives is of words that the vocabulary has, or of an end."""
    return [np.array([*vocabulary.ids(words[:MAX_WORDS]), END]) != UNKNOWN for words in sentences]


def mean_over(nlls: Iterable[NDArray[np.float64]], known: Iterable[NDArray[np.bool_]]) -> float:
    """Mean negative log-likelihood of the words that are known."""
    kept = [nll[mask] for nll, mask in zip(nlls, known, strict=True)]
    return float(np.concatenate(kept).mean())


def in_text_order(read: NDArray[np.float64], *, is_backward: bool) -> NDArray[np.float64]:
    """What was found of tokens as they were read, the end last; a backward model reads the text's last one first."""
    return np.append(read[-2::-1], read[-1]) if is_backward else read


class LmTask:
    """An LSTM language model for redraft.training.loop."""

    def __init__(
        self,
        data: LmData,
        direction: Direction,
        *,
        config: LstmConfig | None = None,
        batch_tokens: int = 3072,
        seed: int = 0,
    ):
        torch.manual_seed(seed)
        self._data, self._direction, self._batch_tokens = data, direction, batch_tokens
        self.config = config or LstmConfig.fitting(len(data.vocabulary))
        self.module = LstmLM(self.config)
        self._batches = Batches(data.train, batch_tokens, seed)
        dense = [p for name, p in self.module.named_parameters() if not name.startswith("embedding")]
        self.optimizers: list[torch.optim.Optimizer] = [
            torch.optim.Adam(dense, fused=True),
            torch.optim.SparseAdam([self.module.embedding.weight]),
        ]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "direction": self._direction,
            "batch_tokens": self._batch_tokens,
            "vocabulary": self._data.vocabulary.sha256,
            "sentences": len(self._data.train),
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        rows = share.of(self._batches.rows(step))
        if not len(rows):
            return torch.zeros(()), 0
        inputs, targets, real = padded(self._data.train, rows, self._direction)
        return self.module.loss(inputs, targets, real), int(real.sum())

    def validate(self) -> dict[str, float]:
        return {"nll": nll_per_word(self.module, self._data.held_out, self._direction)}


def train_lm(
    folder: Path,
    direction: Direction,
    out: Path,
    *,
    num_tokens: int,
    num_words: int = NUM_WORDS,
    cache: Path | None = None,
    quiet: bool = False,
) -> float:
    """Train a model on a corpus, or go on with it; returns the best NLL per word on held-out sentences."""
    with join().first_before_others():
        data = prepare(folder, num_words, cache or out / "corpus.npz", quiet=quiet)
    plan = Schedule(num_tokens=num_tokens, learning_rate=_LEARNING_RATE)
    return train(LmTask(data, direction), plan, out, quiet=quiet)
