"""Backward and forward beam search: a full beam is an exhaustive search, and what is given is in the result."""

import itertools
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from redraft.draft.halves import Half, HalfSearch, HalfTask, HalvesBeam
from redraft.models.base import Words
from redraft.numerics import Array
from redraft.sampler import Chain
from redraft.sentence import Constraints, num_words

_WORDS = ("a", "b", "c", ".", "?", "</s>")
_FREE = ("a", "b", "c")
_FULL = 1000  # wider than all sentences that there are
_MARKS = (".", "?")


class ToyHalf:
    """A distribution of its own after every row of words: all that was read counts."""

    words = _WORDS
    end = len(_WORDS) - 1
    proposable = np.array([word != "</s>" for word in _WORDS])

    def __init__(self, seed: int, *, backward: bool = False):
        self._seed, self.is_backward = seed, backward

    def begin(self, given: Words) -> Words:
        return given[::-1] if self.is_backward else given

    def extend(self, states: Sequence[Words], words: Sequence[str]) -> list[Words]:
        return [(*state, word) for state, word in zip(states, words, strict=True)]

    def log_dists(self, states: Sequence[Words]) -> NDArray[np.floating]:
        return np.stack([self._log_dist(state) for state in states])

    def log_ends(self, states: Sequence[Words]) -> NDArray[np.floating]:
        return self.log_dists(states)[:, self.end]

    def _log_dist(self, state: Words) -> Array:
        rng = np.random.default_rng((self._seed, zlib.crc32(" ".join(state).encode())))
        return np.log(rng.dirichlet(np.full(len(_WORDS), 0.5)))

    def score(self, given: Words, words: Words) -> float:
        """Log-probability of words, in text order, and of the end."""
        state, total = self.begin(given), 0.0
        for word in words[::-1] if self.is_backward else words:
            total += self._log_dist(state)[_WORDS.index(word)]
            state = (*state, word)
        return float(total + self._log_dist(state)[self.end])


def _all_halves(model: ToyHalf, given: Words, most: int, endings: Words) -> dict[tuple[Words, str | None], float]:
    rows = [row for num in range(most + 1) for row in itertools.product(_FREE, repeat=num)]
    if not endings:
        return {(row, None): model.score(given, row) for row in rows}
    return {(row, mark): model.score(given, (*row, mark)) for row in rows for mark in endings}


def _as_dict(halves: Sequence[Half]) -> dict[tuple[Words, str | None], float]:
    return {(half.words, half.ending): half.log_prob for half in halves}


def _ranked(beam: HalvesBeam[Words], constraints: Constraints, num: int = 1) -> list[Words]:
    return [one.words for one in beam.ranked(Chain(constraints, np.random.default_rng(0)), num)]


