"""XLNet as the masked language model that corrupts sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from redraft.errors import PackError
from redraft.files import sha256
from redraft.models.base import Slot
from redraft.models.pack import open_pack
from redraft.models.xlnet.files import load_xlnet, orders_of, weights_file
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import ReadingOrder
from redraft.models.xlnet.pack import load_readers
from redraft.models.xlnet.words import PieceWords

_DIST_ROWS = 256  # slots whose distributions are held at a time; each is as long as the vocabulary


@dataclass(frozen=True)
class FolderMaskedXlnet:
    """Loads an XLNet by folder or hub name. Workers receive this small object and load the model themselves."""

    source: str

    def __call__(self) -> "XlnetMaskedLm":
        network, splitter, folder = load_xlnet(self.source)
        if ReadingOrder.MASKED not in orders_of(folder):
            raise PackError(f"{self.source} was not trained on masked words; train it with --orders masked")
        digest = sha256(weights_file(folder))[:8]
        return XlnetMaskedLm(f"{folder.name}@{digest}", XlnetMaskedReader(folder.name, network, PieceWords(splitter)))


@dataclass(frozen=True)
class PackMaskedXlnet:
    """Loads the masked XLNet of a pack, in each worker."""

    pack: str

    def __call__(self) -> "XlnetMaskedLm":
        pack = open_pack(self.pack)
        reader = load_readers(pack, [ReadingOrder.MASKED])[ReadingOrder.MASKED]
        return XlnetMaskedLm(f"{pack.name}@{pack.fingerprint}", cast("XlnetMaskedReader", reader))


class XlnetMaskedLm:
    """The distribution of a slot given the words on both sides of it."""

    def __init__(self, name: str, reader: XlnetMaskedReader):
        self._name, self._reader = name, reader
        self._banned = torch.from_numpy(~reader.proposable)

    @property
    def card(self) -> dict[str, str]:
        return {"kind": "masked XLNet", "name": self._name}

    def likeliest(self, slots: Sequence[Slot], num: int) -> list[list[str]]:
        """The most likely words of each slot, best first."""
        chunks = (slots[at : at + _DIST_ROWS] for at in range(0, len(slots), _DIST_ROWS))
        return [words for chunk in chunks for words in self._top(chunk, num)]

    def _top(self, slots: Sequence[Slot], num: int) -> list[list[str]]:
        log_dist = torch.from_numpy(self._reader.log_dist(slots, [None] * len(slots)))
        top = log_dist.masked_fill_(self._banned, -np.inf).topk(min(num, log_dist.shape[1]))
        words = self._reader.words
        return [
            [words[i] for i, score in zip(ids, scores, strict=True) if score > -np.inf]
            for ids, scores in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]
