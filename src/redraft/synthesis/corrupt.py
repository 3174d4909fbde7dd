"""Corrupt source sentences and label the result.

All random draws depend only on the seed and the index of the source sentence: a counter-based generator is read at
the offset of that sentence. The number of shards and workers therefore cannot change an instance.

Words are stored as a draft stores them: the first word in its uncapitalised form ("the man ..."), wherever it ends
up. The classifier sees the output of ``text.surface``, in training as in sampling.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.models.base import Slot, Words
from redraft.models.vocabulary import Vocabulary
from redraft.sentence import Action
from redraft.synthesis.labels import Labelled, added, dropped, replaced, segment
from redraft.synthesis.recipes import NUM_DRAWS, Corruption, CorruptionRecipe, Fault, draw_corruption
from redraft.synthesis.words import Method, WordSource

_PER_COUNT = 4  # numbers that the generator yields per value of its counter
_BLOCK = 512  # source sentences per block: enough to fill the batches of a masked LM, few enough for the cache
_RANDOM_ONE_IN = 6  # with both methods, one source sentence in six uses the random one, as in the paper


class Instance(NamedTuple):
    """A labelled sentence and its origin."""

    source: int
    recipe: str
    method: Method
    labelled: Labelled


class _Job(NamedTuple):
    """An instance whose wrong words are not chosen yet."""

    source: int
    method: Method
    recipe: CorruptionRecipe
    corruption: Corruption
    words: Words

    def slot(self, fault: Fault) -> Slot:
        """The slot of the wrong word."""
        (place,) = fault.places
        at = self.corruption.start + place
        return Slot(self.words, at, at + (fault.action is Action.REPLACE))


def plain(words: Sequence[str], vocabulary: Vocabulary) -> Words:
    """The words with the first one in its mid-sentence form: "The" becomes "the", "Paris" stays."""
    at = text.opening(words)
    if at is None or vocabulary.is_plain[vocabulary.id(words[at])]:
        return tuple(words)
    return (*words[:at], words[at][:1].lower() + words[at][1:], *words[at + 1 :])


def method_of(source: int, methods: Sequence[Method]) -> Method:
    """The method for a source sentence. With both methods, one sentence in six uses the random one, as in the paper."""
    if len(methods) == 1:
        return methods[0]
    return Method.RANDOM if source % _RANDOM_ONE_IN == 0 else Method.MASKED_LM


def draws(seed: int, split: int, first: int, num: int, num_recipes: int) -> NDArray[np.float64]:
    """Uniform draws [sources, recipes, NUM_DRAWS] for ``num`` source sentences of a split, starting at ``first``."""
    counts = num_recipes * NUM_DRAWS // _PER_COUNT
    bits = np.random.Philox(key=np.array([seed, split], dtype=np.uint64), counter=first * counts)
    return np.random.Generator(bits).random((num, num_recipes, NUM_DRAWS))


class Corruptor:
    """Corrupts sentences with given recipes and sources of wrong words."""

    def __init__(
        self,
        seed: int,
        recipes: Sequence[CorruptionRecipe],
        sources_of_words: Mapping[Method, WordSource],
        vocabulary: Vocabulary,
    ):
        self._seed, self._recipes, self._vocabulary = seed, tuple(recipes), vocabulary
        self._word_sources = dict(sources_of_words)

    def instances(self, split: int, first: int, sentences: Sequence[Sequence[str]]) -> list[Instance]:
        """All instances of consecutive source sentences of a split; ``first`` is the index of the first one."""
        blocks = ((at, sentences[at : at + _BLOCK]) for at in range(0, len(sentences), _BLOCK))
        return [instance for at, block in blocks for instance in self._block(split, first + at, block)]

    def _block(self, split: int, first: int, sentences: Sequence[Sequence[str]]) -> list[Instance]:
        jobs = self._jobs(split, first, sentences)
        wrong = self._wrong_words(jobs)
        return [Instance(job.source, job.recipe.name, job.method, _corrupted(job, wrong)) for job in jobs]

    def _jobs(self, split: int, first: int, sentences: Sequence[Sequence[str]]) -> list[_Job]:
        numbers = draws(self._seed, split, first, len(sentences), len(self._recipes)).tolist()
        methods = list(self._word_sources)
        jobs = []
        for source, (sentence, rows) in enumerate(zip(sentences, numbers, strict=True), first):
            words, method = plain(sentence, self._vocabulary), method_of(source, methods)
            for recipe, row in zip(self._recipes, rows, strict=True):
                jobs.append(_Job(source, method, recipe, draw_corruption(recipe, len(words), row), words))
        return jobs

    def _wrong_words(self, jobs: Sequence[_Job]) -> Iterator[str]:
        """The wrong words that the faults of all jobs need, in order."""
        found: dict[Method, Iterator[str]] = {}
        needed = [(job, fault) for job in jobs for fault in job.corruption.faults if fault.action is not Action.INSERT]
        for method, source in self._word_sources.items():
            own = [(job.slot(fault), fault.draw) for job, fault in needed if job.method is method]
            found[method] = iter(source.words([slot for slot, _ in own], [draw for _, draw in own]))
        return (next(found[job.method]) for job, _ in needed)


def _corrupted(job: _Job, wrong: Iterator[str]) -> Labelled:
    part = segment(job.words, job.corruption.start, job.corruption.end)
    for action, places, _ in job.corruption.faults:
        if action is Action.INSERT:
            part = dropped(part, places)
        else:
            (place,) = places
            part = (replaced if action is Action.REPLACE else added)(part, place, next(wrong))
    return part
