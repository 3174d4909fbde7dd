"""The metrics of CommonGen, for outputs with one or more references: BLEU-4, ROUGE-L, CIDEr-D, coverage of any form.

BLEU-4, ROUGE-L and CIDEr-D are those of pycocoevalcap, on redraft's lowercased words instead of a Java tokenizer's.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from redraft.evaluation.metric import Metric, mean, share
from redraft.evaluation.ngrams import Ngram, WordSequence, ngram_counts
from redraft.inflect import VERSION, family
from redraft.numerics import Array
from redraft.sentence import Constraints

_ORDER = 4
_BETA = 1.2  # ROUGE-L: weight of recall relative to precision
_SIGMA = 6.0  # CIDEr-D: scale of the penalty for different lengths
_TINY, _SMALL = 1e-15, 1e-9  # pycocoevalcap's guards against zero, which matter if an order has no match


def captions(outputs: Sequence[WordSequence], references: Sequence[Sequence[WordSequence]]) -> list[Metric]:
    """BLEU-4 and ROUGE-L in percent, and CIDEr-D (at most 10)."""
    lowered = [_lower(words) for words in outputs]
    wanted = [[_lower(words) for words in several] for several in references]
    settings = {"refs": _num_references(references), "case": "lower", "tok": "redraft"}
    bleu = Metric("caption_bleu4", "%", _bleu_statistics(lowered, wanted), _bleu, {**settings, "reflen": "closest"})
    rouge = [100 * rouge_l(words, several) for words, several in zip(lowered, wanted, strict=True)]
    return [
        bleu,
        mean("rouge_l", "%", rouge, **settings, beta=f"{_BETA:g}"),
        mean("cider_d", "", cider_d(lowered, wanted), **settings, df="references"),
    ]


def coverage_forms(outputs: Sequence[WordSequence], constraints: Sequence[Constraints]) -> list[Metric]:
    """Percent of keywords that occur in any inflected form, and of outputs with all of them; empty without keywords."""
    if not any(one.keywords for one in constraints):
        return []
    found = [_found_forms(_lower(words), one) for words, one in zip(outputs, constraints, strict=True)]
    settings = {"match": "any-form", "order": "any", "case": "lower", "lemminflect": VERSION}
    hits, wholes = [100.0 * sum(flags) for flags in found], [float(len(flags)) for flags in found]
    return [
        share("coverage_forms", "%", hits, wholes, **settings),
        mean("coverage_forms_all", "%", [100.0 * all(flags) for flags in found], **settings),
    ]


def rouge_l(words: WordSequence, references: Sequence[WordSequence]) -> float:
    """F-measure of the longest common subsequence, from the best precision and the best recall over the references."""
    if not words:
        return 0.0
    common = [_common_length(words, reference) for reference in references]
    precision = max(common) / len(words)
    recall = max(num / max(1, len(reference)) for num, reference in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


class _Vector(NamedTuple):
    """TF-IDF weights of the n-grams of a text by order, their norms, and its number of bigrams."""

    weights: list[dict[Ngram, float]]
    norms: list[float]
    length: int


def cider_d(outputs: Sequence[WordSequence], references: Sequence[Sequence[WordSequence]]) -> list[float]:
    """Mean similarity of each output to its references, with n-grams weighted by TF-IDF."""
    documents: Counter[Ngram] = Counter()
    for several in references:
        documents.update({ngram for one in several for order in _orders() for ngram in ngram_counts(one, order)})
    log_num = float(np.log(len(references)))

    def vector(words: WordSequence) -> _Vector:
        counts = [ngram_counts(words, order) for order in _orders()]
        weights = [
            {ngram: count * (log_num - float(np.log(max(1, documents[ngram])))) for ngram, count in one.items()}
            for one in counts
        ]
        norms = [float(np.sqrt(sum(weight**2 for weight in one.values()))) for one in weights]
        return _Vector(weights, norms, counts[1].total())

    scores = []
    for words, several in zip(outputs, references, strict=True):
        own = vector(words)
        scores.append(10 * float(np.mean([_similarity(own, vector(one)) for one in several])))
    return scores


def _similarity(own: _Vector, other: _Vector) -> float:
    total = 0.0
    for ours, theirs, our_norm, their_norm in zip(own.weights, other.weights, own.norms, other.norms, strict=True):
        dot = sum(min(weight, theirs.get(ngram, 0.0)) * theirs.get(ngram, 0.0) for ngram, weight in ours.items())
        total += dot / (our_norm * their_norm) if our_norm and their_norm else dot
    distance = own.length - other.length
    return total / _ORDER * float(np.exp(-(distance**2) / (2 * _SIGMA**2)))


def _bleu_statistics(outputs: Sequence[WordSequence], references: Sequence[Sequence[WordSequence]]) -> Array:
    """Rows of length, length of the closest reference, matches by order, n-grams by order."""
    rows = []
    for words, several in zip(outputs, references, strict=True):
        closest = min((abs(len(one) - len(words)), len(one)) for one in several)[1]
        matches = [_num_matches(words, several, order) for order in _orders()]
        rows.append([len(words), closest, *matches, *(max(0, len(words) - order + 1) for order in _orders())])
    return np.array(rows, dtype=np.float64)


def _num_matches(words: WordSequence, references: Sequence[WordSequence], order: int) -> int:
    most: Counter[Ngram] = Counter()
    for one in references:
        most |= ngram_counts(one, order)
    return (ngram_counts(words, order) & most).total()


def _bleu(sums: Array) -> Array:
    """Corpus BLEU-4 in percent from summed statistics [draws, columns]."""
    matches, totals = sums[:, 2 : 2 + _ORDER], sums[:, 2 + _ORDER :]
    precision = np.prod((matches + _TINY) / (totals + _SMALL), axis=1) ** (1 / _ORDER)
    length_ratio = (sums[:, 0] + _TINY) / (sums[:, 1] + _SMALL)
    return np.asarray(100 * precision * np.exp(np.minimum(0, 1 - 1 / length_ratio)))


def _common_length(first: WordSequence, second: WordSequence) -> int:
    """Length of the longest common subsequence."""
    lengths = [0] * (len(second) + 1)
    for word in first:
        before = 0  # length without the current word of either sequence
        for i, other in enumerate(second, 1):
            before, lengths[i] = lengths[i], before + 1 if word == other else max(lengths[i], lengths[i - 1])
    return lengths[-1]


def _found_forms(words: WordSequence, constraints: Constraints) -> list[bool]:
    """Whether each required keyword occurs in an inflected form; for a phrase, each of its words in a row."""
    if constraints.template is not None:
        return []
    return [
        any(_occurs([family(word) for word in one], words) for one in part.realisations)
        for part in constraints.parts
        if not part.is_optional
    ]


def _occurs(run: Sequence[frozenset[str]], words: WordSequence) -> bool:
    """Whether the words have a run of words from these sets."""
    starts = range(len(words) - len(run) + 1)
    return any(all(word in allowed for word, allowed in zip(words[i:], run, strict=False)) for i in starts)


def _orders() -> range:
    return range(1, _ORDER + 1)


def _lower(words: WordSequence) -> list[str]:
    return [word.lower() for word in words]


def _num_references(references: Sequence[Sequence[WordSequence]]) -> str:
    nums = sorted({len(several) for several in references})
    return str(nums[0]) if len(nums) == 1 else f"{nums[0]}-{nums[-1]}"
