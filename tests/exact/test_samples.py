"""Long runs against the enumerated target. What is tolerated is the Monte-Carlo error, from the effective size."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from redraft import recipes
from redraft.assemble import build
from redraft.diagnostics import _arviz, diagnose, plot, series
from redraft.errors import InputError
from redraft.models.pack import Pack
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain
from redraft.sampling import Samples, sample
from redraft.sentence import Constraints, Order
from redraft.target import prefer, prefer_length
from tests.exact.toy import Bigrams, enumerate_chain, steep_prior, toy_sampler

_WORDS = "a b c"


def _expected_distance(target: np.ndarray, sizes: np.ndarray) -> float:
    """Total variation that draws from the target itself would show, four standard deviations above its mean.

    A frequency with effective size n strays by sqrt(p (1 - p) / n); the mean of |N(0, s)| is s sqrt(2 / pi).
    """
    spread = np.sqrt(target * (1 - target) / sizes)
    mean = 0.5 * spread.sum() * np.sqrt(2 / np.pi)
    return float(mean + 4 * 0.5 * np.sqrt((spread**2).sum() * (1 - 2 / np.pi)))


@pytest.mark.slow
def test_frequencies_of_many_draws_are_those_of_the_target() -> None:
    constraints = Constraints(keywords=("a", "b"), max_words=4, endings=(), order=Order.ANY)
    options = {"prior": steep_prior(), "soft": (prefer("c", 0.8),)}
    enumerated = enumerate_chain(toy_sampler(_WORDS, **options), constraints, _WORDS.split())  # type: ignore[arg-type]
    number = {state.sentence: i for i, state in enumerate(enumerated.states)}
    samples = sample(
        toy_sampler(_WORDS, **options),  # type: ignore[arg-type]
        constraints,
        num=1000,
        burn_in=50,
        thin=1,
        chains=100,
        seed=3,
    )
    assert len(samples.draws) == 100_000
    visits = np.array([[number[draw.sentence] for draw in chain] for chain in samples.by_chain()])
    share = np.bincount(visits.ravel(), minlength=len(number)) / visits.size
    ess = _arviz().ess
    sizes = np.array(
        [ess((visits == i).astype(float), method="mean") if (visits == i).any() else 1 for i in range(len(number))]
    )
    distance = 0.5 * np.abs(share - enumerated.target).sum()
    assert distance < _expected_distance(enumerated.target, sizes)


@pytest.mark.slow
def test_infilling_is_calibrated() -> None:
    """Simulation-based calibration (Talts et al., 2018): a true filling ranks uniformly among draws given the rest."""
    model, limit, num = Bigrams(_WORDS, 1), 4, 19
    rng = np.random.default_rng(5)
    every = [()]
    sentences = []
    for _ in range(limit):
        every = [(*words, word) for words in every for word in model.words]
        sentences += [words for words in every if len(words) >= 2]
    weights = np.exp([model.score(words) for words in sentences])
    ranks = []
    for _ in range(160):
        truth = sentences[rng.choice(len(sentences), p=weights / weights.sum())]
        constraints = Constraints(template=f"{truth[0]} ___ {truth[-1]}", max_words=limit, endings=())
        sampler = toy_sampler(_WORDS, seed=1)
        seed = int(rng.integers(1 << 30))
        draws = sample(sampler, constraints, num=num, burn_in=30, thin=12, seed=seed).draws
        below = sum(draw.log_prob < model.score(truth) - 1e-9 for draw in draws)
        ties = sum(abs(draw.log_prob - model.score(truth)) <= 1e-9 for draw in draws)
        ranks.append(below + rng.integers(ties + 1))  # equal sentences are ranked at random
    counts = np.bincount(np.array(ranks) // 4, minlength=5)
    chi_square = ((counts - 32.0) ** 2 / 32.0).sum()
    assert chi_square < 18.5  # four degrees of freedom: one run in a thousand is above


def test_soft_scores_shift_the_draws_as_the_target_says() -> None:
    constraints = Constraints(keywords=("a",), max_words=4, endings=())
    shares, expected = [], []
    for soft in ((), (prefer("c", 2.0), prefer_length(2, 1.0))):
        enumerated = enumerate_chain(toy_sampler(_WORDS, soft=soft), constraints, _WORDS.split())
        has = np.array(["c" in state.sentence.words for state in enumerated.states])
        expected.append(enumerated.target[has].sum())
        samples = sample(toy_sampler(_WORDS, soft=soft), constraints, num=150, burn_in=30, thin=2, chains=30, seed=1)
        seen = np.array([["c" in draw.sentence.words for draw in chain] for chain in samples.by_chain()], dtype=float)
        size = _arviz().ess(seen, method="mean")
        assert abs(seen.mean() - expected[-1]) < 4 * np.sqrt(expected[-1] * (1 - expected[-1]) / size)
        shares.append(seen.mean())
    assert expected[1] > expected[0] + 0.1


def test_draws_are_only_to_be_had_from_the_exact_kernel() -> None:
    constraints = Constraints(keywords=("a",), max_words=4, endings=())
    with pytest.raises(InputError, match="use the exact kernel"):
        sample(toy_sampler(_WORDS, kernel=PaperKernel()), constraints, num=5)
    with pytest.raises(InputError, match="thin must be at least 1"):
        sample(toy_sampler(_WORDS), constraints, num=5, thin=0)


def test_the_fillings_of_each_blank() -> None:
    constraints = Constraints(template="___ a b ___ c", max_words=5, endings=())
    samples = sample(toy_sampler(_WORDS), constraints, num=200, burn_in=5, thin=1, seed=2)
    first, second = samples.fills(constraints, top=100)
    assert sum(share for _, share in first) == pytest.approx(1)
    assert sum(share for _, share in second) == pytest.approx(1)
    locks = [draw.sentence.locks for draw in samples.draws]
    assert dict(first)[""] == pytest.approx(np.mean([lock[0] == 0 for lock in locks]))
    assert dict(second)[""] == pytest.approx(np.mean([lock[-2] == 0 for lock in locks]))


@pytest.fixture(scope="module")
def mixed() -> Samples:
    constraints = Constraints(keywords=("a",), max_words=4, endings=())
    return sample(toy_sampler(_WORDS), constraints, num=250, burn_in=50, thin=4, chains=6, seed=1)


def test_chains_that_agree_and_chains_that_do_not(mixed: Samples) -> None:
    report = diagnose(mixed)
    assert report.verdict.startswith("The 6 chains of 250 draws agree")
    assert {one.name for one in report.diagnoses} >= {"log-probability", "length"}
    assert all(0 < rate <= 1 for rate in report.acceptance.values())
    first = Constraints(keywords=("a",), max_words=4, endings=())
    other = Constraints(keywords=("a", "b", "b"), max_words=4, endings=())
    apart = [
        draw
        for c, constraints in enumerate((first, other))
        for draw in sample(toy_sampler(_WORDS), constraints, num=100, burn_in=20, thin=2, seed=c).draws
    ]
    bad = Samples(tuple(replace(draw, chain=i // 100) for i, draw in enumerate(apart)), mixed.tried, mixed.accepted, 0)
    assert "do not agree yet" in diagnose(bad).verdict


def test_a_quantity_that_never_changes_is_no_disagreement(mixed: Samples) -> None:
    still = Samples(
        tuple(draw for draw in mixed.draws if draw.sentence.words == mixed.draws[0].sentence.words)[:1] * 8, {}, {}, 0
    )
    assert diagnose(still).diagnoses[0].r_hat == 1.0
    assert "No chain has left its first sentence" in diagnose(still).verdict


def test_a_picture(mixed: Samples, tmp_path) -> None:  # type: ignore[no-untyped-def]
    plot(mixed, tmp_path / "chains.png")
    assert (tmp_path / "chains.png").read_bytes()[:4] == b"\x89PNG"
    assert set(series(mixed)) >= {"log-probability", "length"}


def test_a_long_sentence_stays_finite(tiny_pack: Pack) -> None:
    template = " ".join(["the dog sees the old house near the river ,"] * 25) + " ___ " + "the sea and " * 80 + "."
    constraints = Constraints(template=template, max_words=520)
    assert len(constraints.start()) > 490
    for kernel in ("paper", "exact"):
        sampler = build(recipes.recipe("l-mcmc", num_candidates=5, kernel=kernel), tiny_pack)
        chain = Chain(constraints, np.random.default_rng(0))
        states = sampler.init([chain])
        for _ in range(6):
            ((state, revision),) = sampler.step([chain], states)
            states = [state]
            assert np.isfinite([state.log_prob, state.log_target]).all()
            assert revision is None or not np.isnan(revision.log_ratio)


@pytest.mark.parametrize("kernel", ["paper", "exact"])
def test_one_or_two_threads_give_the_same_chain(tiny_pack: Pack, kernel: str) -> None:
    threads = torch.get_num_threads()
    runs = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            sampler = build(recipes.recipe("l-mcmc", num_candidates=8, kernel=kernel), tiny_pack)
            chain = Chain(Constraints(keywords=("dog", "sea")), np.random.default_rng(4))
            states, words = sampler.init([chain]), []
            for _ in range(25):
                states = [state for state, _ in sampler.step([chain], states)]
                words.append(states[0].sentence.words)
            runs.append(words)
    finally:
        torch.set_num_threads(threads)
    assert runs[0] == runs[1]
