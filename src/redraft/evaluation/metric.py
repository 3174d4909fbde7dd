"""Metrics, and their figures: values with intervals, signatures, and differences with p-values.

A metric has a row of statistics per sentence; its value is a function of their sums. The bootstrap resamples
sentences and sums rows without computing the metric again, and two systems with the same inputs are compared on the
same draws.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from redraft.numerics import Array
from redraft.version import VERSION

_YES = 100.0  # percent
_FEWEST = 3  # sentences; with fewer an interval is meaningless


@dataclass(frozen=True)
class Metric:
    """Statistics per sentence [sentences, columns], and a function from their sums [draws, columns] to values [draws].

    ``least`` is the lowest possible value. ``details`` are lines that explain the value, shown below the table.
    """

    name: str
    unit: str
    statistics: Array
    aggregate: Callable[[Array], Array]
    settings: Mapping[str, str]
    least: float = 0.0
    details: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.statistics)

    @property
    def num_inputs(self) -> int:
        """Number of sentences that contribute: a share counts no sentence without a whole."""
        return int(self.statistics.any(axis=1).sum())

    @property
    def value(self) -> float:
        return float(self.aggregate(self.statistics.sum(axis=0, keepdims=True))[0])


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its confidence interval, and a signature with everything needed to reproduce it.

    ``low`` and ``high`` are None if there are too few sentences for an interval. ``num_inputs`` is the number of
    sentences that contribute.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    unit: str
    signature: str
    num_inputs: int
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """The first system's value minus the second's, with the interval and p-value of the difference."""

    name: str
    first: float
    second: float
    value: float
    low: float | None
    high: float | None
    p_value: float | None
    unit: str
    signature: str


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Number of resamples, seed and confidence level of the bootstrap."""

    num_draws: int = 1000
    seed: int = 0
    confidence: float = 0.95

    def counts(self, num_sentences: int) -> Array:
        """How often each sentence is in each draw [draws, sentences]; it depends only on the number of sentences."""
        rng = np.random.default_rng(self.seed)
        shares = np.full(num_sentences, 1 / num_sentences)
        return rng.multinomial(num_sentences, shares, size=self.num_draws).astype(np.float64)

    def figure(self, metric: Metric, counts: Array) -> Figure:
        """The metric's value with its percentile interval; for a proportion, with the Wilson interval.

        If all sentences agree, so do all draws, and the percentile interval would have no width.
        """
        if len(metric) >= _FEWEST and _is_yes_or_no(metric):
            return self._figure(metric, *self._wilson(metric), self._signature(metric, ci_by="wilson"))
        most = _YES if metric.unit == "%" else np.inf
        drawn = _values(metric, counts).clip(metric.least, most)  # influence values may exceed the possible range
        low, high = self._interval(drawn, len(metric))
        return self._figure(metric, low, high, self._signature(metric))

    @staticmethod
    def _figure(metric: Metric, low: float | None, high: float | None, signature: str) -> Figure:
        return Figure(metric.name, metric.value, low, high, metric.unit, signature, metric.num_inputs, metric.details)

    def quotient(self, name: str, first: Metric, second: Metric, counts: Array, **settings: str) -> Figure:
        """The ratio of two metrics of the same inputs, from the same draws."""
        return self.figure(quotient(name, first, second, **settings), counts)

    def _wilson(self, metric: Metric) -> tuple[float, float]:
        num, z = len(metric), NormalDist().inv_cdf((1 + self.confidence) / 2)
        share = metric.value / _YES
        middle = (share + z * z / (2 * num)) / (1 + z * z / num)
        half = z / (1 + z * z / num) * (share * (1 - share) / num + z * z / (4 * num * num)) ** 0.5
        return _YES * max(0.0, middle - half), _YES * min(1.0, middle + half)

    def difference(self, first: Metric, second: Metric, counts: Array) -> Difference:
        """The paired difference. Two-sided p-value: the share of draws as far from the mean as the value from 0."""
        value = first.value - second.value
        drawn = _values(first, counts) - _values(second, counts)
        low, high = self._interval(drawn, len(first))
        p_value = None if low is None else _p_value(value, drawn)
        signature = self._signature(first, test="paired-bootstrap")
        return Difference(first.name, first.value, second.value, value, low, high, p_value, first.unit, signature)

    def _interval(self, drawn: Array, num_sentences: int) -> tuple[float | None, float | None]:
        known = drawn[np.isfinite(drawn)]
        if num_sentences < _FEWEST or not known.size:
            return None, None
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(known, [tail, 1 - tail])
        return float(low), float(high)

    def _signature(self, metric: Metric, **more: str) -> str:
        parts = {
            **metric.settings,
            **more,
            "n": str(len(metric)),
            "ci": f"{self.confidence:g}",
            "bs": str(self.num_draws),
            "seed": str(self.seed),
            "redraft": VERSION,
        }
        return "|".join([metric.name, *(f"{key}:{value}" for key, value in parts.items())])


def _is_yes_or_no(metric: Metric) -> bool:
    """Whether the metric is a proportion: every sentence counts once, as 0 or 100 %."""
    if metric.aggregate is not ratio or metric.unit != "%":
        return False
    parts, wholes = metric.statistics.T
    return bool((wholes == 1).all() and np.isin(parts, (0.0, _YES)).all())


def _values(metric: Metric, counts: Array) -> Array:
    return metric.aggregate(counts @ metric.statistics)


def _p_value(value: float, drawn: Array) -> float:
    known = drawn[np.isfinite(drawn)]
    num_as_far = int((np.abs(known - known.mean()) >= abs(value)).sum())
    return (num_as_far + 1) / (len(known) + 1)


def ratio(sums: Array) -> Array:
    """First column divided by the second; NaN where the second is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1])


def quotient(name: str, first: Metric, second: Metric, **settings: str) -> Metric:
    """The ratio of two metrics, as a metric; sentence i of both must belong to the same input."""
    width = first.statistics.shape[1]

    def divide(sums: Array) -> Array:
        return ratio(np.column_stack([first.aggregate(sums[:, :width]), second.aggregate(sums[:, width:])]))

    statistics = np.hstack([first.statistics, second.statistics])
    return Metric(name, "", statistics, divide, {**first.settings, **settings}, min(first.least, 0.0))


def mean(name: str, unit: str, values: Sequence[float] | Array, **settings: str) -> Metric:
    """The mean of one value per sentence."""
    return share(name, unit, values, np.ones(len(values)), **settings)


def share(
    name: str, unit: str, parts: Sequence[float] | Array, wholes: Sequence[float] | Array, **settings: str
) -> Metric:
    """The sum of the parts divided by the sum of the wholes."""
    return Metric(name, unit, np.column_stack([parts, wholes]).astype(np.float64), ratio, settings)


def linearised(name: str, unit: str, value: float, without: Array, **settings: str) -> Metric:
    """A corpus-level value that is not a function of sums, such as the share of distinct n-grams.

    Resampling with replacement repeats sentences, and repetition is just what such a value measures: every draw would
    be far off. Each sentence gets its influence on the value instead, (n - 1) (value - value without it), centred on
    the value, so the mean is the value itself. The variance is that of the jackknife, which is conservative (Efron and
    Stein, 1981).
    """
    influence = (len(without) - 1) * (value - without)
    return mean(name, unit, value + influence - influence.mean(), **settings, ci_by="influence")
