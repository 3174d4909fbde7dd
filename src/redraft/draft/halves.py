"""Backward and forward beam search from a given word (Mou et al., 2015).

One search writes the words before the given word, from right to left; another one writes those after it. In the
separate variant (sep-B/F) each sees the given word alone. In the asynchronous one (asyn-B/F) the backward half is
written first, and the forward search continues that half and the given word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.models.base import Words
from redraft.numerics import Array
from redraft.sampler import Chain
from redraft.sentence import Action, Constraints, Edit, Sentence, num_words

StateT = TypeVar("StateT")


class Continuer(Protocol[StateT]):
    """A model that continues given words, to the end of the sentence or to its beginning."""

    @property
    def words(self) -> Sequence[str]:
        """The columns of a distribution."""

    @property
    def end(self) -> int:
        """The column that ends the half."""

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which columns are words."""

    @property
    def is_backward(self) -> bool:
        """Whether it writes from right to left."""

    def begin(self, given: Words) -> StateT:
        """Read the given words, which are in text order."""

    def extend(self, states: Sequence[StateT], words: Sequence[str]) -> list[StateT]:
        """Read one more word after each state."""

    def log_dists(self, states: Sequence[StateT]) -> NDArray[np.floating]:
        """Log-probabilities [states, words] of the next word."""

    def log_ends(self, states: Sequence[StateT]) -> NDArray[np.floating]:
        """The column ``end`` of ``log_dists``, which may cost less."""


@dataclass(frozen=True)
class Half:
    """The free words on one side of the given words, in text order, and the ending if this side has one.

    ``log_prob`` is that of the words, the ending and the end of the sentence, given the words that were read.
    """

    words: Words
    log_prob: float
    ending: str | None = None


@dataclass(frozen=True)
class HalfTask:
    """What a search continues: the given words, at most how many words to add, and how the sentence may end."""

    constraints: Constraints
    given: Words
    most: int
    endings: Words = ()


class _Partial(NamedTuple, Generic[StateT]):
    """A half that is not finished; its words in text order."""

    words: Words
    log_prob: float
    state: StateT


class HalfSearch(Generic[StateT]):
    """Beam search for one half of a sentence."""

    def __init__(self, model: Continuer[StateT], width: int):
        self._model, self._width = model, width
        self._columns = {word: column for column, word in enumerate(model.words)}
        self._lowered = [word.lower() for word in model.words]
        self._negation = np.array([text.is_negation(word) for word in model.words])

    def find(self, task: HalfTask) -> list[Half]:
        """Finished halves of every length, those of one length together: as many as the beam is wide, or fewer."""
        usable = self._usable(task.constraints)
        alive = [_Partial((), 0.0, self._model.begin(task.given))]
        found: list[Half] = []
        for length in range(task.most + 1):
            dists = self._model.log_dists([one.state for one in alive]).astype(np.float64)
            found += self._finished(task, alive, dists)
            if length < task.most:
                may = usable & ~self._negation if self._follows_given(length) else usable
                alive = self._grown(task, alive, np.where(may, dists, -np.inf))
            if not alive:
                break
        return found

    def _follows_given(self, length: int) -> bool:
        """Whether the next word stands right after a given one: "won" followed by "'t" would be another word."""
        return length == 0 and not self._model.is_backward

    def _usable(self, constraints: Constraints) -> NDArray[np.bool_]:
        """The words that may be added. A mark that ends sentences stands only at the end."""
        never = constraints.banned_words
        allowed = [
            low not in never and word not in constraints.endings
            for word, low in zip(self._model.words, self._lowered, strict=True)
        ]
        return np.array(allowed) & self._model.proposable

    def _grown(self, task: HalfTask, alive: Sequence[_Partial[StateT]], dists: Array) -> list[_Partial[StateT]]:
        """The likeliest halves with one more word."""
        scores = dists + np.array([one.log_prob for one in alive])[:, None]
        best = list(islice(self._allowed(task, alive, scores), self._width))
        if not best:
            return []
        states = self._model.extend(
            [alive[row].state for row, _ in best], [self._model.words[column] for _, column in best]
        )
        return [
            _Partial(self._longer(alive[row].words, self._model.words[column]), float(scores[row, column]), state)
            for (row, column), state in zip(best, states, strict=True)
        ]

    def _allowed(self, task: HalfTask, alive: Sequence[_Partial[StateT]], scores: Array) -> Iterator[tuple[int, int]]:
        """Rows and columns by falling score, without words that complete a banned phrase."""
        for row, column in falling(scores, self._width):
            longer = self._longer(alive[row].words, self._model.words[column])
            if task.constraints.has_no_banned_phrase(self._with_given(task, longer)):
                yield row, column

    def _longer(self, words: Words, word: str) -> Words:
        return (word, *words) if self._model.is_backward else (*words, word)

    def _with_given(self, task: HalfTask, words: Words) -> Words:
        return words + task.given if self._model.is_backward else task.given + words

    def _finished(self, task: HalfTask, alive: Sequence[_Partial[StateT]], dists: Array) -> list[Half]:
        if not task.endings:
            here = dists[:, self._model.end]
            return [Half(one.words, one.log_prob + float(end)) for one, end in zip(alive, here, strict=True)]
        pairs = [(i, ending) for i in range(len(alive)) for ending in task.endings]
        states = self._model.extend([alive[i].state for i, _ in pairs], [ending for _, ending in pairs])
        log_ends = self._model.log_ends(states)
        return [
            Half(alive[i].words, alive[i].log_prob + self._log_prob_of(ending, dists[i]) + float(log_end), ending)
            for (i, ending), log_end in zip(pairs, log_ends, strict=True)
        ]

    def _log_prob_of(self, word: str, log_dist: Array) -> float:
        """Log-probability of an ending; one that is unknown counts as the rarest word that is known."""
        column = self._columns.get(word)
        return float(log_dist[np.isfinite(log_dist)].min() if column is None else log_dist[column])


