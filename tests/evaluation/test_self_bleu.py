"""Golden: Self-BLEU equals n times nltk's sentence BLEU, and its influences equal leaving sentences out."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from redraft.evaluation.metric import Bootstrap
from redraft.evaluation.self_bleu import self_bleu, self_bleu_scores
from tests.evaluation.making import sentences


def by_nltk(outputs):
    smooth = SmoothingFunction().method1
    return [
        100 * sentence_bleu(outputs[:i] + outputs[i + 1 :], output, smoothing_function=smooth)
        for i, output in enumerate(outputs)
    ]


def left_out(outputs):
    """Rows of the metric by the definition: the figure, and how far each sentence moves it, centred."""
    value = np.mean(by_nltk(outputs))
    without = [np.mean(by_nltk(outputs[:i] + outputs[i + 1 :])) for i in range(len(outputs))]
    influence = (len(outputs) - 1) * (value - np.array(without))
    return value + influence - influence.mean()


def test_equals_nltk():
    outputs = [*sentences(40, seed=3, most=25), ["Yes", "."], ["No"], ["the", "doctor"], [], list("." * 9)]
    assert self_bleu_scores(outputs) == pytest.approx(by_nltk(outputs), abs=1e-6)
    assert self_bleu(outputs).value == pytest.approx(np.mean(by_nltk(outputs)), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=7), min_size=3, max_size=7))
def test_influences_equal_leaving_out(outputs):
    assert self_bleu(outputs).statistics[:, 0] == pytest.approx(left_out(outputs), abs=1e-6)


def test_the_interval_holds_the_value():
    metric = self_bleu(sentences(100, seed=4))
    figure = Bootstrap().figure(metric, Bootstrap().counts(100))
    assert figure.low < figure.value < figure.high
    assert "ci_by:influence" in figure.signature


@pytest.mark.parametrize("num", [2, 3])
def test_few_sentences(num):
    assert self_bleu([["a", "b", "c", "d"]] * num).value == pytest.approx(100)


def test_one_sentence_has_no_others():
    assert self_bleu([["a"]]) is None


def test_a_thousand_sentences_are_quick():
    outputs = sentences(1000, seed=5, most=40)
    start = time.process_time()
    self_bleu(outputs)
    assert time.process_time() - start < 20
