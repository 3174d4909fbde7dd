"""The words of an XLNet, whose vocabulary is pieces.

A word may have several pieces, which are the same wherever it occurs. Only words of one piece are proposed: nothing
can be added to a word or inserted between its pieces.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.base import Slot
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import SPECIALS, Vocabulary

_KNOWN = 1 << 18  # words whose pieces are remembered: limits the memory of a server that runs for months


class PieceWords:
    """Maps between words and pieces. ``vocabulary`` holds the special symbols and the words of one piece."""

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
        """The pieces of a word."""
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
