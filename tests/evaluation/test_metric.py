import numpy as np
import pytest

from redraft.evaluation.metric import Bootstrap, linearised, mean, share

VALUES = np.random.default_rng(1).normal(5, 2, size=200)


def figure_of(metric, bootstrap=Bootstrap()):  # noqa: B008
    return bootstrap.figure(metric, bootstrap.counts(len(metric)))


def test_interval_of_a_mean_is_about_two_standard_errors():
    figure = figure_of(mean("x", "nats", VALUES))
    error = VALUES.std() / np.sqrt(len(VALUES))
    assert figure.value == pytest.approx(VALUES.mean())
    assert figure.low == pytest.approx(figure.value - 1.96 * error, abs=0.15 * error)
    assert figure.high == pytest.approx(figure.value + 1.96 * error, abs=0.15 * error)


def test_same_seed_same_interval_and_other_seed_another():
    metric = mean("x", "", VALUES)
    assert figure_of(metric) == figure_of(metric)
    assert figure_of(metric).low != figure_of(metric, Bootstrap(seed=1)).low


def test_signature_names_settings_and_version():
    figure = figure_of(mean("x", "", VALUES, tok="redraft"), Bootstrap(num_draws=10, seed=7))
    assert figure.signature.startswith("x|tok:redraft|n:200|ci:0.95|bs:10|seed:7|redraft:")


@pytest.mark.parametrize("num", [1, 2])
def test_too_few_sentences_have_no_interval(num):
    figure = figure_of(mean("x", "", VALUES[:num]))
    assert (figure.low, figure.high) == (None, None)


def test_share_passes_over_draws_without_a_whole():
    figure = figure_of(share("x", "", [1.0, 0, 0, 0], [2.0, 0, 0, 0]))
    assert (figure.value, figure.low, figure.high) == (0.5, 0.5, 0.5)


def test_linearised_mean_is_the_mean():
    """For a mean the influence of a sentence is its own distance from it: both bootstraps are the same."""
    without = (VALUES.sum() - VALUES) / (len(VALUES) - 1)
    metric = linearised("x", "", float(VALUES.mean()), without)
    assert metric.statistics[:, 0] == pytest.approx(VALUES)
    assert metric.value == pytest.approx(VALUES.mean())


def test_difference_to_itself_is_nothing():
    metric = mean("x", "", VALUES)
    difference = Bootstrap().difference(metric, metric, Bootstrap().counts(len(VALUES)))
    assert (difference.value, difference.low, difference.high, difference.p_value) == (0, 0, 0, 1)


@pytest.mark.parametrize(("shift", "significant"), [(0.0, False), (0.5, True), (-0.5, True)])
def test_paired_difference_finds_a_shift_that_unpaired_noise_would_hide(shift, significant):
    noise = np.random.default_rng(2).normal(0, 0.3, size=len(VALUES))
    noise -= noise.mean()
    first, second = mean("x", "", VALUES + shift + noise), mean("x", "", VALUES)
    difference = Bootstrap().difference(first, second, Bootstrap().counts(len(VALUES)))
    assert difference.value == pytest.approx(shift, abs=1e-9)
    assert (difference.p_value < 0.01) is significant
    assert "test:paired-bootstrap" in difference.signature


def test_p_values_are_uniform_without_a_difference():
    """Of 200 pairs that differ by chance alone about one in ten may be below 0.1."""
    rng = np.random.default_rng(3)
    bootstrap = Bootstrap(num_draws=200)
    counts = bootstrap.counts(100)
    pairs = [(mean("x", "", rng.normal(size=100)), mean("x", "", rng.normal(size=100))) for _ in range(200)]
    low = sum(bootstrap.difference(one, other, counts).p_value < 0.1 for one, other in pairs)
    assert 8 <= low <= 36


# Golden: scipy.stats.binomtest(num_yes, num).proportion_ci(0.95, method="wilson").
@pytest.mark.parametrize(
    ("num_yes", "num", "low", "high"),
    [(0, 200, 0.0, 1.884534), (200, 200, 98.115466, 100.0), (3, 4, 30.064184, 95.441276), (7, 50, 6.950833, 26.186194)],
)
def test_a_share_of_yes_and_no_has_an_interval_even_if_all_say_the_same(num_yes, num, low, high):
    metric = mean("m", "%", [100.0] * num_yes + [0.0] * (num - num_yes))
    figure = Bootstrap().figure(metric, Bootstrap().counts(num))
    assert (figure.low, figure.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert "ci_by:wilson" in figure.signature


def test_no_interval_reaches_beyond_what_is_possible():
    metric = linearised("m", "%", 99.0, np.array([99.5, 96.0, 99.9, 99.2]))
    figure = Bootstrap().figure(metric, Bootstrap().counts(4))
    assert figure.high <= 100.0
    assert figure.low < 99.0


def test_a_quotient_is_taken_on_the_same_draws():
    values = np.random.default_rng(0).normal(4, 1, 100)
    first, second = mean("m", "nats", 1.5 * values), mean("m", "nats", values)
    found = Bootstrap().quotient("ratio", first, second, Bootstrap().counts(100))
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))
    assert found.signature.startswith("ratio|")


def test_sentences_without_a_whole_are_not_counted_as_inputs():
    metric = share("x", "%", [0.0, 100.0, 0.0], [2.0, 1.0, 0.0])
    assert (len(metric), metric.num_inputs) == (3, 2)
    assert Bootstrap().figure(metric, Bootstrap().counts(3)).num_inputs == 2
