"""By hand, and influences against leaving sentences out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.evaluation.diversity import distinct, entropy
from redraft.evaluation.metric import Bootstrap
from redraft.evaluation.self_bleu import self_bleu
from tests.evaluation.making import sentences


def test_distinct_by_hand():
    # a b, b a, a b | a b, b c: five bigrams, three different.
    assert distinct([list("abab"), list("abc")]).value == pytest.approx(100 * 3 / 5)


def test_entropy_by_hand():
    # abcd three times and bcde once: -(3/4 ln 3/4 + 1/4 ln 1/4).
    expected = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert entropy([list("abcd"), list("abcde"), list("abcd")]).value == pytest.approx(expected)


def test_entropy_of_different_ngrams_is_the_log_of_their_number():
    assert entropy([list("abcdefgh"), list("ijklmn")]).value == pytest.approx(math.log(8))


@pytest.mark.parametrize("metric", [distinct, entropy])
def test_nothing_to_count(metric):
    assert metric([["a"], []]) is None


@pytest.mark.parametrize("metric", [distinct, entropy])
@given(outputs=st.lists(st.lists(st.sampled_from("ab"), max_size=8), min_size=3, max_size=6))
def test_influences_equal_leaving_out(metric, outputs):
    found = metric(outputs)
    if found is None:
        return
    rest = [metric(outputs[:i] + outputs[i + 1 :]) for i in range(len(outputs))]
    influence = (len(outputs) - 1) * (found.value - np.array([one.value if one else 0.0 for one in rest]))
    assert found.statistics[:, 0] == pytest.approx(found.value + influence - influence.mean(), abs=1e-6)


@pytest.mark.parametrize("metric", [distinct, entropy, self_bleu])
def test_interval_covers_the_spread_of_fresh_samples(metric):
    """The interval is about as wide as the values of other samples of that size spread, and no narrower."""
    values = [metric(sentences(80, seed=seed)).value for seed in range(100)]
    found = metric(sentences(80, seed=0))
    figure = Bootstrap().figure(found, Bootstrap().counts(80))
    width, spread = figure.high - figure.low, 2 * 1.96 * np.std(values)
    assert 0.9 * spread < width < 2 * spread
