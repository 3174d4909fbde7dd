"""XLNet as a proposer that sees both sides of a slot."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.models.base import Slot, Words
from redraft.models.batching import groups, padded, row_lengths
from redraft.models.xlnet.network import XlnetLM
from redraft.models.xlnet.reader import fits
from redraft.models.xlnet.words import PieceWords


class XlnetMaskedReader:
    """Proposes words for a slot, given the words on both sides of it."""

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
        """Return no readings. The encoding of a sentence depends on which piece is masked, so nothing can be kept."""
        return [None] * len(sentences)

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[None]) -> NDArray[np.float32]:
        """Log-probabilities [slots, words] of each word in each slot."""
        result = np.empty((len(slots), len(self.vocabulary)), dtype=np.float32)
        before = [[self._words.splitter.begin, *self._words.flat(text.surface(slot.before))] for slot in slots]
        after = [[*self._words.flat(slot.after), self._words.splitter.end] for slot in slots]
        rows = [[[*left, self._words.splitter.padding, *right]] for left, right in zip(before, after, strict=True)]
        for group in groups(row_lengths(rows), fits):
            hidden = self._masked_states([rows[i][0] for i in group], [len(before[i]) for i in group])
            result[group] = self._words.log_dist(self._network(hidden), [slots[i] for i in group])
        return result

    def _masked_states(self, rows: Sequence[list[int]], positions: Sequence[int]) -> Tensor:
        """The states [rows, d] that predict the masked piece of each row."""
        ids, real = padded(rows, self._words.splitter.padding)
        masked = torch.arange(ids.shape[1]) == torch.tensor(positions)[:, None]
        hidden: Tensor = self._network.transformer(ids, real, masked)[masked]
        return hidden
