"""The input embeddings of a forward LSTM as a space to search in: gradients for a vector, and the nearest words."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.batching import padded
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.lstm.reader import LstmReading
from redraft.models.vocabulary import END


class EmbeddingSpace:
    """Vectors in place of words. A free vector stands for the word that the network reads at one place."""

    def __init__(self, network: LstmLM):
        self._network = network.eval()
        self._vectors = network.embedding.weight.detach()
        self._squares = (self._vectors * self._vectors).sum(1)

    def vectors(self, ids: Sequence[int]) -> Tensor:
        """The embeddings of words, [words, size]."""
        return self._vectors[torch.tensor(ids)]

    def nll_after(self, vectors: Tensor, states: LstmState, following: Sequence[Sequence[int]]) -> Tensor:
        """NLL [rows] of the words ``following`` a free vector, up to and with the end of the sentence.

        ``vectors`` are [rows, size], ``states`` those before them, [layers, rows, size]. No other word of the sentence
        depends on the vector, so the gradient is that of the NLL of the whole sentence.
        """
        ids, real = (part.T.contiguous() for part in padded(following, END))
        inputs = torch.cat([vectors[None], self._vectors[ids[:-1]]])
        hidden, _ = self._network.lstm(inputs, states)
        log_probs = self._network.softmax.log_prob_of(hidden[real], ids[real])
        rows = torch.arange(ids.shape[1]).expand_as(ids)[real]
        return vectors.new_zeros(len(vectors)).index_add(0, rows, -log_probs)

    def gradients(self, vectors: Tensor, readings: Sequence[LstmReading], positions: Sequence[int]) -> Tensor:
        """The gradient [rows, size] of each sentence's NLL with respect to the vector of the word at a position."""
        hidden, cell = (
            torch.stack([reading.state[part][:, at] for reading, at in zip(readings, positions, strict=True)], 1)
            for part in (0, 1)
        )
        following = [[*reading.ids[at + 1 :], END] for reading, at in zip(readings, positions, strict=True)]
        with torch.enable_grad():
            free = vectors.clone().requires_grad_()
            loss = self.nll_after(free, (hidden.clone(), cell.clone()), following).sum()
            (gradient,) = torch.autograd.grad(loss, free)
        return gradient

    def nearest(self, vectors: Tensor, allowed: NDArray[np.bool_], num: int) -> list[list[int]]:
        """The allowed words that are nearest to each vector, at most ``num``. ``allowed`` is [rows, words]."""
        distances = self._squares - 2 * vectors @ self._vectors.T  # squared, without the part that is the same for all
        distances[torch.from_numpy(~allowed)] = torch.inf
        near, ids = distances.topk(min(num, distances.shape[1]), largest=False)
        return [row[ok].tolist() for row, ok in zip(ids, near.isfinite(), strict=True)]
