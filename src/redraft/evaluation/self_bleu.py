"""Self-BLEU-4: similarity of each output to the others.

The mean sentence BLEU-4 of each output against all others, with smoothing method 1 of nltk. Matches are looked up in
one table of all n-grams instead of comparing all pairs of sentences.

The interval needs the value without each sentence in turn, which also changes the scores of sentences whose best match
was there. The table records these, so that only those few scores are recomputed.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft.evaluation.metric import Metric, linearised
from redraft.evaluation.ngrams import WordSequence, ngram_counts
from redraft.numerics import Array, log_of

_ORDER = 4
_EPSILON = 0.1  # matches of an order without matches, by nltk's method 1

Pair = tuple[int, int]  # a sentence, and another one that is removed


class _Matches(NamedTuple):
    """Matches of each sentence among the others [sentences, orders], and those lost if one of the others is removed."""

    correct: Array
    lost: dict[Pair, Array]


def self_bleu(outputs: Sequence[WordSequence]) -> Metric | None:
    """Self-BLEU-4 in percent; None if there is only one sentence."""
    if len(outputs) < 2:
        return None
    lengths = [len(words) for words in outputs]
    matches = _match(outputs)
    scores = _scores(matches.correct, np.array(lengths), _closest_lengths(lengths))
    value = float(scores.mean())
    without = _without_each(scores, matches, lengths)
    return linearised("self_bleu4", "%", value, without, case="mixed", tok="redraft", smooth="method1")


def self_bleu_scores(outputs: Sequence[WordSequence]) -> Array:
    """Each output's BLEU-4 against all the others, in percent."""
    lengths = [len(words) for words in outputs]
    return _scores(_match(outputs).correct, np.array(lengths), _closest_lengths(lengths))


def _match(outputs: Sequence[WordSequence]) -> _Matches:
    correct = np.zeros((len(outputs), _ORDER))
    lost: dict[Pair, Array] = defaultdict(lambda: np.zeros(_ORDER))
    for order in range(1, _ORDER + 1):
        holders: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)  # n-gram: (count, sentence)...
        for sentence, words in enumerate(outputs):
            for ngram, count in ngram_counts(words, order).items():
                holders[ngram].append((count, sentence))
        for held in holders.values():
            if len(held) > 1:
                _add_matches(held, order - 1, correct, lost)
    return _Matches(correct, lost)


def _add_matches(held: list[tuple[int, int]], column: int, correct: Array, lost: dict[Pair, Array]) -> None:
    # Without the sentence itself and one other, the third holder may be the best one left.
    top = [*sorted(held, reverse=True)[:3], (0, -1)]
    for count, sentence in held:
        (best, holder), (next_best, _) = [one for one in top if one[1] != sentence][:2]
        matched = min(count, best)
        correct[sentence, column] += matched
        if matched > next_best:
            lost[sentence, holder][column] += matched - next_best


def _scores(correct: Array, lengths: NDArray[np.int64], reference_lengths: NDArray[np.int64]) -> Array:
    """BLEU-4 in percent from matches [rows, orders] and lengths [rows]."""
    totals = np.maximum(1, lengths[:, None] - np.arange(_ORDER))
    log_precision = log_of(np.where(correct == 0, _EPSILON, correct)) - np.log(totals)
    log_penalty = np.minimum(0, 1 - reference_lengths / np.maximum(1, lengths))
    scores = 100 * np.exp(log_precision.mean(axis=1) + log_penalty)
    return np.where(correct[:, 0] == 0, 0.0, scores)


def _closest_lengths(lengths: Sequence[int]) -> NDArray[np.int64]:
    """For each sentence the closest length among the others; the shorter of two equally close ones."""
    counts = Counter(lengths)
    return np.array([_closest(counts, length, (length,)) for length in lengths])


def _closest(counts: Counter[int], length: int, taken: tuple[int, ...]) -> int:
    left = [other for other, count in counts.items() if count > taken.count(other)]
    return min(left, key=lambda other: (abs(other - length), other), default=length)


def _without_each(scores: Array, matches: _Matches, lengths: Sequence[int]) -> Array:
    """The value without each sentence in turn."""
    if len(scores) < 3:
        return np.full(len(scores), scores.mean())  # nothing left to compare; there is no interval either
    counts = Counter(lengths)
    closest = lru_cache(maxsize=None)(lambda own, other: _closest(counts, own, (own, other)))
    pairs = sorted({*matches.lost, *_length_pairs(lengths)})
    at = np.array([sentence for sentence, _ in pairs], dtype=np.int64)
    taken = np.array([other for _, other in pairs], dtype=np.int64)
    none = np.zeros(_ORDER)
    lost = np.array([matches.lost.get(pair, none) for pair in pairs]).reshape(-1, _ORDER)
    reference_lengths = np.array([closest(lengths[i], lengths[j]) for i, j in pairs], dtype=np.int64)
    changed = _scores(matches.correct[at] - lost, np.array(lengths)[at], reference_lengths)
    total_change = np.bincount(taken, weights=changed - scores[at], minlength=len(scores))
    return np.asarray((scores.sum() - scores + total_change) / (len(scores) - 1))


def _length_pairs(lengths: Sequence[int]) -> list[Pair]:
    """Pairs in which the other sentence may be the only one of the closest length."""
    counts = Counter(lengths)
    rare = [other for other, length in enumerate(lengths) if counts[length] <= 2]
    return [(sentence, other) for other in rare for sentence in range(len(lengths)) if sentence != other]
