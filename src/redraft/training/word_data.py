"""A corpus as ids of words, for the LSTM language models."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft import corpus, text
from redraft.corpus import Encoded
from redraft.errors import CorpusError
from redraft.evaluation.lstm_nll import MAX_WORDS
from redraft.files import replacing
from redraft.models.vocabulary import Vocabulary
from redraft.training.progress import counted
from redraft.version import VERSION

NUM_WORDS = 50_000


@dataclass(frozen=True)
class WordData:
    """A corpus in words: the vocabulary, the training sentences and the held-out sentences."""

    vocabulary: Vocabulary
    train: Encoded
    held_out: Encoded


def prepare_words(
    folder: Path, num_words: int = NUM_WORDS, cache: Path | None = None, *, quiet: bool = False
) -> WordData:
    """Build a vocabulary of the ``num_words`` most frequent words and encode the corpus; ``cache`` keeps the result."""
    fingerprint = json.dumps([VERSION, num_words, corpus.file_hashes(folder)])
    if cache and cache.exists():
        with np.load(cache) as kept:
            if str(kept["fingerprint"]) == fingerprint:
                return WordData(
                    Vocabulary(str(kept["words"]).split("\n")),
                    Encoded(kept["train_ids"], kept["train_starts"]),
                    Encoded(kept["held_ids"], kept["held_starts"]),
                )
    counts: Counter[str] = Counter()
    for line in counted(corpus.sentences(folder), "counting words:", quiet=quiet):
        if not corpus.is_held_out(line):
            counts.update(text.tokenise(line))
    vocabulary = Vocabulary.from_counts(counts, num_words)
    lines = counted(corpus.sentences(folder), "encoding:", quiet=quiet)
    train = encode_words(vocabulary, (line for line in lines if not corpus.is_held_out(line)))
    held_out = encode_words(vocabulary, (line for line in corpus.sentences(folder) if corpus.is_held_out(line)))
    if not len(train) or not len(held_out):
        raise CorpusError(f"{folder} is too small: {len(train)} training sentences, {len(held_out)} held out")
    data = WordData(vocabulary, train, held_out)
    if cache:
        _save(cache, fingerprint, data)
    return data


def _save(cache: Path, fingerprint: str, data: WordData) -> None:
    with replacing(cache) as path, path.open("wb") as file:
        np.savez(
            file,
            fingerprint=fingerprint,
            words="\n".join(data.vocabulary.words),
            train_ids=data.train.ids,
            train_starts=data.train.starts,
            held_ids=data.held_out.ids,
            held_starts=data.held_out.starts,
        )


def encode_words(vocabulary: Vocabulary, lines: Iterable[str]) -> Encoded:
    """Sentences as ids of words."""

    @lru_cache(maxsize=1 << 20)
    def chunk_ids(chunk: str) -> NDArray[np.uint16]:
        return np.array(vocabulary.ids(text.tokenise(chunk)), dtype=np.uint16)

    rows: list[NDArray[np.uint16]] = []
    lengths: list[int] = [0]
    for line in lines:
        ids = np.concatenate([chunk_ids(chunk) for chunk in line.split()])[:MAX_WORDS]
        rows.append(ids)
        lengths.append(len(ids))
    return Encoded(np.concatenate(rows) if rows else np.empty(0, np.uint16), np.cumsum(lengths))
