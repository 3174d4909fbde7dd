"""The plain way to do what redraft.models.lstm.reader does: no caches, whole sentences, one after the other.

It is the reference that the benchmark measures against and the tests compare with: the same model, the same draws.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft import text
from redraft.models.base import Slot, Words
from redraft.models.lstm.reader import LstmReader
from redraft.models.vocabulary import END, START
from redraft.numerics import Array


class PlainReader:
    """Reads every sentence from its first word each time it is asked.

    ``whole_softmax`` computes the logits of all words at every position, as published code does; without it only the
    words that stand there are scored, which the adaptive softmax makes cheap.
    """

    def __init__(self, reader: LstmReader, *, whole_softmax: bool):
        self.name, self._reader, self._whole = f"plain {reader.name}", reader, whole_softmax
        self.words, self.proposable = reader.words, reader.proposable

    def read(self, sentences: Sequence[Words], old: Sequence[object]) -> list[Words]:
        return list(sentences)

    def log_prob(self, reading: Words) -> float:
        return float(self._score([reading])[0])

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Words]
    ) -> list[Array]:
        # The old sentence is scored along with the candidates, as published code does.
        return [
            self._score([*(slot.fill(word) for word in words), slot.words])[:-1]
            for slot, words in zip(slots, fillings, strict=True)
        ]

    @torch.inference_mode()
    def _score(self, sentences: Sequence[Words]) -> Array:
        ids = [self._reader._ids(words) for words in sentences]
        longest = max(map(len, ids))
        inputs = torch.full((longest + 1, len(ids)), START)
        targets = torch.full((longest + 1, len(ids)), END)
        real = torch.zeros((longest + 1, len(ids)), dtype=torch.bool)
        for column, row in enumerate(ids):
            inputs[1 : len(row) + 1, column] = targets[: len(row), column] = torch.tensor(row, dtype=torch.long)
            real[: len(row) + 1, column] = True
        network = self._reader._network
        hidden, _ = network(inputs)
        flat = hidden.flatten(0, 1)
        if self._whole:
            log_probs = network.softmax.log_prob(flat).gather(1, targets.flatten()[:, None]).squeeze(1)
        else:
            log_probs = network.softmax.log_prob_of(flat, targets.flatten())
        kept: Array = torch.where(real, log_probs.double().view_as(real), 0.0).sum(0).numpy()
        return kept

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Words]) -> NDArray[np.float32]:
        backward = self._reader._backward
        vocabulary, network = self._reader.vocabulary, self._reader._network
        rows = []
        for slot in slots:
            before = vocabulary.ids(reversed(slot.after)) if backward else vocabulary.surface_ids(slot.before)
            hidden, _ = network(torch.tensor([[START, *before]]).T)
            dist: NDArray[np.float32] = network.softmax.log_prob(hidden[-1])[0].numpy()
            if text.opening(slot.before) is None:
                dist = np.where(vocabulary.is_plain, dist[vocabulary.opening_ids], -np.inf).astype(np.float32)
            rows.append(dist)
        return np.stack(rows)