@pytest.mark.parametrize(("backward", "endings"), [(False, ()), (False, _MARKS), (True, ())])
def test_a_full_beam_finds_every_half(backward: bool, endings: Words) -> None:
    model, constraints = ToyHalf(3, backward=backward), Constraints(("a",), max_words=6, endings=_MARKS)
    found = HalfSearch(model, _FULL).find(HalfTask(constraints, ("a",), 4, endings))
    expected = _all_halves(model, ("a",), 4, endings)
    assert len(found) == len(expected)
    assert _as_dict(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("backward", [False, True])
def test_a_narrow_beam_keeps_the_best_of_each_length(backward: bool) -> None:
    """Its first step is exact; after that it scores what it keeps as an exhaustive search does."""
    model, constraints = ToyHalf(4, backward=backward), Constraints(("a",), max_words=6, endings=_MARKS)
    found = HalfSearch(model, 2).find(HalfTask(constraints, ("a",), 4))
    everything = _all_halves(model, ("a",), 4, ())
    assert all(half.log_prob == pytest.approx(everything[half.words, None], abs=1e-9) for half in found)
    assert [len(half.words) for half in found] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    dist = model._log_dist(model.begin(("a",)))
    best = sorted(_FREE, key=lambda word: -dist[_WORDS.index(word)])[:2]
    assert [half.words[0] for half in found[1:3]] == best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_separate", [True, False])
def test_a_full_beam_is_an_exhaustive_search(seed: int, is_separate: bool) -> None:
    backward, forward = ToyHalf(seed, backward=True), ToyHalf(seed + 10)
    constraints = Constraints(("a",), max_words=6, min_words=4, endings=_MARKS)
    beam = HalvesBeam(backward, forward, _FULL, is_separate=is_separate)
    before = {row: score for (row, _), score in _all_halves(backward, ("a",), 4, ()).items()}
    if not is_separate:
        best = max(before, key=lambda row: before[row])
        before = {best: 0.0}
    scores: dict[Words, float] = {}
    for left, log_left in before.items():
        read = ("a",) if is_separate else (*left, "a")
        for (right, mark), log_right in _all_halves(forward, read, 4 - len(left), _MARKS).items():
            words = (*left, "a", *right, str(mark))
            if num_words(words) >= 4:
                scores[words] = max(scores.get(words, -np.inf), log_left + log_right)
    # The same words may come from several splits, as "a" is not only the keyword.
    assert _ranked(beam, constraints)[0] == max(scores, key=lambda words: scores[words])


def test_the_asynchronous_forward_half_sees_the_backward_half() -> None:
    forward = ToyHalf(1)
    constraints = Constraints(("a",), max_words=7, min_words=5, endings=_MARKS)
    separate, following = set(), set()
    for seed in range(12):
        backward = ToyHalf(100 + seed, backward=True)
        (best,) = _ranked(HalvesBeam(backward, forward, 10, is_separate=False), constraints)
        left = max(HalfSearch(backward, 10).find(HalfTask(constraints, ("a",), 5)), key=lambda half: half.log_prob)
        assert best[: len(left.words) + 1] == (*left.words, "a")
        right = HalfSearch(forward, 10).find(
            HalfTask(constraints, (*left.words, "a"), 5 - len(left.words), constraints.allowed_endings)
        )
        enough = [half for half in right if len(left.words) + 1 + len(half.words) >= 5]
        expected = max(enough, key=lambda half: half.log_prob)
        assert best == (*left.words, "a", *expected.words, str(expected.ending))
        following.add(forward.log_dists([(*left.words, "a")])[0].tobytes())
        separate.add(forward.log_dists([("a",)])[0].tobytes())
    assert len(separate) == 1 < len(following)


@pytest.mark.parametrize("is_separate", [True, False])
@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(("a",), endings=_MARKS),
        Constraints(("a",), max_words=2, endings=_MARKS),
        Constraints(("a",), max_words=5, min_words=4, endings=("?",)),
        Constraints(("a",), max_words=6, endings=()),
        Constraints(("a",), ban=("b", "."), max_words=8, endings=_MARKS),
        Constraints(("a",), ban=("b a", "a c", "c b", "c ."), max_words=8, min_words=6, endings=_MARKS),
        Constraints(("unknown",), max_words=8, endings=_MARKS),
    ],
)
def test_what_it_writes_meets_the_constraints(constraints: Constraints, is_separate: bool) -> None:
    for seed in range(5):
        beam = HalvesBeam(ToyHalf(seed, backward=True), ToyHalf(seed + 9), 3, is_separate=is_separate)
        (words,) = _ranked(beam, constraints)
        assert not constraints.unmet(words)


def test_several_sentences_come_best_first() -> None:
    beam = HalvesBeam(ToyHalf(1, backward=True), ToyHalf(2), 4, is_separate=True)
    constraints = Constraints(("a",), max_words=8, endings=_MARKS)
    several = _ranked(beam, constraints, 6)
    assert len(several) == 6
    assert several[:1] == _ranked(beam, constraints)
