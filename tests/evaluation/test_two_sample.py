"""Equal distributions cannot be told apart, disjoint ones always; the AUC is scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import roc_auc_score

from redraft.evaluation import two_sample as module
from redraft.evaluation.evaluate import Judged, Material, metrics_of
from redraft.evaluation.judge import JudgeReading, JudgeScore
from redraft.evaluation.metric import Bootstrap
from redraft.evaluation.outputs import SystemOutput
from redraft.evaluation.two_sample import two_sample, why_not


def figures(outputs, references):
    bootstrap = Bootstrap()
    return [bootstrap.figure(one, bootstrap.counts(len(one))) for one in two_sample(outputs, references, {})]


def test_equal_distributions_are_told_apart_no_better_than_by_chance():
    covered = np.zeros(2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = figures(rng.normal(size=(60, 10)), rng.normal(size=(60, 10)))
        covered += [one.low <= 50 <= one.high for one in found]
    assert (covered >= 17).all()  # 19 are expected; fewer than 17 in 1 of 60 cases


def test_outputs_on_the_subjects_of_their_references_are_not_told_apart_by_subject():
    rng = np.random.default_rng(1)
    subjects = 10 * rng.normal(size=(80, 20))
    accuracy, auc = figures(subjects + rng.normal(size=(80, 20)), subjects + rng.normal(size=(80, 20)))
    assert accuracy.low <= 50 <= accuracy.high
    assert auc.low <= 50 <= auc.high


def test_disjoint_distributions_are_always_told_apart():
    rng = np.random.default_rng(2)
    accuracy, auc = figures(rng.normal(size=(40, 10)) + 9, rng.normal(size=(40, 10)))
    assert (accuracy.value, auc.value) == (100, 100)
    assert 85 < accuracy.low < accuracy.high == pytest.approx(100)
    assert "classifier:logistic[C=0.1]|folds:5x3|" in accuracy.signature


def test_equal_texts_count_a_half():
    same = np.random.default_rng(3).normal(size=(30, 4))
    assert [one.value for one in figures(same, same)] == pytest.approx([50, 50])


def test_input_is_in_one_fold_and_folds_are_even():
    folds = module._folds(52, 1)
    assert sorted(np.bincount(folds)) == [10, 10, 10, 11, 11]
    assert (folds != module._folds(52, 2)).any()


@given(st.integers(2, 30).flatmap(lambda num: arrays(np.float64, (2, num), elements=st.integers(-5, 5))))
def test_mean_placement_is_the_auc(scores):
    own, other = scores
    labels = np.repeat([1, 0], len(own))
    wanted = roc_auc_score(labels, np.concatenate([own, other]))
    assert module._placements(own, other).mean() == pytest.approx(wanted, abs=1e-9)


def test_why_not():
    texts = [str(i) for i in range(20)]
    assert why_not(texts, None, has_features=True) == "needs references"
    assert why_not(texts[1:], texts[:-1], has_features=True) == "needs at least 20 texts, not 19"
    assert why_not(texts, texts, has_features=True) == "the outputs are the references"
    assert why_not(texts, texts[::-1], has_features=False) == "the judge gives no hidden states"
    assert why_not(texts, texts[::-1], has_features=True) is None


def test_a_judge_without_hidden_states():
    texts = [f"Output {i} ." for i in range(20)]
    outputs = [SystemOutput(str(i), one, tuple(one.split())) for i, one in enumerate(texts)]
    references = [(f"Reference {i} .",) for i in range(20)]
    read = {one: JudgeReading(JudgeScore(3.0, 3), None) for one in [*texts, *(one for (one,) in references)]}
    measured = metrics_of(Material(outputs, references=references, judged=Judged(read, {})))
    assert [tuple(one) for one in measured.left_out if one.name.startswith("two")] == [
        ("two_sample_accuracy", "the judge gives no hidden states"),
        ("two_sample_auc", "the judge gives no hidden states"),
    ]
    assert "nll_token_to_human" in [metric.name for metric in measured.metrics]
