"""CGMH: its acceptance by hand, and how far from stationary it is, cause by cause, by enumeration."""

import numpy as np
import pytest

from redraft.models.base import Slot
from redraft.predict.prior import EqualActionsPrior, Move, log_prior
from redraft.revise.cgmh import CgmhKernel
from redraft.sampler import Chain
from redraft.sentence import Action, Constraints
from tests.exact.toy import Bigrams, Enumerated, choices, enumerate_chain, reachable, toy_sampler

_WORDS = "a b c d"
# "d" is banned, so that three candidates are all the words that there are.
_CASES = {
    "keywords": Constraints(keywords=("a", "c"), ban=("d",), max_words=4, endings=()),
    "a phrase": Constraints(keywords=("a b", "c"), ban=("d",), max_words=5, endings=()),
    "template": Constraints(template="a ___ b ___ c", ban=("d",), max_words=5, endings=()),
}
_PAIR = frozenset({Action.INSERT, Action.DELETE})
_ALL_WORDS, _FEW = 3, 1


class _WithMoves(CgmhKernel):
    """CGMH with what its formulas leave out: the probabilities of drawing the move and its reverse."""

    ratio_needs_prior = True


def _chain(kernel: CgmhKernel, constraints: Constraints, num: int, actions: frozenset[Action]) -> Enumerated:
    sampler = toy_sampler(_WORDS, kernel=kernel, actions=actions, prior=EqualActionsPrior(), num=num)
    chain = enumerate_chain(sampler, constraints, _WORDS.split())
    assert chain.proposed == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
    assert chain.transition.sum(1) == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
    return chain


def _drift(chain: Enumerated) -> float:
    """Total variation to the target after one step from it."""
    return float(0.5 * np.abs(chain.target @ chain.transition - chain.target).sum())


def _imbalance(chain: Enumerated) -> float:
    flow = chain.target[:, None] * chain.transition
    return float(np.abs(flow - flow.T).max())


@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_with_all_words_and_the_moves_in_the_ratio_it_is_stationary(constraints: Constraints) -> None:
    chain = _chain(_WithMoves(), constraints, _ALL_WORDS, CgmhKernel.actions)
    assert _drift(chain) < 1e-12
    assert _imbalance(chain) < 1e-12


@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_insertions_and_deletions_are_in_balance_for_any_candidates(constraints: Constraints) -> None:
    """A word that is not among the candidates is neither inserted nor deleted."""
    for num in (_FEW, _ALL_WORDS):
        assert _imbalance(_chain(_WithMoves(), constraints, num, _PAIR)) < 1e-12


@pytest.mark.parametrize("name", _CASES)
def test_as_published_it_is_not_stationary(name: str) -> None:
    """Two causes, each enough: positions are left out of the ratio; a replaced word may not be a candidate."""
    drifts = {
        "positions": _drift(_chain(CgmhKernel(), _CASES[name], _ALL_WORDS, CgmhKernel.actions)),
        "candidates": _drift(_chain(_WithMoves(), _CASES[name], _FEW, CgmhKernel.actions)),
        "both": _drift(_chain(CgmhKernel(), _CASES[name], _FEW, CgmhKernel.actions)),
    }
    print(f"\ncgmh, {name}: total variation to the target after one step from it: {drifts}")
    assert min(drifts.values()) > 1e-3


@pytest.mark.parametrize("name", _CASES)
def test_what_fails_are_replacements_of_words_that_are_no_candidates(name: str) -> None:
    chain = _chain(_WithMoves(), _CASES[name], 2, frozenset({Action.REPLACE}))
    flow = chain.target[:, None] * chain.transition
    one_way = [(i, j) for i, j in np.argwhere(np.abs(flow - flow.T) > 1e-12)]
    assert one_way
    assert all(flow[i, j] == 0 or flow[j, i] == 0 for i, j in one_way)


def test_acceptance_is_the_brute_force_ratio() -> None:
    num, constraints = 2, Constraints(keywords=("a",), max_words=4, endings=())
    sampler = toy_sampler(_WORDS, kernel=CgmhKernel(), prior=EqualActionsPrior(), num=num)
    forward, backward = Bigrams(_WORDS), Bigrams(_WORDS, backward=True)
    chain = Chain(constraints, np.random.default_rng(0))
    sentences = reachable(constraints, _WORDS.split())
    rng = np.random.default_rng(2)
    refused = 0

    def drawn(slot: Slot, word: str) -> float:
        top = np.argsort(-forward.dist(slot) * backward.dist(slot))[:num]
        scores = {forward.words[i]: np.exp(forward.score(slot.fill((forward.words[i],)))) for i in top}
        return float(scores.get(word, 0.0) / sum(scores.values()))

    for _ in range(300):
        state = sampler.read([chain], [sentences[rng.integers(len(sentences))]])[0]
        table = sampler.log_priors([chain], [state.sentence])[0]
        row, position = (int(v) for v in rng.permutation(np.argwhere(np.isfinite(table)))[0])
        move = Move(list(Action)[row], position)
        word = rng.choice(choices(state.sentence, move, constraints, _WORDS.split()))  # type: ignore[arg-type]
        given = () if word is None else (str(word),)
        (proposal,) = sampler.weigh([chain], [state], [table], [move], [given])
        assert proposal is not None
        old, new = state.sentence.words, state.sentence.apply(proposal.edit).words
        slot = Slot(old, position, position + (move.action is not Action.INSERT))
        ratio = np.exp(forward.score(new)) / np.exp(forward.score(old))
        if move.action is Action.REPLACE:
            ratio = 1.0  # CGMH accepts a Gibbs step whether or not the old word is a candidate
        elif move.action is Action.INSERT:
            there = drawn(slot, given[0])
            assert np.exp(proposal.log_drawn) == pytest.approx(there, abs=1e-12)
            ratio = ratio / there if there else 0.0
        else:
            ratio *= drawn(slot, old[position])
            refused += ratio == 0
        assert np.exp(proposal.log_ratio) == pytest.approx(ratio, rel=1e-9)
    assert refused  # words that are no candidates were among those to delete


def test_actions_are_equally_likely() -> None:
    sampler = toy_sampler(_WORDS, kernel=CgmhKernel(), prior=EqualActionsPrior())
    constraints = Constraints(keywords=("a", "b"), max_words=6, endings=())
    chain = Chain(constraints, np.random.default_rng(0))
    for sentence in reachable(constraints, ["c", "d"])[::7]:
        (table,) = sampler.log_priors([chain], [sentence])
        rows = [action for action, row in zip(Action, table, strict=False) if np.isfinite(row).any()]
        for action in rows:
            row = table[list(Action).index(action)]
            total = sum(np.exp(log_prior(table, Move(action, int(i)))) for i in np.flatnonzero(np.isfinite(row)))
            assert total == pytest.approx(1 / len(rows))
