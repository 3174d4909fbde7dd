"""Make a folder of synthetic data: streamed, in parallel, resumable.

The main process reads the corpus and hands out ranges of source sentences; a worker turns each range into a shard.
Shards are written atomically, so an existing shard is complete and is not made again.
"""

import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

from redraft import corpus, text
from redraft.errors import CorpusError, InputError, OutputError
from redraft.files import replacing, sha256
from redraft.interrupt import end_with_parent
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
    """The data to make. Numbers of sentences are rounded up to whole source sentences.

    ``recipes`` and ``max_words`` apply to the training set. The validation set uses the paper's, so that scores stay
    comparable.
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
            raise InputError("num must be at least 1; num_valid and seed must not be negative")
        if not self.methods or not self.recipes:
            raise InputError("give at least one method and one kind of instance")
        if not MIN_WORDS <= self.max_words <= MAX_WORDS:
            raise InputError(f"max_words must be {MIN_WORDS} to {MAX_WORDS}, not {self.max_words}")

    def recipes_of(self, split: str) -> tuple[CorruptionRecipe, ...]:
        return self.recipes if split == "train" else PAPER

    def max_words_of(self, split: str) -> int:
        return self.max_words if split == "train" else MAX_WORDS

    def num_sources(self, split: str) -> int:
        num = self.num if split == "train" else self.num_valid
        return -(-num // len(self.recipes_of(split)))

    def shard_names(self, split: str) -> list[str]:
        """File names of the shards of a split."""
        return [f"{split}-{n:05}.parquet" for n in range(-(-self.num_sources(split) // self.sources_per_shard))]

    @property
    def total(self) -> int:
        """Number of sentences of all splits."""
        return sum(self.num_sources(split) * len(self.recipes_of(split)) for split in SPLITS)


class _Shard(NamedTuple):
    """Work for one worker: a range of source sentences and the file for their instances."""

    path: Path
    split: int
    first: int
    sentences: list[list[str]]


@dataclass
class _Maker:
    """Makes shards. Every worker gets a copy and loads the masked LM itself."""

    config: SynthesisConfig
    vocabulary: Vocabulary
    load_masked_lm: LoadMaskedLm | None

    def make(self, shard: _Shard) -> int:
        """Write a shard and return its number of sentences."""
        recipes = self.config.recipes_of(SPLITS[shard.split])
        corruptor = Corruptor(self.config.seed, recipes, self._word_sources, self.vocabulary)
        instances = corruptor.instances(shard.split, shard.first, shard.sentences)
        shards.write_shard(shard.path, instances)
        return len(instances)

    @cached_property
    def _word_sources(self) -> dict[Method, WordSource]:
        sources: dict[Method, WordSource] = {}
        if Method.RANDOM in self.config.methods:
            sources[Method.RANDOM] = RandomWords(self.vocabulary)
        if self.load_masked_lm is not None:
            sources[Method.MASKED_LM] = LikelyWords(self.load_masked_lm())
        return sources


def synthesise(
    config: SynthesisConfig,
    out: Path,
    *,
    load_masked_lm: LoadMaskedLm | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda num: None,
) -> dict[str, Any]:
    """Make the missing shards in ``out`` and return the card.

    ``progress`` is called with the number of sentences of each shard. ``load_masked_lm`` is called here and in every
    worker, so it must be picklable.
    """
    if Method.MASKED_LM not in config.methods:
        load_masked_lm = None
    elif load_masked_lm is None:
        raise InputError("the masked-lm method needs a language model; give one or use only the random method")
    description = _description(config, load_masked_lm and load_masked_lm().card)
    vocabulary = _prepare(config, out, description)
    maker = _Maker(config, vocabulary, load_masked_lm)
    missing = (shard for split in range(len(SPLITS)) for shard in _missing(config, out, split, progress))
    for num in _made(maker, missing, workers):
        progress(num)
    card = shards.read_card(out) | {"complete": True, "vocabulary": vocabulary.sha256} | _contents(config, out)
    shards.write_card(out, card)
    return card


def _description(config: SynthesisConfig, masked_lm_card: dict[str, str] | None) -> dict[str, Any]:
    """Everything that determines the shards: equal descriptions give equal shards."""
    return {
        "version": VERSION,  # of the code that tokenises and corrupts sentences
        "corpus": corpus.file_hashes(config.corpus),
        "seed": config.seed,
        "num": config.num,
        "num_valid": config.num_valid,
        "methods": [method.value for method in config.methods],
        "masked_lm": masked_lm_card,
        "recipes": [recipe.name for recipe in config.recipes],
        "max_words": {split: config.max_words_of(split) for split in SPLITS},
        "sources_per_shard": config.sources_per_shard,
    }


def _prepare(config: SynthesisConfig, out: Path, description: dict[str, Any]) -> Vocabulary:
    """Survey the corpus and create the folder, or check that an existing one holds the same data."""
    if (out / shards.CARD).exists():
        old = shards.read_card(out)
        changed = sorted(key for key, value in description.items() if old.get(key) != value)
        if changed:
            raise InputError(f"{out} holds data with a different {', '.join(changed)}; choose another --out folder")
        shards.check_known(out, [name for split in SPLITS for name in config.shard_names(split)])
        shards.check_unaltered(out, old.get("shards", {}))
    elif out.is_dir() and any(out.glob("*.parquet")):
        raise InputError(f"{out} holds shards without a {shards.CARD}; choose another --out folder")
    else:
        counts, available = _survey(config.corpus)
        _check_available(config, available)
        with replacing(out / WORDS) as partial:
            partial.write_text("\n".join(Vocabulary.from_counts(counts, NUM_WORDS).words), encoding="utf-8")
        shards.write_card(out, {**description, "complete": False, "available": available})
    for stale in out.glob(".*.partial"):  # left by a killed run
        stale.unlink(missing_ok=True)
    try:
        return Vocabulary((out / WORDS).read_text(encoding="utf-8").split("\n"))
    except (OSError, ValueError) as error:
        raise InputError(f"{out} has no readable {WORDS}; choose another --out folder") from error


def _survey(folder: Path) -> tuple[Counter[str], dict[str, int]]:
    """Word counts of the training sentences, and the number of sentences of each split.

    Reads the whole corpus, so that a bad file is found before any work is done.
    """
    chunks: Counter[str] = Counter()
    available = dict.fromkeys(SPLITS, 0)
    for split, line in _split_lines(folder):
        if "\0" in line:
            raise CorpusError(f"{folder} holds a file with binary data; give text, one sentence per line")
        available[split] += 1
        if split == "train":
            chunks.update(line.split())
    counts: Counter[str] = Counter()
    for chunk, num in chunks.items():  # each distinct chunk is tokenised once
        for word in text.tokenise(chunk):
            counts[word] += num
    return counts, available


def _check_available(config: SynthesisConfig, available: dict[str, int]) -> None:
    for split in SPLITS:
        if config.num_sources(split) and not available[split]:
            raise CorpusError(f"{config.corpus} is too small: it has no sentence for the {split} set")


def _split_lines(folder: Path) -> Iterator[tuple[str, str]]:
    return ((SPLITS[corpus.is_held_out(line)], line) for line in corpus.sentences(folder))


def _sources(config: SynthesisConfig, split: str, num: int, available: int) -> Iterator[list[str]]:
    """``num`` of the ``available`` sentences of a split, spread evenly over the corpus, repeated if too few.

    A sentence of unsuitable length is replaced by the next one.
    """
    longest = config.max_words_of(split)
    while num > 0:
        given = 0
        lines = (line for name, line in _split_lines(config.corpus) if name == split)
        for number, line in enumerate(lines, 1):
            due = (
                -(-number * num // available) - given
            )  # rounded up, so that the quota is reached before the last sentences
            words = text.tokenise(line) if due > 0 else []
            if MIN_WORDS <= len(words) <= longest:
                given += due
                yield from repeat(words, due)
        if not given:
            limits = f"{MIN_WORDS} to {longest} words"
            raise CorpusError(f"{config.corpus} has no sentence of {limits} for the {split} set")
        num -= given


def _missing(config: SynthesisConfig, out: Path, split: int, progress: Callable[[int], None]) -> Iterator[_Shard]:
    """The shards of a split that do not exist yet."""
    name, size = SPLITS[split], config.sources_per_shard
    total = config.num_sources(name)
    sources = _sources(config, name, total, shards.read_card(out)["available"][name])
    for file_name, first in zip(config.shard_names(name), range(0, total, size), strict=True):
        path = out / file_name
        sentences = list(islice(sources, min(size, total - first)))
        if path.exists():
            progress(len(sentences) * len(config.recipes_of(name)))
        else:
            yield _Shard(path, split, first, sentences)


def _contents(config: SynthesisConfig, out: Path) -> dict[str, Any]:
    paths = {split: [out / name for name in config.shard_names(split)] for split in SPLITS}
    return {
        "counts": {split: shards.count(found) for split, found in paths.items()},
        "shards": {path.name: sha256(path) for found in paths.values() for path in found},
    }


def _made(maker: _Maker, missing: Iterator[_Shard], workers: int) -> Iterator[int]:
    """Make shards in ``workers`` processes; yields the size of each finished shard."""
    if workers == 1:
        yield from map(maker.make, missing)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of torch's threads
    with ProcessPoolExecutor(workers, context, _start_worker, (maker,)) as pool:
        pending: deque[Future[int]] = deque()
        try:
            for shard in missing:
                pending.append(pool.submit(_make, shard))
                if len(pending) > 2 * workers:  # read the corpus no faster than it is used
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise OutputError("a worker process was killed; run the command again to resume") from error
        finally:
            pool.shutdown(cancel_futures=True)


_worker: Sequence[_Maker] = ()


def _start_worker(maker: _Maker) -> None:
    global _worker
    _worker = (maker,)
    end_with_parent()


def _make(shard: _Shard) -> int:
    return _worker[0].make(shard)
