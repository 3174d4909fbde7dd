"""Tables of the learned prior: the classifier's probabilities where something may be done, nothing elsewhere."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.models.base import Words
from redraft.numerics import Array
from redraft.predict.learned import Learned, LearnedPrior
from redraft.predict.legal import ROW, legal_table
from redraft.predict.prior import draw_move
from redraft.sentence import ENDING, FREE, Action, Constraints, Order, Sentence

_ACTIONS = frozenset(Action)
_LABELLED = _ACTIONS - {Action.SWAP, Action.VARY}  # what the paper's classifier has labels for


class _Fixed:
    """A classifier that says the same of a sentence each time, whatever it is."""

    def __init__(self) -> None:
        self.calls = 0

    def log_probs(self, sentences: Sequence[Words]) -> list[Array]:
        self.calls += 1
        return [_scores(words) for words in sentences]


def _scores(words: Words) -> Array:
    weights = np.random.default_rng(len(words)).random((len(words) + 1, 4)) + 0.01
    scores: Array = np.log(weights / weights.sum(1, keepdims=True))
    return scores


def _prior(learned: Learned = Learned.ALL) -> LearnedPrior:
    return LearnedPrior(_Fixed(), learned)  # type: ignore[arg-type]


@st.composite
def _sentences(draw: st.DrawFn) -> tuple[Sentence, Constraints]:
    """A sentence with locked, free and ending words, and gaps closed inside a locked phrase."""
    size = draw(st.integers(1, 8))
    locks = draw(st.lists(st.sampled_from([FREE, FREE, 0, 1]), min_size=size, max_size=size))
    gaps = draw(st.lists(st.booleans(), min_size=size + 1, max_size=size + 1))
    if draw(st.booleans()):
        locks[-1], gaps[-1] = ENDING, False
    constraints = Constraints(keywords=("x",), max_words=draw(st.integers(2, 9)))
    words = tuple(f"w{i}" for i in range(size))
    return Sentence(words, tuple(locks), tuple(gaps)), constraints


@given(_sentences(), st.sampled_from(Learned), st.sets(st.sampled_from(Action)))
def test_nothing_illegal_has_weight_and_nothing_legal_lacks_it(
    given_: tuple[Sentence, Constraints], learned: Learned, actions: set[Action]
) -> None:
    sentence, constraints = given_
    legal = legal_table(sentence, constraints, frozenset(actions))
    table = _prior(learned).log_tables([sentence], [legal])[0]
    assert np.array_equal(np.isfinite(table), legal)
    assert not np.isnan(table).any()
    for position, lock in enumerate(sentence.locks):
        if lock not in (FREE, ENDING):
            assert table[ROW[Action.REPLACE], position] == table[ROW[Action.DELETE], position] == -np.inf
    assert (table[[ROW[Action.REPLACE], ROW[Action.DELETE]], -1] == -np.inf).all()
    if len(sentence) >= constraints.limit:
        assert (table[ROW[Action.INSERT]] == -np.inf).all()
    assert (table[ROW[Action.INSERT]][~np.array(sentence.open_gaps)] == -np.inf).all()
    move = draw_move(table, np.random.default_rng(0))
    assert (move is None) == (not legal.any())
    assert move is None or legal[ROW[move.action], move.position]


def test_a_given_word_is_varied_where_the_classifier_would_replace_it() -> None:
    constraints = Constraints(keywords=("person|man", "home"))
    sentence = Sentence(("person", "at", "home", "."), (0, FREE, 1, ENDING), (True, True, True, True, False))
    legal = legal_table(sentence, constraints, _ACTIONS)
    assert legal[ROW[Action.VARY]].tolist() == [True, False, False, False, False]
    (table,) = _prior().log_tables([sentence], [legal])
    assert np.array_equal(np.isfinite(table), legal)


def _case() -> tuple[Sentence, np.ndarray]:
    constraints = Constraints(keywords=("person", "home"))
    sentence = Sentence(("person", "at", "home", "."), (0, FREE, 1, ENDING), (True, True, True, True, False))
    return sentence, legal_table(sentence, constraints, _LABELLED)


def test_the_table_is_the_papers() -> None:
    sentence, legal = _case()
    table = np.exp(_prior().log_tables([sentence], [legal])[0])
    expected = np.exp(_scores(sentence.words))
    assert table[ROW[Action.INSERT]] == pytest.approx([*expected[:4, 2], 0])
    assert table[ROW[Action.REPLACE]] == pytest.approx([0, expected[1, 1], 0, expected[3, 1], 0])
    assert table[ROW[Action.DELETE]] == pytest.approx([0, expected[1, 3], 0, 0, 0])


def test_without_the_prior_for_actions() -> None:
    sentence, legal = _case()
    both, positions = (
        np.exp(_prior(which).log_tables([sentence], [legal])[0]) for which in (Learned.ALL, Learned.POSITIONS)
    )
    assert positions.sum(1) == pytest.approx([1, 1, 1, 0])
    assert positions[:3] == pytest.approx(both[:3] / both[:3].sum(1, keepdims=True))


def test_without_the_prior_for_positions() -> None:
    sentence, legal = _case()
    both, actions = (
        np.exp(_prior(which).log_tables([sentence], [legal])[0]) for which in (Learned.ALL, Learned.ACTIONS)
    )
    assert actions.sum(1) == pytest.approx(both.sum(1))
    for row, allowed in zip(actions, legal, strict=True):
        assert np.unique(row[allowed].round(12)).size <= 1


def test_swaps_share_a_tenth_of_the_mass() -> None:
    constraints = Constraints(keywords=("a", "b", "c"), order=Order.ANY)
    sentence = constraints.start()
    plain = _prior().log_tables([sentence], [legal_table(sentence, constraints, _LABELLED)])[0]
    table = _prior().log_tables([sentence], [legal_table(sentence, constraints, _ACTIONS)])[0]
    assert np.exp(table[ROW[Action.SWAP]]) == pytest.approx([np.exp(plain).sum() / 20] * 2 + [0] * 3)


def test_one_call_serves_the_batch() -> None:
    fixed = _Fixed()
    sentence, legal = _case()
    tables = LearnedPrior(fixed).log_tables([sentence] * 5, [legal] * 5)  # type: ignore[arg-type]
    assert len(tables) == 5
    assert fixed.calls == 1