class HalvesBeam(Generic[StateT]):
    """Sentences around a given word, by a backward and a forward search of the same width.

    is_separate   whether the forward search sees the given words alone, and not the backward half
    plain         the form in which a sentence holds its first word, such as "the" for "The"
    """

    def __init__(
        self,
        backward: Continuer[StateT],
        forward: Continuer[StateT],
        width: int,
        *,
        is_separate: bool,
        plain: Callable[[str], str] = str,
    ):
        self._backward, self._forward = HalfSearch(backward, width), HalfSearch(forward, width)
        self.width, self._is_separate, self._plain = width, is_separate, plain

    def ranked(self, chain: Chain, num: int, in_time: Callable[[], bool] = lambda: True) -> list[Sentence]:
        """The best ``num`` sentences; the given words alone if the search finds nothing that is allowed."""
        constraints = chain.constraints
        given, endings = constraints.locked_words, constraints.allowed_endings if constraints.has_ending else ()
        room = constraints.limit - len(given) - bool(endings)
        before = _opening(self._backward.find(HalfTask(constraints, given, room)), given)
        if not in_time():
            return [constraints.start()]
        read = given
        if not self._is_separate:
            before = [max(before, key=lambda half: half.log_prob)]
            room -= len(before[0].words)
            read = before[0].words + given
        after = self._forward.find(HalfTask(constraints, read, room, endings))
        sentences = (self._sentence(constraints, *pair) for pair in _pairs(constraints, before, after))
        allowed = (one for one in sentences if constraints.has_no_banned_phrase(one.words))
        return list(islice(allowed, num)) or [constraints.start()]

    def _sentence(self, constraints: Constraints, before: Half, after: Half) -> Sentence:
        sentence, num_before = constraints.start(), len(before.words) + len(constraints.locked_words)
        words = list(before.words)
        if (first := text.opening(words)) is not None:
            words[first] = self._plain(words[first])
        for at, word in (*enumerate(words), *enumerate(after.words, num_before)):
            sentence = sentence.apply(Edit(Action.INSERT, at, word))
        return (
            sentence if after.ending is None else sentence.apply(Edit(Action.REPLACE, len(sentence) - 1, after.ending))
        )


def falling(scores: Array, size: int) -> Iterator[tuple[int, int]]:
    """Rows and columns of the finite scores, highest first. About ``size`` of them are expected to be needed."""
    flat, taken = -scores.ravel(), 0
    while taken < len(flat):
        size = min(size, len(flat))
        top = np.argpartition(flat, size - 1)[:size]
        order = top[np.lexsort((top, flat[top]))]  # ties by place, so that the order is the same everywhere
        for place in order[taken:]:
            if not np.isfinite(flat[place]):
                return
            row, column = divmod(int(place), scores.shape[1])
            yield row, column
        taken, size = size, 4 * size


def _opening(halves: Sequence[Half], given: Words) -> Sequence[Half]:
    """The halves that open a sentence as the model read them, with a capital; all of them if none does."""
    return [half for half in halves if text.surface(whole := half.words + given) == list(whole)] or halves


def _pairs(constraints: Constraints, before: Sequence[Half], after: Sequence[Half]) -> Iterator[tuple[Half, Half]]:
    """Pairs of halves that fit: those with the preferred number of words first, then by their probability."""
    if not before or not after:
        return
    sizes, counts, scores = (
        np.add.outer(*([measure(half) for half in halves] for halves in (before, after)))
        for measure in (
            lambda half: len(half.words),
            lambda half: num_words(half.words),
            lambda half: half.log_prob,
        )
    )
    room = constraints.limit - len(constraints.locked_words) - constraints.has_ending
    missing = np.maximum(0, constraints.preferred_words - num_words(constraints.locked_words) - counts)
    fits = np.flatnonzero((sizes <= room) & np.isfinite(scores))
    for place in fits[np.lexsort((-scores.ravel()[fits], missing.ravel()[fits]))]:
        row, column = divmod(int(place), len(after))
        yield before[row], after[column]
