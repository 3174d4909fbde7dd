"""Making a folder of synthetic data: streamed, in parallel, to be continued after a kill.

The main process reads the corpus and hands out runs of source sentences; a worker makes one shard of each. A shard
that is there is whole and is not made again.
"""

import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from redraft import corpus, text
from redraft.errors import CorpusError, InputError, OutputError
from redraft.files import replacing, sha256
from redraft.models.vocabulary import Vocabulary
from redraft.synthesis import shards
from redraft.synthesis.corrupt import Corruptor
from redraft.synthesis.recipes import MAX_WORDS, MIN_WORDS, PAPER, CorruptionRecipe
from redraft.synthesis.shards import SPLITS
from redraft.synthesis.words import LikelyWords, MaskedLm, Method, RandomWords, WordSource
from redraft.version import VERSION

WORDS = "words.txt"
NUM_WORDS = 50_000

LoadMaskedLm = Callable[[], MaskedLm]


@dataclass(frozen=True)
class SynthesisConfig:
    """What is to be made. Numbers of sentences are rounded up to whole source sentences.

    ``recipes`` and ``max_words`` are those of the training set. The validation set has the paper's, so that scores can
    be compared.
    """

    corpus: Path
    seed: int
    num: int
    num_valid: int = 24_000
    methods: tuple[Method, ...] = (Method.RANDOM, Method.MASKED_LM)
    recipes: tuple[CorruptionRecipe, ...] = PAPER
    max_words: int = MAX_WORDS  # of a source sentence
    sources_per_shard: int = 4096

    def __post_init__(self) -> None:
        if self.num < 1 or self.num_valid < 0 or self.seed < 0:
            raise InputError("the number of sentences must be at least 1, and no number may be negative")
        if not self.methods or not self.recipes:
            raise InputError("name at least one method and one kind of instance")
        if not MIN_WORDS <= self.max_words <= MAX_WORDS:
            raise InputError(f"source sentences have at most {MIN_WORDS} to {MAX_WORDS} words, not {self.max_words}")

    def recipes_of(self, split: str) -> tuple[CorruptionRecipe, ...]:
        return self.recipes if split == "train" else PAPER

    def max_words_of(self, split: str) -> int:
        return self.max_words if split == "train" else MAX_WORDS

    def num_sources(self, split: str) -> int:
        num = self.num if split == "train" else self.num_valid
        return -(-num // len(self.recipes_of(split)))

    def shard_names(self, split: str) -> list[str]:
        """The files that a split is made of."""
        return [f"{split}-{n:05}.parquet" for n in range(-(-self.num_sources(split) // self.sources_per_shard))]

    @property
    def total(self) -> int:
        """Sentences of all splits."""
        return sum(self.num_sources(split) * len(self.recipes_of(split)) for split in SPLITS)


class _Shard(NamedTuple):
    """Work for one worker: a run of source sentences and where their instances go."""

    path: Path
    split: int
    first: int
    sentences: list[list[str]]


@dataclass
class _Maker:
    """Makes shards. A copy goes to every worker, which loads the masked LM for itself."""

    settings: SynthesisConfig
    vocabulary: Vocabulary
    load_masked_lm: LoadMaskedLm | None

    def make(self, shard: _Shard) -> int:
        """Write a shard; the number of its sentences."""
        recipes = self.settings.recipes_of(SPLITS[shard.split])
        corruptor = Corruptor(self.settings.seed, recipes, self._word_sources, self.vocabulary)
        instances = corruptor.instances(shard.split, shard.first, shard.sentences)
        shards.write_shard(shard.path, instances)
        return len(instances)

    @cached_property
    def _word_sources(self) -> dict[Method, WordSource]:
        sources: dict[Method, WordSource] = {}
        if Method.RANDOM in self.settings.methods:
            sources[Method.RANDOM] = RandomWords(self.vocabulary)
        if self.load_masked_lm is not None:
            sources[Method.MASKED_LM] = LikelyWords(self.load_masked_lm())
        return sources


def synthesise(
    settings: SynthesisConfig,
    out: Path,
    *,
    load_masked_lm: LoadMaskedLm | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda num: None,
) -> dict[str, Any]:
    """Make what is missing in ``out`` and return the card. ``progress`` is told the sentences of each shard.

    ``load_masked_lm`` is called here and in every worker, so it must survive pickling.
    """
    if Method.MASKED_LM not in settings.methods:
        load_masked_lm = None
    elif load_masked_lm is None:
        raise InputError("the masked-lm method needs a language model; name one or use the random method alone")
    description = _description(settings, load_masked_lm and load_masked_lm().card)
    vocabulary = _prepare(settings, out, description)
    maker = _Maker(settings, vocabulary, load_masked_lm)
    missing = (shard for split in range(len(SPLITS)) for shard in _missing(settings, out, split, progress))
    for num in _made(maker, missing, workers):
        progress(num)
    card = shards.read_card(out) | {"complete": True, "vocabulary": vocabulary.sha256} | _contents(settings, out)
    shards.write_card(out, card)
    return card


def _description(settings: SynthesisConfig, masked_lm_card: dict[str, str] | None) -> dict[str, Any]:
    """What decides the content; two runs with the same description make the same shards."""
    return {
        "version": VERSION,  # of the code that splits sentences into words and spoils them
        "corpus": corpus.file_hashes(settings.corpus),
        "seed": settings.seed,
        "num": settings.num,
        "num_valid": settings.num_valid,
        "methods": [method.value for method in settings.methods],
        "masked_lm": masked_lm_card,
        "recipes": [recipe.name for recipe in settings.recipes],
        "max_words": {split: settings.max_words_of(split) for split in SPLITS},
        "sources_per_shard": settings.sources_per_shard,
    }


def _prepare(settings: SynthesisConfig, out: Path, description: dict[str, Any]) -> Vocabulary:
    """Look the corpus over and open the folder, or make sure that an old one holds the same data."""
    if (out / shards.CARD).exists():
        old = shards.read_card(out)
        changed = sorted(key for key, value in description.items() if old.get(key) != value)
        if changed:
            raise InputError(f"{out} holds data with another {', '.join(changed)}; choose another --out folder")
        shards.check_known(out, [name for split in SPLITS for name in settings.shard_names(split)])
        shards.check_unaltered(out, old.get("shards", {}))
    elif out.is_dir() and any(out.glob("*.parquet")):
        raise InputError(f"{out} holds shards without a {shards.CARD}; choose another --out folder")
    else:
        counts, available = _survey(settings.corpus)
        _check_available(settings, available)
        with replacing(out / WORDS) as partial:
            partial.write_text("\n".join(Vocabulary.from_counts(counts, NUM_WORDS).words), encoding="utf-8")
        shards.write_card(out, {**description, "complete": False, "available": available})
    for stale in out.glob(".*.partial"):  # of a run that was killed
        stale.unlink(missing_ok=True)
    try:
        return Vocabulary((out / WORDS).read_text(encoding="utf-8").split("\n"))
    except (OSError, ValueError) as error:
        raise InputError(f"{out} has lost its {WORDS}; choose another --out folder") from error


def _survey(folder: Path) -> tuple[Counter[str], dict[str, int]]:
    """The words of the training sentences, and how many sentences each split has.

    Reads all of the corpus, so that a bad file is found before any work.
    """
    chunks: Counter[str] = Counter()
    available = dict.fromkeys(SPLITS, 0)
    for split, line in _split_lines(folder):
        if "\0" in line:
            raise CorpusError(f"{folder} holds a file with binary data; give text, one sentence a line")
        available[split] += 1
        if split == "train":
            chunks.update(line.split())
    counts: Counter[str] = Counter()
    for chunk, num in chunks.items():  # each is tokenised once, not each time it occurs
        for word in text.tokenise(chunk):
            counts[word] += num
    return counts, available


def _check_available(settings: SynthesisConfig, available: dict[str, int]) -> None:
    for split in SPLITS:
        if settings.num_sources(split) and not available[split]:
            raise CorpusError(f"{settings.corpus} is too small: it has no sentence for the {split} set")


def _split_lines(folder: Path) -> Iterator[tuple[str, str]]:
    return ((SPLITS[corpus.is_held_out(line)], line) for line in corpus.sentences(folder))


def _sources(settings: SynthesisConfig, split: str, num: int, available: int) -> Iterator[list[str]]:
    """``num`` of the ``available`` sentences of a split, spread evenly over the corpus; again and again if too few.

    A sentence that does not fit leaves its turn to the next.
    """
    longest = settings.max_words_of(split)
    while num > 0:
        given = 0
        lines = (line for name, line in _split_lines(settings.corpus) if name == split)
        for number, line in enumerate(lines, 1):
            due = -(-number * num // available) - given  # rounded up, so that the last sentences are not waited for
            words = text.tokenise(line) if due > 0 else []
            if MIN_WORDS <= len(words) <= longest:
                given += due
                yield from repeat(words, due)
        if not given:
            limits = f"{MIN_WORDS} to {longest} words"
            raise CorpusError(f"{settings.corpus} has no sentence of {limits} for the {split} set")
        num -= given


def _missing(settings: SynthesisConfig, out: Path, split: int, progress: Callable[[int], None]) -> Iterator[_Shard]:
    """The shards of a split that are still to be made."""
    name, size = SPLITS[split], settings.sources_per_shard
    total = settings.num_sources(name)
    sources = _sources(settings, name, total, shards.read_card(out)["available"][name])
    for file_name, first in zip(settings.shard_names(name), range(0, total, size), strict=True):
        path = out / file_name
        sentences = list(islice(sources, min(size, total - first)))
        if path.exists():
            progress(len(sentences) * len(settings.recipes_of(name)))
        else:
            yield _Shard(path, split, first, sentences)


def _contents(settings: SynthesisConfig, out: Path) -> dict[str, Any]:
    paths = {split: [out / name for name in settings.shard_names(split)] for split in SPLITS}
    return {
        "counts": {split: shards.count(found) for split, found in paths.items()},
        "shards": {path.name: sha256(path) for found in paths.values() for path in found},
    }


def _made(maker: _Maker, missing: Iterator[_Shard], workers: int) -> Iterator[int]:
    """Make shards in as many processes; the sizes of those that are done."""
    if workers == 1:
        yield from map(maker.make, missing)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of torch's threads
    with ProcessPoolExecutor(workers, context, _start_worker, (maker,)) as pool:
        pending: deque[Future[int]] = deque()
        try:
            for shard in missing:
                pending.append(pool.submit(_make, shard))
                if len(pending) > 2 * workers:  # the corpus is read no faster than it is used
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise OutputError("a worker process was ended; run the command again to continue") from error
        finally:
            pool.shutdown(cancel_futures=True)


_worker: Sequence[_Maker] = ()


def _start_worker(maker: _Maker) -> None:
    global _worker
    _worker = (maker,)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A worker whose parent was killed would wait for work for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _make(shard: _Shard) -> int:
    return _worker[0].make(shard)
