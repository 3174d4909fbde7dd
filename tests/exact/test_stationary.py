"""The exact kernel leaves its target stationary; the paper's does not. By enumeration, with the production code."""

import numpy as np
import pytest

from redraft.models.base import Slot
from redraft.predict.legal import ROW
from redraft.predict.prior import Move, UniformPrior, log_prior, reverse
from redraft.revise.kernels import ExactKernel, PaperKernel
from redraft.revise.tries import TriesKernel
from redraft.sampler import Chain
from redraft.sentence import Action, Constraints, Order
from redraft.target import penalise_repetition, prefer, prefer_length
from tests.exact.toy import Bigrams, Enumerated, choices, enumerate_chain, reachable, steep_prior, toy_sampler

_WORDS = "a b c d"
_CASES = {
    "keywords": Constraints(keywords=("a", "c"), max_words=4, endings=()),
    "a keyword twice": Constraints(keywords=("a", "a"), max_words=4, endings=()),
    "a phrase": Constraints(keywords=("a b", "c"), max_words=5, endings=()),
    "any order": Constraints(keywords=("a b", "c", "d"), max_words=5, endings=(), order=Order.ANY),
    "banned words": Constraints(keywords=("a",), ban=("b", "c d"), max_words=4, endings=()),
    "template": Constraints(template="a ___ b ___ c", max_words=5, endings=()),
    "template with open ends": Constraints(template="___ b ___", max_words=4, endings=()),
    "endings": Constraints(keywords=("a",), max_words=4, endings=("c", "d")),
    "forms": Constraints(keywords=("a|b", "c"), max_words=4, endings=()),
    "a word or a phrase": Constraints(keywords=('a|"b c"', "d"), max_words=4, endings=(), order=Order.ANY),
    "template with forms": Constraints(template="a|b ___ c|d|a", max_words=4, endings=()),
    "forms and at least": Constraints(keywords=('a|"b c"',), min_words=2, max_words=3, endings=()),
    "at least": Constraints(keywords=("a",), min_words=3, max_words=4, endings=()),
}
_OPTIONS = {
    "plain": {},
    "learned prior": {"prior": steep_prior()},
    "soft scores": {"soft": (prefer("b", 1.5), prefer_length(3, 0.7), penalise_repetition(0.3)), "power": 0.6},
    "all at once": {"prior": steep_prior(), "soft": (prefer("d", -2.0),), "power": 1.7, "num": 1},
}
_ACTIONS = {
    "mixture": frozenset(Action),
    "replace": frozenset({Action.REPLACE}),
    "insert and delete": frozenset({Action.INSERT, Action.DELETE}),
    "swap": frozenset({Action.SWAP}),
}


def _flow(chain: Enumerated) -> np.ndarray:
    return chain.target[:, None] * chain.transition


@pytest.mark.parametrize("actions", _ACTIONS.values(), ids=list(_ACTIONS))
@pytest.mark.parametrize("options", _OPTIONS.values(), ids=list(_OPTIONS))
@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_exact_is_stationary_and_in_detailed_balance(constraints, options, actions) -> None:  # type: ignore[no-untyped-def]
    chain = enumerate_chain(toy_sampler(_WORDS, actions=actions, **options), constraints, _WORDS.split())
    assert chain.proposed == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
    assert chain.transition.sum(1) == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
    assert np.abs(chain.target @ chain.transition - chain.target).max() < 1e-12
    flow = _flow(chain)
    assert np.abs(flow - flow.T).max() < 1e-12


@pytest.mark.parametrize("options", _OPTIONS.values(), ids=list(_OPTIONS))
@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_exact_reaches_every_state_and_has_no_period(constraints, options) -> None:  # type: ignore[no-untyped-def]
    chain = enumerate_chain(toy_sampler(_WORDS, **options), constraints, _WORDS.split())
    inside = chain.target > 0
    steps = np.linalg.matrix_power((chain.transition[np.ix_(inside, inside)] > 0).astype(float), 64) > 0
    assert steps.all()  # any state from any state in exactly 64 steps: irreducible and aperiodic
    outside = ~inside
    assert not chain.transition[np.ix_(inside, outside)].any()  # what was reached once is never left


_TRIES = [(name, options, 1) for name in _CASES for options in _OPTIONS]
_TRIES += [(name, "all at once", 2) for name in ("keywords", "template", "endings", "at least")]
_TRIES += [("keywords", "soft scores", 2), ("banned words", "learned prior", 2), ("small", "plain", 3)]


@pytest.mark.parametrize(("name", "options", "num_tries"), _TRIES)
def test_two_stages_are_stationary_for_any_number_of_tries(name, options, num_tries) -> None:  # type: ignore[no-untyped-def]
    """Delayed acceptance for one try, multiple-try Metropolis for more; the cheap model is as wrong as can be."""
    cheap = Bigrams(_WORDS, seed=7)
    constraints = Constraints(template="a ___", max_words=3, endings=()) if name == "small" else _CASES[name]
    sampler = toy_sampler(_WORDS, kernel=TriesKernel(num_tries, wide=0.1), cheap=cheap, **_OPTIONS[options])
    chain = enumerate_chain(sampler, constraints, _WORDS.split(), num_tries)
    assert chain.proposed == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
    assert np.abs(chain.target @ chain.transition - chain.target).max() < 1e-12
    flow = _flow(chain)
    assert np.abs(flow - flow.T).max() < 1e-12
    inside = chain.target > 0
    steps = np.linalg.matrix_power((chain.transition[np.ix_(inside, inside)] > 0).astype(float), 64) > 0
    assert steps.all()
    assert not chain.transition[np.ix_(inside, ~inside)].any()


