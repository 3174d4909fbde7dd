"""Training the LSTM language models, forward and backward."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from redraft.evaluation.lstm_nll import Direction, nll_per_word, padded
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.training.batches import Batches
from redraft.training.loop import Schedule, train
from redraft.training.processes import WHOLE, Share, join
from redraft.training.word_data import NUM_WORDS, WordData, prepare_words

_LEARNING_RATE = 2.5e-3  # the paper's 1e-4 needs far more steps than a laptop can run


class LmTask:
    """An LSTM language model as a task of redraft.training.loop."""

    def __init__(
        self,
        data: WordData,
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


@dataclass(frozen=True)
class LmTraining:
    """How an LSTM language model is trained. ``cache`` is a file for the encoded corpus, by default in the output."""

    corpus: Path
    direction: Direction
    num_tokens: int
    num_words: int = NUM_WORDS
    cache: Path | None = None


def train_lm(config: LmTraining, out: Path, *, quiet: bool = False) -> float:
    """Train a model on a corpus, or resume training; returns the best NLL per word on held-out sentences."""
    with join().first_before_others():
        data = prepare_words(config.corpus, config.num_words, config.cache or out / "corpus.npz", quiet=quiet)
    schedule = Schedule(num_tokens=config.num_tokens, learning_rate=_LEARNING_RATE)
    return train(LmTask(data, config.direction), schedule, out, quiet=quiet)
