"""Scores that are computed only as far as a draw depends on them, and readings that are kept."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.making import whole_score
from tests.xlnets import SENTENCES, WORDS

from redraft.models.base import Slot
from redraft.models.pieces import SentencePieces
from redraft.models.xlnet import scoring as xlnet_scoring
from redraft.models.xlnet.network import XlnetLM
from redraft.models.xlnet.reader import XlnetReader
from redraft.models.xlnet.scoring import ScoreBound
from redraft.models.xlnet.words import PieceWords
from redraft.predict.prior import UniformPrior
from redraft.revise import lazy
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler
from redraft.sentence import Constraints
from redraft.target import Target


@pytest.fixture
def fresh(network: XlnetLM, pieces: Path) -> XlnetReader:
    """A forward reader that remembers nothing yet."""
    return XlnetReader("fresh", network, PieceWords(SentencePieces(pieces)))


def test_long_rows_are_read_in_parts(fresh: XlnetReader, forward: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    slots = [Slot(words, 1, 2), Slot(words, 4, 5)]
    fillings = [[("house",), ("dog", "house"), ("man",)], [("dog",)]]
    readings = forward.read([words, words], [None, None])
    whole = forward.log_probs_filled(slots, fillings, readings)
    calls: list[int] = []
    extend = fresh.extend

    def counting(rows, prefixes):  # type: ignore[no-untyped-def]
        calls.append(sum(map(len, rows)))
        return extend(rows, prefixes)

    monkeypatch.setattr(fresh, "extend", counting)
    monkeypatch.setattr("redraft.models.xlnet.reader._CALL_PAIRS", 120)
    monkeypatch.setattr("redraft.models.xlnet.reader._CALL_PIECES", 1)  # or parts would be joined again
    parts = fresh.log_probs_filled(slots, fillings, readings)
    assert sum(calls) == 4
    assert len(calls) > 1
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, rel=1e-5)


def test_nothing_is_scored_twice(fresh: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    replace, insert = Slot(words, 1, 2), Slot(("the", *words[2:]), 1, 1)  # the same sentences, once as a gap
    readings = fresh.read([words, insert.words], [None, None])
    fillings = [("house",), ("dog",)]
    (first,) = fresh.log_probs_filled([replace], [fillings], readings[:1])
    monkeypatch.setattr(fresh, "extend", None)
    (again,) = fresh.log_probs_filled([insert], [fillings], readings[1:])
    assert again.tolist() == first.tolist()
    with pytest.raises(TypeError):
        fresh.log_probs_filled([insert], [[("man",)]], readings[1:])


def test_what_was_asked_for_long_ago_is_forgotten(fresh: XlnetReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redraft.models.xlnet.reader._KEPT", 5)
    slots = [Slot(("a", "b", "c"), at, at) for at in range(3)]
    fillings = [("x",), ("y",)]
    first, _ = fresh._bounds_of(slots[0], fillings)
    first.lower(-1.0, is_final=False)
    fresh._bounds_of(slots[1], fillings)
    assert fresh._bounds_of(slots[0], [("x",)]) == [first]
    fresh._bounds_of(slots[2], fillings)  # the second is the one that was not asked for since
    assert fresh._bounds_of(slots[0], fillings)[0] is first
    fresh._bounds_of(slots[1], fillings)
    fresh._bounds_of(slots[2], fillings)
    assert np.isinf(fresh._bounds_of(slots[0], fillings)[0].bound)


def test_a_bound_is_never_given_up_for_a_looser_one() -> None:
    score = ScoreBound()
    for bound, is_final, expected in (
        (-1.0, False, -1.0),
        (-0.5, False, -1.0),
        (-2.0, True, -2.0),
        (-3.0, False, -2.0),
    ):
        score.lower(bound, is_final=is_final)
        assert score.bound == expected
    assert score.is_final


def test_chains_that_ask_for_the_same_share_what_is_found(fresh: XlnetReader, forward: XlnetReader) -> None:
    words = ("the", "dog", "sees", "a", "man", ".")
    slot, fillings = Slot(words, 1, 2), [("house",), ("fine-tuning",)]
    readings = fresh.read([words, words], [None, None])
    exact = [whole_score(forward, slot.fill(filling)) for filling in fillings]
    scoring = fresh.scoring([slot, slot], [fillings, fillings[::-1]], readings)
    for wanted, num in (([[0], []], 2), ([[], [1]], 1), ([[0], [1]], 1), ([[0, 1], [0]], 1), ([[], [0, 1]], None)):
        before = scoring.bounds
        scoring.advance(wanted, num)
        one, other = scoring.bounds
        assert one.tolist() == other[::-1].tolist()
        assert (one <= before[0]).all()
        done = scoring.num_left[0] == 0
        assert one[done] == pytest.approx(np.array(exact)[done], abs=1e-4)
    assert done.all()


def test_what_cannot_wait_is_completed_at_once(
    fresh: XlnetReader, forward: XlnetReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redraft.models.xlnet.scoring._HELD", 3)
    words = ("the", "dog", "sees", "a", "man", ".")
    slot, fillings = Slot(words, 1, 2), [("house",), ("man",)]
    scoring = fresh.scoring([slot], [fillings], fresh.read([words], [None]))
    assert scoring.num_left[0].tolist() == [0, 0]
    assert scoring.bounds[0] == pytest.approx([whole_score(forward, slot.fill(one)) for one in fillings], abs=1e-4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bounds_come_down_to_the_scores(network, pieces, forward, data) -> None:  # type: ignore[no-untyped-def]
    """Sentences may be advanced in any order. A second scoring continues from the bounds of the first."""
    reader = XlnetReader("new", network, forward.pieces)
    sentences = data.draw(st.lists(SENTENCES, min_size=1, max_size=3))
    slots, fills = [], []
    for words in sentences:
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(start + 1, len(words))))))
        some = st.lists(st.lists(st.sampled_from(WORDS), max_size=2).map(tuple), max_size=4, unique=True)
        fills.append(data.draw(some))
    readings = reader.read(sentences, [None] * len(sentences))
    exact = [
        [whole_score(forward, slot.fill(words)) for words in fill] for slot, fill in zip(slots, fills, strict=True)
    ]
    scoring = reader.scoring(slots, fills, readings)
    before = scoring.bounds
    for _ in range(data.draw(st.integers(0, 6))):
        wanted = [data.draw(st.lists(st.sampled_from(range(len(f))), unique=True)) if f else [] for f in fills]
        scoring.advance(wanted, data.draw(st.sampled_from([None, 1, 2])))
        if data.draw(st.booleans()):
            scoring = reader.scoring(slots, fills, readings)
        for now, old, score, left in zip(scoring.bounds, before, exact, scoring.num_left, strict=True):
            assert (now <= old + 1e-4).all()
            assert (now >= np.array(score) - 1e-4).all()
            assert now[left == 0] == pytest.approx(np.array(score)[left == 0], abs=1e-4)
        before = scoring.bounds
    scoring.advance([range(len(fill)) for fill in fills])
    assert not any(left.any() for left in scoring.num_left)
    for now, score in zip(scoring.bounds, exact, strict=True):
        assert now == pytest.approx(np.array(score), abs=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_lazy_chains_go_where_full_ones_go(three, rounded, monkeypatch: pytest.MonkeyPatch, precision: str) -> None:  # type: ignore[no-untyped-def]
    """The same states at every step, with fewer sums over all pieces."""
    forward, backward = (three if precision == "float32" else rounded)[:2]
    num_rows = []
    log_sums = xlnet_scoring.log_sum_exp

    def counting(hidden, weight, bias):  # type: ignore[no-untyped-def]
        num_rows[-1] += len(hidden) * len(bias)
        return log_sums(hidden, weight, bias)

    def walk(*, is_lazy: bool) -> list[list[tuple[str, ...]]]:
        own = [XlnetReader(one.name, one.network, one.pieces, backward=one.backward) for one in (forward, backward)]
        generator = CandidateGenerator(own, 12)
        sampler = Sampler(Target(own[0]), generator, UniformPrior(), PaperKernel(), PaperKernel.actions)
        sampler._is_lazy = is_lazy
        chains = [Chain(Constraints(("dog", "house")), np.random.default_rng(seed)) for seed in range(3)]
        states, seen = sampler.init(chains), []
        num_rows.append(0)
        for _ in range(40):
            states = [state for state, _ in sampler.step(chains, states)]
            seen.append([state.sentence.words for state in states])
        return seen

    monkeypatch.setattr(lazy, "_AT_ONCE", 0)
    monkeypatch.setattr(xlnet_scoring, "log_sum_exp", counting)
    assert walk(is_lazy=True) == walk(is_lazy=False)
    assert num_rows[0] < num_rows[1]
