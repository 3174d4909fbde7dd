"""Bayesian MCMC against enumeration, with real LSTMs over a handful of words."""

import itertools
from collections import Counter

import numpy as np
import pytest

from redraft.baselines.gibbs import GibbsPasses
from redraft.blanks import Layout
from redraft.draft.fillable import RandomFilling
from redraft.numerics import log_normalise
from redraft.predict.prior import Move, UniformPrior
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler, State
from redraft.sentence import Action, Constraints
from redraft.target import Target
from tests.lstms import make_lstm, reader, vocabulary_of

_VOCABULARY = vocabulary_of("the The dog sea a .")
_PLAIN = ("the", "dog", "sea", "a", ".")
_ALL = 100  # candidates; more than there are words
_CASES = {
    "inside": Constraints(template="the ___{2} dog ."),
    "opening": Constraints(template="___{2} dog", ban=(".",)),
    "closing": Constraints(template="dog ___{2}", endings=(".", "dog")),
    "a ban": Constraints(template="the ___{2} dog .", ban=("sea",)),
}


def _passes(seed: int = 0, power: float = 1.0) -> GibbsPasses:
    forward, backward = (reader(make_lstm(len(_VOCABULARY), seed + i), _VOCABULARY, backward=bool(i)) for i in range(2))
    proposers = CandidateGenerator([forward, backward], _ALL)
    target = Target(forward, power)
    sampler = Sampler(target, proposers, UniformPrior(), PaperKernel(), frozenset({Action.REPLACE}))
    return GibbsPasses(sampler, RandomFilling(_VOCABULARY.words, forward.proposable & _VOCABULARY.is_plain))


def _states(passes: GibbsPasses, constraints: Constraints) -> list[State]:
    """Every sentence that the chain can visit: also those in which "The" stands inside."""
    layout = Layout.of(constraints)
    words = [word for word in (*_PLAIN, "The") if word not in constraints.banned_words]
    choices = [constraints.allowed_endings if layout.locks[at] == -2 else words for at in layout.missing]
    sentences = [layout.filled(some) for some in itertools.product(*choices)]
    first = layout.missing[0] == 0
    kept = [one for one in sentences if not first or one.words[0] != "The"]  # it is held as "the" there
    chain = Chain(constraints, np.random.default_rng(0))
    return passes._sampler.read([chain] * len(kept), kept)


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_each_step_draws_from_the_conditional_and_leaves_the_target_unchanged(
    constraints: Constraints, power: float
) -> None:
    passes = _passes(power=power)
    states = _states(passes, constraints)
    number = {state.sentence.words: i for i, state in enumerate(states)}
    log_target = np.array([state.log_target for state in states])
    target = np.exp(log_normalise(log_target))
    chain = Chain(constraints, np.random.default_rng(0))
    whole_pass = np.eye(len(states))
    for at in Layout.of(constraints).missing:
        transition = np.zeros((len(states), len(states)))
        for i, state in enumerate(states):
            rest = [j for j, other in enumerate(states) if _same_but(state, other, at)]
            words = [states[j].sentence.words[at] for j in rest]
            proposals = passes._sampler.weigh(
                [chain] * len(rest),
                [state] * len(rest),
                [np.empty((0, 0))] * len(rest),
                [Move(Action.REPLACE, at)] * len(rest),
                [(word,) for word in words],
            )
            conditional = np.exp(log_normalise(log_target[rest]))
            for proposal, expected in zip(proposals, conditional, strict=True):
                assert proposal is not None
                assert proposal.log_ratio == 0  # always accepted
                assert np.exp(proposal.log_drawn) == pytest.approx(expected, abs=1e-5)
                new = state.sentence.apply(proposal.edit).words
                transition[i, number[new]] += np.exp(proposal.log_drawn)
        assert transition.sum(1) == pytest.approx(np.ones(len(states)), abs=1e-5)
        assert target @ transition == pytest.approx(target, abs=1e-5)
        whole_pass = whole_pass @ transition
    assert target @ whole_pass == pytest.approx(target, abs=1e-5)


def _same_but(one: State, other: State, at: int) -> bool:
    a, b = one.sentence.words, other.sentence.words
    return a[:at] == b[:at] and a[at + 1 :] == b[at + 1 :]


def test_a_long_chain_visits_sentences_as_often_as_the_target_says() -> None:
    constraints, passes = _CASES["inside"], _passes(seed=5)
    states = _states(passes, constraints)
    target = np.exp(log_normalise(np.array([state.log_target for state in states])))
    chains = [Chain(constraints, np.random.default_rng(seed)) for seed in range(20)]
    current, seen = passes.init(chains), Counter()
    for number in range(60):
        for at in Layout.of(constraints).missing:
            current = [state for state, _ in passes.revise(chains, current, [at] * len(chains))]
        if number >= 10:
            seen.update(state.sentence.words for state in current)
    shares = np.array([seen[state.sentence.words] for state in states]) / seen.total()
    assert 0.5 * np.abs(shares - target).sum() < 0.12
    assert 0.5 * np.abs(1 / len(states) - target).sum() > 0.3  # what does not sample is found out
