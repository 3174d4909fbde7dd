"""Corpus-level diversity: Distinct-2 and Entropy-4."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from redraft.evaluation.metric import Metric, linearised
from redraft.evaluation.ngrams import Ngram, WordSequence, ngram_counts
from redraft.numerics import Array


def distinct(outputs: Sequence[WordSequence], order: int = 2) -> Metric | None:
    """Distinct n-grams divided by all n-grams, in percent; None if there are none."""
    counted, total = _count(outputs, order)
    if not total:
        return None
    own = np.array([sum(count == total[ngram] for ngram, count in one.items()) for one in counted])
    rest = total.total() - _sizes(counted)
    without = np.divide(len(total) - own, rest, out=np.zeros(len(outputs)), where=rest > 0)
    value = len(total) / total.total()
    return linearised(f"distinct{order}", "%", 100 * value, 100 * without, level="corpus", case="mixed", tok="redraft")


def entropy(outputs: Sequence[WordSequence], order: int = 4) -> Metric | None:
    """Entropy of the distribution of n-grams in nats; None if there are none."""
    counted, total = _count(outputs, order)
    if not total:
        return None
    size, spread = total.total(), sum(_count_log(count) for count in total.values())
    own = [sum(_count_log(total[g]) - _count_log(total[g] - count) for g, count in one.items()) for one in counted]
    without = _entropies(size - _sizes(counted), spread - np.array(own))
    value = float(_entropies(np.array([float(size)]), np.array([spread]))[0])
    return linearised(f"entropy{order}", "nats", value, without, level="corpus", log="e", case="mixed", tok="redraft")


def _count(outputs: Sequence[WordSequence], order: int) -> tuple[list[Counter[Ngram]], Counter[Ngram]]:
    """N-gram counts of each output, and their sum."""
    counted = [ngram_counts(words, order) for words in outputs]
    total: Counter[Ngram] = Counter()
    for one in counted:
        total.update(one)
    return counted, total


def _sizes(counted: Sequence[Counter[Ngram]]) -> Array:
    return np.array([one.total() for one in counted], dtype=np.float64)


def _count_log(count: int) -> float:
    return count * float(np.log(count)) if count else 0.0


def _entropies(sizes: Array, spreads: Array) -> Array:
    """ln N - (sum of c ln c) / N, which equals -sum of p ln p; zero without n-grams."""
    safe = np.maximum(1, sizes)
    return np.where(sizes > 0, np.log(safe) - spreads / safe, 0.0)
