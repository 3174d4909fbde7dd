import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft import recipes
from redraft.assemble import build
from redraft.models.pack import Pack
from redraft.numerics import log_sum
from redraft.revise.accept import paper_log_ratio
from redraft.sampler import Chain, Revision, Sampler, State
from redraft.sentence import Action, Constraints

_INPUTS = st.sampled_from(
    [
        Constraints(keywords=("dog", "park")),
        Constraints(keywords=("old man", "Obama", "can't"), max_words=9),
        Constraints(template="The ___ sees ___ ."),
        Constraints(template="___ river"),
        Constraints(keywords=("letter",), ban=("the", "a red"), endings=()),
    ]
)


@pytest.fixture(scope="module", params=["l-mcmc paper", "l-mcmc-deletion paper", "l-mcmc exact"])
def sampler(request: pytest.FixtureRequest, tiny_pack: Pack) -> Sampler:
    name, kernel = request.param.split()
    return build(recipes.recipe(name, num_candidates=8, kernel=kernel), tiny_pack)


def _run(sampler: Sampler, chains: list[Chain], steps: int) -> list[list[tuple[State, Revision | None]]]:
    states = sampler.init(chains)
    history = []
    for _ in range(steps):
        history.append(sampler.step(chains, states))
        states = [state for state, _ in history[-1]]
    return history


def _chains(inputs: list[Constraints], seed: int) -> list[Chain]:
    return [Chain(constraints, np.random.default_rng((seed, i))) for i, constraints in enumerate(inputs)]


@settings(max_examples=15)
@given(st.lists(_INPUTS, min_size=2, max_size=5), st.integers(0, 1000))
def test_a_batch_of_chains_gives_what_each_gives_alone(sampler, inputs, seed) -> None:  # type: ignore[no-untyped-def]
    together = _run(sampler, _chains(inputs, seed), 12)
    for i, chain in enumerate(_chains(inputs, seed)):
        alone = _run(sampler, [chain], 12)
        assert [step[i][0].sentence for step in together] == [step[0][0].sentence for step in alone]
        ratios = [
            (step[i][1] and step[i][1].log_ratio, one[0][1] and one[0][1].log_ratio)
            for step, one in zip(together, alone, strict=True)
        ]
        assert all(a == pytest.approx(b, abs=1e-3) for a, b in ratios)


@settings(max_examples=15)
@given(_INPUTS, st.integers(0, 1000))
def test_every_state_meets_the_constraints_and_scores_what_it_should(sampler, constraints, seed) -> None:  # type: ignore[no-untyped-def]
    chains = _chains([constraints], seed)
    for ((state, revision),) in _run(sampler, chains, 15):
        assert set(constraints.unmet(state.sentence.words)) <= {"words in every blank"}  # chains start with empty ones
        fresh = sampler.init(chains)  # a reading of another sentence
        assert sampler.read(chains, [state.sentence], [fresh[0].readings])[0].log_prob == pytest.approx(
            state.log_prob, abs=1e-3
        )
        if revision:
            assert revision.words == state.sentence.words
            assert revision.nll == state.nll


def test_revisions_tell_what_happened(sampler: Sampler) -> None:
    (chain,) = _chains([Constraints(keywords=("dog",))], 3)
    words = chain.constraints.start().words
    for ((state, revision),) in _run(sampler, [chain], 30):
        assert revision is not None
        if revision.accepted and revision.action is Action.SWAP:
            at = revision.position
            words = (*words[:at], words[at + 1], words[at], *words[at + 2 :])
        elif revision.accepted:
            old, new = [] if revision.old is None else [revision.old], [] if revision.new is None else [revision.new]
            at = revision.position
            assert list(words[at : at + len(old)]) == old
            words = (*words[:at], *new, *words[at + len(old) :])
        assert state.sentence.words == words


def test_a_chain_with_nothing_to_do_stays(sampler: Sampler) -> None:
    (chain,) = _chains([Constraints(template="the dog ___ .", max_words=3)], 0)
    assert all(revision is None for ((_, revision),) in _run(sampler, [chain], 3))


def test_no_chains(sampler: Sampler) -> None:
    assert sampler.init([]) == []
    assert sampler.step([], []) == []


def test_the_papers_ratios() -> None:
    old, candidates, without = np.log(0.2), np.log(np.array([0.1, 0.3])), np.log(0.4)
    assert paper_log_ratio(Action.REPLACE, old, candidates) == 0
    assert paper_log_ratio(Action.INSERT, old, candidates) == pytest.approx(np.log(0.4 / 0.2))
    assert paper_log_ratio(Action.DELETE, old, candidates, without) == pytest.approx(np.log(0.4 / 0.6))
    assert log_sum(candidates) == pytest.approx(np.log(0.4))
    with pytest.raises(ValueError, match="without the word"):
        paper_log_ratio(Action.DELETE, old, candidates)
