"""Batches of sentences as a function of the step number."""

import numpy as np
from numpy.typing import NDArray

from redraft.corpus import Encoded

_POOL = 64  # batches that are sorted by length together


class Batches:
    """Shuffled batches of about ``num_tokens`` tokens; sentences of similar length go together.

    The batch of a step depends only on the seed and the step.
    """

    def __init__(self, data: Encoded, num_tokens: int, seed: int):
        self._data, self._num_tokens, self._seed = data, num_tokens, seed
        self._epoch, self._first_step = -1, 0
        self._batches: list[NDArray[np.int64]] = []

    def rows(self, step: int) -> NDArray[np.int64]:
        """Indices of the sentences of a batch."""
        if step < self._first_step:
            self._epoch, self._first_step, self._batches = -1, 0, []
        while step >= self._first_step + len(self._batches):
            self._first_step += len(self._batches)
            self._epoch += 1
            self._batches = self._shuffled(self._epoch)
        return self._batches[step - self._first_step]

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
