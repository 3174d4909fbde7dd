"""From the text of a particle that ended to a sentence whose given words are locked."""

import itertools
from collections.abc import Sequence

from redraft import text
from redraft.draft.particle import GrowingParticle
from redraft.draft.task import Drafted, DraftTask
from redraft.models.base import Words
from redraft.sentence import ENDING, FREE, Sentence
from redraft.stretches import reads_as


class SentenceReader:
    """Reads the sentences of one task. ``lowered`` are words with a capital only where they open a sentence."""

    def __init__(self, task: DraftTask, lowered: frozenset[str]):
        self._task, self._lowered = task, lowered

    def read(self, particle: GrowingParticle) -> list[Drafted]:
        """The draft of a particle that ended; none where its text does not read as the given words."""
        words = tuple(text.tokenise(particle.text))
        locks = self._locks(particle, words)
        if locks is None or not self._task.constraints.met_by(words) or len(words) > self._task.constraints.limit:
            return []
        sentence = self._sentence(words, locks, particle.held)
        return [Drafted(sentence, particle.log_prob, len(particle.tokens), particle.log_weight)]

    def _locks(self, particle: GrowingParticle, words: Words) -> list[int] | None:
        places = text_spans(words, particle.text)
        locks = [FREE] * len(words)
        for held, (start, end) in zip(particle.held, particle.spans, strict=True):
            inside = [i for i, (first, last) in enumerate(places) if start <= first and last <= end]
            wanted = self._task.realisations[held]
            if len(inside) != len(wanted) or not reads_as(words, inside[0], wanted):
                return None
            for i in inside:
                locks[i] = self._task.part_of[held]
        if self._task.constraints.has_ending:
            locks[-1] = ENDING
        return locks

    def _sentence(self, words: Words, locks: Sequence[int], held: Sequence[int]) -> Sentence:
        """The given words as they were given, and the first word without the capital that it has from its place."""
        shown = list(words)
        given = {self._task.part_of[one]: iter(self._task.realisations[one]) for one in held}
        for i, lock in enumerate(locks):
            if lock >= 0:
                shown[i] = next(given[lock])
        first = text.opening(words)
        if first is not None and locks[first] == FREE:
            small = shown[first][:1].lower() + shown[first][1:]
            if small in self._lowered and text.capitalise(small) == shown[first]:
                shown[first] = small
        inner = (left != right or left == FREE for left, right in itertools.pairwise(locks))
        opens = self._task.opens or locks[0] == FREE
        return Sentence(tuple(shown), tuple(locks), (opens, *inner, self._task.closes and locks[-1] != ENDING))


def text_spans(words: Words, written: str) -> list[tuple[int, int]]:
    """Where each word stands in the text that it was read from."""
    places, at = [], 0
    for word in words:
        at = written.index(word, at)
        places.append((at, at + len(word)))
        at += len(word)
    return places