@pytest.mark.parametrize("words", ["a b c", "a b c d e"])
def test_other_vocabularies(words: str) -> None:
    for seed in range(3):
        constraints = Constraints(keywords=("a",), max_words=4, endings=())
        chain = enumerate_chain(toy_sampler(words, seed=seed, num=2), constraints, words.split())
        assert np.abs(chain.target @ chain.transition - chain.target).max() < 1e-12


@pytest.mark.parametrize("name", ["keywords", "template"])
def test_the_papers_kernel_is_not_stationary(name: str) -> None:
    """The negative control: the same check must fail where the method is a search."""
    errors = {}
    for label, actions in (("replace, insert", {Action.REPLACE, Action.INSERT}), ("with delete", PaperKernel.actions)):
        sampler = toy_sampler(_WORDS, kernel=PaperKernel(), actions=frozenset(actions))
        chain = enumerate_chain(sampler, _CASES[name], _WORDS.split())
        assert chain.transition.sum(1) == pytest.approx(np.ones(len(chain.states)), abs=1e-12)
        drift = 0.5 * np.abs(chain.target @ chain.transition - chain.target).sum()
        limit = np.linalg.matrix_power(chain.transition, 1 << 14)[0]
        errors[label] = (drift, 0.5 * np.abs(limit - chain.target).sum())
    print(
        f"\npaper kernel, {name}: total variation to the target after one step from it, and in the long run: {errors}"
    )
    assert all(drift > 1e-3 and far > 0.05 for drift, far in errors.values())


def test_log_acceptance_is_the_brute_force_ratio() -> None:
    """Random proposals against target x prior x proposal, written out in linear space."""
    constraints = Constraints(keywords=("a", "c"), max_words=5, endings=())
    forward, backward = Bigrams(_WORDS), Bigrams(_WORDS, backward=True)
    sampler, wide, num = toy_sampler(_WORDS), 0.1, 2
    chain = Chain(constraints, np.random.default_rng(1))
    sentences = reachable(constraints, _WORDS.split())
    rng = np.random.default_rng(2)

    def drawn(slot, word):  # type: ignore[no-untyped-def]
        product = forward.dist(slot) * backward.dist(slot)
        product /= product.sum()
        top = np.argsort(-product)[:num]
        scores = np.array([np.exp(forward.score(slot.fill((forward.words[i],)))) for i in top])
        at = forward.words.index(word)
        narrow = scores[list(top).index(at)] / scores.sum() if at in top else 0.0
        return (1 - wide) * narrow + wide * product[at]

    for _ in range(300):
        state = sampler.read([chain], [sentences[rng.integers(len(sentences))]])[0]
        table = sampler.log_priors([chain], [state.sentence])[0]
        row, position = (int(v) for v in rng.permutation(np.argwhere(np.isfinite(table)))[0])
        move = Move(list(Action)[row], position)
        word = rng.choice(choices(state.sentence, move, constraints, _WORDS.split()))
        word = None if word is None else str(word)
        (proposal,) = sampler.weigh([chain], [state], [table], [move], [() if word is None else (word,)])
        assert proposal is not None
        new = sampler.read([chain], [state.sentence.apply(proposal.edit)])[0]
        back_table = sampler.log_priors([chain], [new.sentence])[0]
        ratio = np.exp(forward.score(new.sentence.words)) / np.exp(forward.score(state.sentence.words))
        ratio *= np.isfinite(table).sum() / np.isfinite(back_table).sum()  # uniform priors
        gap = Slot(state.sentence.words, position, position + (move.action in (Action.REPLACE, Action.DELETE)))
        if word is not None:
            ratio /= drawn(gap, word)
        if move.action in (Action.REPLACE, Action.DELETE):
            ratio *= drawn(gap, state.sentence.words[position])
        assert proposal.log_ratio == pytest.approx(np.log(ratio), abs=1e-9)
        assert log_prior(back_table, reverse(move)) == pytest.approx(-np.log(np.isfinite(back_table).sum()))


def test_kernels_refuse_actions_they_do_not_have() -> None:
    with pytest.raises(ValueError, match=r"cannot .*swap"):
        toy_sampler(_WORDS, kernel=PaperKernel(), actions=frozenset(Action))


def test_a_prior_is_a_distribution() -> None:
    sampler = toy_sampler(_WORDS, kernel=ExactKernel(), prior=UniformPrior())
    constraints = _CASES["any order"]
    chain = Chain(constraints, np.random.default_rng(0))
    for sentence in reachable(constraints, _WORDS.split())[:50]:
        table = sampler.log_priors([chain], [sentence])[0]
        moves = [
            Move(action, i)
            for action in list(Action)[: len(table)]
            for i in np.flatnonzero(np.isfinite(table[ROW[action]]))
        ]
        assert sum(np.exp(log_prior(table, move)) for move in moves) == pytest.approx(1, abs=1e-12)
