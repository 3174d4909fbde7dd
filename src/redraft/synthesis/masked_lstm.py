"""A masked language model built from an LSTM pair: forward x backward."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from redraft.models.base import Slot, Words
from redraft.models.lstm.files import load_lstm
from redraft.models.lstm.reader import LstmReader, LstmReading
from redraft.models.pack import open_pack

_READ_ROWS = 128  # sentences read together
_DIST_ROWS = 32  # slots whose distributions are held at a time; each is as long as the vocabulary


@dataclass(frozen=True)
class PackMaskedLm:
    """Loads the LSTM pair of a pack. Workers receive this small object and load the models themselves."""

    pack: str

    def __call__(self) -> "LstmMaskedLm":
        pack = open_pack(self.pack).only(("forward", "backward"))  # what else the pack has does not matter
        return LstmMaskedLm(f"{pack.name}@{pack.fingerprint}", load_lstm(pack, "forward"), load_lstm(pack, "backward"))


class LstmMaskedLm:
    """Product of the forward model given the words before a slot and the backward model given those after it."""

    def __init__(self, name: str, forward: LstmReader, backward: LstmReader):
        if forward.words != backward.words:
            raise ValueError("the two directions must share their vocabulary")
        self._name = name
        self._readers = (forward, backward)
        self._banned = torch.from_numpy(~(forward.proposable & backward.proposable))

    @property
    def card(self) -> dict[str, str]:
        return {"kind": "forward x backward LSTM", "name": self._name}

    def likeliest(self, slots: Sequence[Slot], num: int) -> list[list[str]]:
        """The most likely words of each slot; each sentence is read once, however many slots it has."""
        sentences = list(dict.fromkeys(slot.words for slot in slots))
        by_length = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        places: dict[Words, list[int]] = {}
        for at, slot in enumerate(slots):
            places.setdefault(slot.words, []).append(at)
        found: list[list[str]] = [[]] * len(slots)
        for rows in _chunks(by_length, _READ_ROWS):
            batch = [sentences[i] for i in rows]
            readings = [dict(zip(batch, r.read(batch, [None] * len(batch)), strict=True)) for r in self._readers]
            for chosen in _chunks([at for words in batch for at in places[words]], _DIST_ROWS):
                for at, words in zip(chosen, self._top([slots[at] for at in chosen], readings, num), strict=True):
                    found[at] = words
        return found

    def _top(self, slots: Sequence[Slot], readings: Sequence[dict[Words, LstmReading]], num: int) -> list[list[str]]:
        log_dists = [
            reader.log_dist(slots, [read[slot.words] for slot in slots])
            for reader, read in zip(self._readers, readings, strict=True)
        ]
        total = torch.from_numpy(np.add(*log_dists)).masked_fill_(self._banned, -np.inf)
        top = total.topk(min(num, total.shape[1]))
        vocabulary = self._readers[0].words
        return [
            [vocabulary[i] for i, score in zip(ids, scores, strict=True) if score > -np.inf]
            for ids, scores in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]


def _chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (items[at : at + size] for at in range(0, len(items), size))
