"""Two-sample test: can a classifier distinguish the outputs of a system from human text for the same inputs?

The classifier is a logistic regression on the judge's mean last hidden state of each text (Lopez-Paz and Oquab, 2017:
Revisiting classifier two-sample tests). At 50 % outputs are indistinguishable from human text, at 100 % it always
recognises them. The output and the reference of an input are always in the same fold, so the classes are balanced and
the topic of a text reveals nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.evaluation.metric import Metric, mean
from redraft.extras import extra
from redraft.numerics import Array

FEWEST = 20  # texts; a classifier trained on fewer would guess
NAMES = ("two_sample_accuracy", "two_sample_auc")
_FOLDS = 5
_REPEATS = 3  # shuffles into folds
_PENALTY = 0.1  # scikit-learn's C; from 0.01 to 1 no value changes by more than its interval
_SEED = 0
_WIDER = 1.2  # calibrates the 95 % intervals: for equal distributions they cover 50 % as often as they should


def two_sample(outputs: Array, references: Array, settings: dict[str, str]) -> list[Metric]:
    """Balanced accuracy and AUC in percent from features [texts, size]; row i of both belongs to the same input."""
    with extra("eval"):
        from sklearn import __version__  # type: ignore[import-untyped]

    scores = [_scores(outputs, references, repeat) for repeat in range(_REPEATS)]
    hits = np.array([(_share_above(own, 0.0) + _share_above(0.0, other)) / 2 for own, other in scores])
    placements = np.array([_placements(own, other) for own, other in scores])
    about = {
        **settings,
        "features": "mean-last-state",
        "classifier": f"logistic[C={_PENALTY:g}]",
        "folds": f"{_FOLDS}x{_REPEATS}",
        "spread": f"x{_WIDER:g}",
        "sklearn": __version__,
    }
    values = zip(NAMES, (hits, placements), strict=True)
    return [mean(name, "%", 100 * _pooled(found), **about) for name, found in values]


def why_not(outputs: Sequence[str], references: Sequence[str] | None, *, has_features: bool) -> str | None:
    """Why the test is impossible; None if it is possible."""
    if references is None:
        return "needs references"
    if len(outputs) < FEWEST:
        return f"needs at least {FEWEST} texts, not {len(outputs)}"
    if list(outputs) == list(references):
        return "the outputs are the references"
    return None if has_features else "the judge gives no hidden states"


def _scores(outputs: Array, references: Array, repeat: int) -> tuple[Array, Array]:
    """Decision values of each output and each reference, by a classifier that was not trained on their input."""
    with extra("eval"):
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
        from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
        from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    folds = _folds(len(outputs), repeat)
    own, other = np.zeros(len(outputs)), np.zeros(len(outputs))
    for fold in range(_FOLDS):
        train, test = folds != fold, folds == fold
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=_PENALTY, max_iter=1000))
        labels = np.repeat([1, 0], int(train.sum()))
        classifier.fit(np.concatenate([outputs[train], references[train]]), labels)
        own[test] = classifier.decision_function(outputs[test])
        other[test] = classifier.decision_function(references[test])
    return own, other


def _folds(num: int, repeat: int) -> NDArray[np.int64]:
    """The fold of each input; folds are as equal in size as possible."""
    rng = np.random.default_rng([_SEED, repeat])
    return np.asarray(rng.permutation(np.arange(num) % _FOLDS))


def _placements(own: Array, other: Array) -> Array:
    """One value per input whose mean is the AUC: DeLong's placement values of its output and reference."""
    above = _share_above(own[:, None], other[None, :])
    return np.asarray(above.mean(axis=1) + above.mean(axis=0) - above.mean())


def _share_above(first: Array | float, second: Array | float) -> Array:
    """1 where the first is greater than the second, 1/2 where they are equal, else 0."""
    return np.asarray((np.sign(np.asarray(first) - np.asarray(second)) + 1) / 2)


def _pooled(values: Array) -> Array:
    """One value per input from the values of all repeats [repeats, inputs], with their mean and a calibrated spread.

    Repeats share their texts, so the spread of their mean would be too small, and the classifiers of the folds share
    most of their training data. Hence the spread of a single repeat, widened by a fifth.
    """
    pooled = values.mean(axis=0)
    spread, wanted = pooled.std(), _WIDER * np.sqrt(values.var(axis=1).mean())
    return np.asarray(pooled if not spread else pooled.mean() + (pooled - pooled.mean()) * (wanted / spread))
