"""First drafts by grid beam search (Hokamp and Liu, 2017), word by word from left to right.

Hypotheses compete only with those that contain as many of the given parts, so that a likely sentence without the next
part does not crowd out one that has it. A chain may start anywhere: one that starts from a sentence needs fewer
revisions than one that starts from bare words, which matters when a step is expensive.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.models.base import Proposer, Scorer, Slot, Words
from redraft.numerics import Array
from redraft.sampler import Chain
from redraft.sentence import ENDING, Action, Constraints, Edit, Sentence
from redraft.target import SoftScore, Target

_GAP = 7  # most words between two parts, unless more are needed
_SHORT = 3  # letters; longer words occur once in a draft, or a beam would fill up with one of them
_SPARE = 10  # words considered beyond the width of the beam, as some of them may not occur
_CLOSING = frozenset(". ? ! ; : - -- ( ) [ ]".split()) | {'"', "'", "``", "''"}  # no draft continues after these


class Language(Scorer, Proposer, Protocol):
    """A model that reads from left to right, scores sentences and suggests the next word.

    The ``log_probs`` of its readings are those of each word given the words before it, the end last.
    """


class _Hypothesis(NamedTuple):
    """The words of a sentence so far, and which of them are in which gap."""

    words: Words
    free: tuple[tuple[int, str], ...]
    ends_in_part: bool
    log_prob: float
    reading: Any


class _Growth(NamedTuple):
    """A possible hypothesis: its score so far, its parent, the words that it adds, and their gap if they are free."""

    log_score: float
    parent: _Hypothesis
    added: Words
    gap: int | None = None

    @property
    def words(self) -> Words:
        return self.parent.words + self.added

    @property
    def free(self) -> tuple[tuple[int, str], ...]:
        return self.parent.free if self.gap is None else (*self.parent.free, *((self.gap, word) for word in self.added))


_Place = tuple[int, int]  # number of words, number of parts among them


@dataclass(frozen=True)
class _Task:
    """What a search has to put into a sentence."""

    constraints: Constraints
    start: Sentence
    parts: tuple[Words, ...]
    gaps: tuple[bool, ...]  # whether free words may be before each part, and after the last

    @classmethod
    def of(cls, constraints: Constraints, start: Sentence) -> "_Task":
        parts: list[list[str]] = []
        gaps: list[bool] = []
        last = None
        for word, lock, is_open in zip(start.words, start.locks, start.open_gaps, strict=False):
            if lock == ENDING:
                break
            if lock != last:
                parts.append([])
                gaps.append(is_open)
                last = lock
            parts[-1].append(word)
        gaps.append(start.open_gaps[sum(map(len, parts))])
        return cls(constraints, start, tuple(map(tuple, parts)), tuple(gaps))

    def num_given(self, first: int = 0) -> int:
        """The number of words in the parts from ``first`` on."""
        return sum(map(len, self.parts[first:]))

    @property
    def most_in_gap(self) -> int:
        missing = self.constraints.preferred_words - self.num_given()
        return max(_GAP, 2 + missing // max(1, sum(self.gaps)))

    @property
    def limit(self) -> int:
        """Most words, not counting the ending."""
        most = self.num_given() + self.most_in_gap * len(self.gaps)
        return min(most, self.constraints.limit - self.constraints.has_ending)

    def sentence(self, free: Sequence[tuple[int, str]]) -> Sentence:
        """The start with words put into its gaps."""
        result = self.start
        for gap, word in reversed(free):
            result = result.apply(Edit(Action.INSERT, self.num_given() - self.num_given(gap), word))
        return result


class GridBeam:
    """First drafts by a model that reads forward. ``noise`` makes those of different chains differ.

    The model and the ``soft`` scores choose among the sentences that the search finds: by the score per word, or by
    that of the whole sentence, which prefers short ones.
    """

    def __init__(
        self,
        model: Language,
        width: int,
        noise: float = 0.0,
        soft: tuple[SoftScore, ...] = (),
        *,
        is_per_word: bool = True,
    ):
        self._model, self.width, self._noise, self._is_per_word = model, width, noise, is_per_word
        self._target = Target(model, soft=soft)
        words = model.words
        self._columns = {word: column for column, word in enumerate(words)}
        self._lowered = [word.lower() for word in words]
        self._never = ~model.proposable | np.array([word in _CLOSING for word in words])
        self._not_mark = _barred(np.array([not text.is_word(word) or text.is_clitic(word) for word in words]))
        self._not_negation = _barred(np.array([text.is_negation(word) for word in words]))

    def draft(self, chain: Chain, in_time: Callable[[], bool] = lambda: True) -> Sentence:
        """A draft for a chain; the given words alone if the search finds nothing that is allowed."""
        return self.ranked(chain, 1, in_time)[0]

    def ranked(self, chain: Chain, num: int, in_time: Callable[[], bool] = lambda: True) -> list[Sentence]:
        """The best ``num`` drafts for a chain; the given words alone if the search finds nothing that is allowed.

        The search ends early once it is no longer ``in_time``.
        """
        task = _Task.of(chain.constraints, chain.constraints.start(chain.rng))
        searched = [(task.sentence(one.free), one.reading) for one in self._search(task, chain.rng, in_time)]
        # The ending may have completed a banned phrase.
        found = [(one, old) for one, old in searched if task.constraints.has_no_banned_phrase(one.words)]
        if not found:
            return [task.start]
        words = [one.words for one, _ in found]
        readings = self._model.read(words, [old for _, old in found])
        log_probs = np.array([self._model.log_prob(reading) for reading in readings])
        weights = self._target.log_weights(log_probs, words)
        lengths = [len(one) for one in words]
        costs = -weights
        if self._is_per_word:
            of_each = zip(log_probs.tolist(), weights.tolist(), lengths, strict=True)
            costs = np.array([self._target.cost(*one) for one in of_each])
        wished = self._target.length
        ranks = [(task.constraints.shortfall(one, wished), cost) for (one, _), cost in zip(found, costs, strict=True)]
        return [found[i][0] for i in sorted(range(len(found)), key=ranks.__getitem__)[:num]]

    def _search(self, task: _Task, rng: np.random.Generator, in_time: Callable[[], bool]) -> list[_Hypothesis]:
        """Hypotheses of every length that contain all parts."""
        banned = task.constraints.banned_words
        usable = _barred(self._never | np.array([word in banned for word in self._lowered]))
        (empty,) = self._model.read([()], [None])
        grid: dict[_Place, list[_Hypothesis]] = defaultdict(list)
        grid[0, 0] = [_Hypothesis((), (), False, 0.0, empty)]
        whole: list[_Hypothesis] = []
        for length in range(task.limit + 1):
            if not in_time():
                break
            alive = [(held, one) for held in range(len(task.parts) + 1) for one in grid.pop((length, held), [])]
            whole += [one for held, one in alive if held == len(task.parts)]
            growths = self._growths(task, alive, usable)
            chosen = [(place, one) for place, some in growths.items() for one in self._best(task, some, rng)]
            for place, one in zip([place for place, _ in chosen], self._read([one for _, one in chosen]), strict=True):
                grid[place].append(one)
            for place in growths:
                grid[place] = sorted(grid[place], key=lambda one: -one.log_prob)[: self.width]
        return whole

    def _growths(
        self, task: _Task, alive: Sequence[tuple[int, _Hypothesis]], usable: Tensor
    ) -> dict[_Place, list[_Growth]]:
        """How each hypothesis may continue: with the next part, or with a word in the gap before it."""
        found: dict[_Place, list[_Growth]] = defaultdict(list)
        if not alive:
            return found
        slots = [Slot(one.words, len(one.words), len(one.words)) for _, one in alive]
        dists = self._model.log_dist(slots, [one.reading for _, one in alive])
        likely = self._likely_words([one for _, one in alive], torch.from_numpy(dists) + usable)
        for (held, one), log_dist, next_words in zip(alive, dists, likely, strict=True):
            length = len(one.words)
            if held < len(task.parts):
                part = task.parts[held]
                log_score = one.log_prob + self._log_prob_of(part[0], log_dist)
                found[length + len(part), held + 1].append(_Growth(log_score, one, part))
            num_in_gap = sum(gap == held for gap, _ in one.free)
            is_last = held == len(task.parts)
            has_room = length + 1 + task.num_given(held) <= task.limit and (is_last or num_in_gap < task.most_in_gap)
            if task.gaps[held] and has_room:
                taken = {word.lower() for word in (*one.words, *task.start.words) if len(word) > _SHORT}
                found[length + 1, held] += [
                    _Growth(one.log_prob + log_prob, one, (word,), held)
                    for word, log_prob in next_words
                    if word.lower() not in taken
                ]
        return found

    def _log_prob_of(self, word: str, log_dist: Array) -> float:
        """Log-probability of a given word; an unknown word counts as the rarest word that is known."""
        column = self._columns.get(word)
        log_prob = -np.inf if column is None else float(log_dist[column])
        return log_prob if np.isfinite(log_prob) else float(log_dist[np.isfinite(log_dist)].min())

    def _likely_words(self, alive: Sequence[_Hypothesis], log_dists: Tensor) -> list[list[tuple[str, float]]]:
        """The likeliest next words: no punctuation at the start or after punctuation, no word right after itself."""
        needs_word = [not one.words or not text.is_word(one.words[-1]) for one in alive]
        log_dists[needs_word] += self._not_mark
        log_dists[[one.ends_in_part for one in alive]] += self._not_negation  # "won" and "'t" make another word
        top, columns = log_dists.topk(min(self.width + _SPARE, log_dists.shape[1]))
        return [
            [
                (word, log_prob)
                for word, log_prob in zip([self._model.words[i] for i in row], log_probs, strict=True)
                if np.isfinite(log_prob) and (not one.words or word != one.words[-1])
            ]
            for one, row, log_probs in zip(alive, columns.tolist(), top.tolist(), strict=True)
        ]

    def _best(self, task: _Task, growths: Sequence[_Growth], rng: np.random.Generator) -> list[_Growth]:
        """Those to be read. A given part always is: at most the cost of its first word is known so far."""
        scores = np.array([one.log_score for one in growths])
        if self._noise:
            scores = scores + self._noise * rng.gumbel(size=len(scores))
        in_order = [growths[i] for i in np.argsort(-scores, kind="stable")]
        allowed = (one for one in in_order if one.gap is not None and task.constraints.has_no_banned_phrase(one.words))
        parts = [one for one in growths if one.gap is None and task.constraints.has_no_banned_phrase(one.words)]
        return [*parts, *islice(allowed, self.width)]

    def _read(self, growths: Sequence[_Growth]) -> list[_Hypothesis]:
        if not growths:
            return []
        readings = self._model.read([one.words for one in growths], [one.parent.reading for one in growths])
        return [
            _Hypothesis(one.words, one.free, one.gap is None, float(sum(reading.log_probs[:-1])), reading)
            for one, reading in zip(growths, readings, strict=True)
        ]


def _barred(columns: NDArray[np.bool_]) -> Tensor:
    """What to add to log-probabilities to give some columns a probability of 0."""
    return torch.from_numpy(np.where(columns, -np.inf, 0.0).astype(np.float32))
