import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.numerics import accept, draw, draw_index, log_normalise, log_of, log_sum, log_uniform

_weights = st.lists(st.floats(-5000, 0), min_size=1, max_size=8).map(np.array)


@given(_weights)
def test_normalising_sums_to_one_however_small_the_weights(weights: np.ndarray) -> None:
    assert np.exp(log_normalise(weights)).sum() == pytest.approx(1, abs=1e-12)
    assert log_sum(weights) >= weights.max()


def test_no_weight() -> None:
    assert log_sum(np.array([])) == -np.inf
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert log_sum(np.array([1.0, np.inf])) == np.inf
    with pytest.raises(ValueError, match="every weight is zero"):
        draw(np.array([-np.inf, -np.inf]), np.random.default_rng(0))


def test_draws_follow_the_weights() -> None:
    rng = np.random.default_rng(0)
    log_weights = log_of(np.array([0.0, 1.0, 3.0, 6.0])) - 3000
    counts = np.bincount([draw(log_weights, rng) for _ in range(20_000)], minlength=4)
    expected = np.array([0.0, 0.1, 0.3, 0.6])
    assert np.all(np.abs(counts / 20_000 - expected) <= 4 * np.sqrt(expected / 20_000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_of_an_index_follow_many_weights(dtype: type) -> None:
    rng, size = np.random.default_rng(1), 700
    weights = (rng.random(size) * (rng.random(size) < 0.1) * (np.arange(size) // 256 != 1)).astype(dtype)
    counts = np.bincount([draw_index(weights, rng) for _ in range(20_000)], minlength=size)
    expected = weights / weights.sum()
    assert np.all(np.abs(counts / 20_000 - expected) <= 5 * np.sqrt(expected / 20_000))


@given(st.integers(1, 600), st.data())
def test_only_a_positive_weight_is_drawn(size: int, data: st.DataObject) -> None:
    weights = np.zeros(size, dtype=np.float32)
    weights[data.draw(st.integers(0, size - 1))] = data.draw(st.sampled_from([1e-30, 0.1, 1e30]))
    assert weights[draw_index(weights, np.random.default_rng(data.draw(st.integers(0, 9))))] > 0


def test_metropolis() -> None:
    rng = np.random.default_rng(0)
    assert all(accept(0.0, log_uniform(rng)) for _ in range(1000))
    assert not any(accept(-np.inf, log_uniform(rng)) for _ in range(1000))
    rate = np.mean([accept(np.log(0.3), log_uniform(rng)) for _ in range(20_000)])
    assert rate == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 20_000))
