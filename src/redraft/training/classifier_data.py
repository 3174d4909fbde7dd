"""Synthetic data in sub-word pieces, as the token classifier reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from redraft.corpus import Encoded
from redraft.models.batching import padded
from redraft.predict.pieces import PieceEncoder, Splitter
from redraft.synthesis.shards import SPLITS, read_shard, shard_paths

IGNORED = 255  # label of BOS and of pieces that do not start a word


@dataclass(frozen=True)
class LabelledPieces:
    """Labelled sentences in pieces: ``labels`` has one entry per piece, ``methods`` one per sentence."""

    pieces: Encoded
    labels: NDArray[np.uint8]
    methods: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def num_words(self) -> int:
        """Number of labels to predict: words and sentence ends."""
        return int((self.labels != IGNORED).sum())

    def batch(self, rows: Sequence[int] | NDArray[np.int64], padding: int) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, the mask of real ids, and labels of some sentences, each [rows, time]."""
        spans = [slice(*self.pieces.starts[row : row + 2]) for row in rows]
        ids, real = padded([self.pieces.ids[span] for span in spans], padding)
        labels, _ = padded([self.labels[span] for span in spans], IGNORED)
        return ids, real, labels


def words_of(folder: Path) -> Iterator[str]:
    """The words of the training split."""
    for path in shard_paths(folder, SPLITS[0]):
        for instance in read_shard(path):
            yield from instance.words


def read_labelled(folder: Path, split: str, splitter: Splitter) -> LabelledPieces:
    """All sentences of a split in pieces. The first piece of a word carries its label."""
    encoder = PieceEncoder(splitter)
    dtype = np.uint16 if splitter.size <= 1 << 16 else np.int32
    ids: list[NDArray[Any]] = []
    labels: list[NDArray[np.uint8]] = []
    lengths: list[int] = [0]
    methods: list[str] = []
    for path in shard_paths(folder, split):
        shard_ids: list[int] = []
        shard_labels: list[int] = []
        for instance in read_shard(path):
            encoding = encoder.encode(instance.words)
            piece_labels = [IGNORED] * len(encoding.ids)
            for first, label in zip(encoding.firsts, instance.labels[1:], strict=True):
                piece_labels[first] = label
            shard_ids += encoding.ids
            shard_labels += piece_labels
            lengths.append(len(piece_labels))
            methods.append(instance.method)
        ids.append(np.array(shard_ids, dtype))
        labels.append(np.array(shard_labels, np.uint8))
    return LabelledPieces(Encoded(np.concatenate(ids), np.cumsum(lengths)), np.concatenate(labels), np.array(methods))
