"""A corpus as ids of sub-word pieces, for the XLNet language models."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft import corpus, text
from redraft.corpus import Encoded
from redraft.errors import CorpusError, InputError
from redraft.evaluation.lstm_nll import MAX_WORDS
from redraft.files import replacing, sha256
from redraft.models.pieces import SentencePieces
from redraft.version import VERSION

_MOST_PIECES = 1 << 16  # ids are stored in 16 bits


@dataclass(frozen=True)
class PieceData:
    """A corpus in pieces, without BOS and EOS. ``held_out_words`` is the number of words of each held-out sentence."""

    train: Encoded
    held_out: Encoded
    held_out_words: NDArray[np.int64]


def prepare_pieces(folder: Path, pieces: Path, cache: Path | None = None) -> PieceData:
    """Split the sentences of a corpus into pieces; ``cache`` keeps the result."""
    fingerprint = json.dumps([VERSION, sha256(pieces), corpus.file_hashes(folder)])
    if cache and cache.exists():
        with np.load(cache) as kept:
            if str(kept["fingerprint"]) == fingerprint:
                train, held_out = (Encoded(kept[f"{s}_ids"], kept[f"{s}_starts"]) for s in ("train", "held"))
                return PieceData(train, held_out, kept["held_words"])
    splitter = SentencePieces(pieces)
    if splitter.size > _MOST_PIECES:
        raise InputError(f"{pieces} has {splitter.size:,} pieces; training supports at most {_MOST_PIECES:,}")
    train, _ = encode_pieces(splitter, (line for line in corpus.sentences(folder) if not corpus.is_held_out(line)))
    held_out, num_words = encode_pieces(
        splitter, (line for line in corpus.sentences(folder) if corpus.is_held_out(line))
    )
    if not len(train) or not len(held_out):
        raise CorpusError(f"{folder} is too small: {len(train)} training sentences, {len(held_out)} held out")
    data = PieceData(train, held_out, num_words)
    if cache:
        _save(cache, fingerprint, data)
    return data


def _save(cache: Path, fingerprint: str, data: PieceData) -> None:
    with replacing(cache) as path, path.open("wb") as file:
        np.savez(
            file,
            fingerprint=fingerprint,
            train_ids=data.train.ids,
            train_starts=data.train.starts,
            held_ids=data.held_out.ids,
            held_starts=data.held_out.starts,
            held_words=data.held_out_words,
        )


def encode_pieces(splitter: SentencePieces, lines: Iterable[str]) -> tuple[Encoded, NDArray[np.int64]]:
    """Sentences as ids of pieces, and the number of words of each."""
    known: dict[str, tuple[int, ...]] = {}
    rows: list[NDArray[np.uint16]] = []
    num_words: list[int] = []
    for line in lines:
        words = text.tokenise(line)[:MAX_WORDS]
        for word in words:
            if word not in known:
                known[word] = splitter.split(word)
        rows.append(np.array([i for word in words for i in known[word]], dtype=np.uint16))
        num_words.append(len(words))
    ids = np.concatenate(rows) if rows else np.empty(0, np.uint16)
    return Encoded(ids, np.cumsum([0, *map(len, rows)])), np.array(num_words)
