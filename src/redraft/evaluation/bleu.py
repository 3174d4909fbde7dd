"""BLEU-2 and BLEU-4 with one reference per sentence, by sacrebleu.

Corpus level: counts are summed over all sentences, without smoothing. Sentence level: the mean of the scores of the
sentences; an order without matches counts 0.1 matches and an order without n-grams counts one n-gram, which is
smoothing method 1 of nltk. Without the brevity penalty the score is the geometric mean of the precisions.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import WordSequence
from redraft.extras import extra
from redraft.numerics import Array

MAX_ORDER = 4
ORDERS = (2, 4)
_FLOOR = 0.1


def bleu(outputs: Sequence[WordSequence], references: Sequence[WordSequence]) -> list[Metric]:
    """BLEU-2 and BLEU-4, corpus and sentence level, with and without brevity penalty."""
    statistics = bleu_statistics(outputs, references)
    choices = list(product(ORDERS, (True, False)))
    corpus = [_corpus_level(statistics, order, penalty) for order, penalty in choices]
    return corpus + [_sentence_level(statistics, order, penalty) for order, penalty in choices]


def bleu_statistics(outputs: Sequence[WordSequence], references: Sequence[WordSequence]) -> Array:
    """Rows of length, reference length, matches by order, n-grams by order."""
    with extra("eval"):
        from sacrebleu.metrics.bleu import BLEU

    # Only the counts are used; effective_order silences a warning about sentence scores.
    scorer = BLEU(tokenize="none", max_ngram_order=MAX_ORDER, effective_order=True)
    rows = []
    for words, reference in zip(outputs, references, strict=True):
        counts = scorer.sentence_score(" ".join(words), [" ".join(reference)])
        rows.append([counts.sys_len, counts.ref_len, *counts.counts, *counts.totals])
    return np.array(rows, dtype=np.float64)


def _corpus_level(statistics: Array, order: int, penalty: bool) -> Metric:
    name = f"bleu{order}_corpus" + ("" if penalty else "_no_bp")
    settings = _settings(order, penalty, smooth="none")
    return Metric(name, "%", statistics, _scores(order, penalty, smooth="none"), settings)


def _sentence_level(statistics: Array, order: int, penalty: bool) -> Metric:
    name = f"bleu{order}_sentence" + ("" if penalty else "_no_bp")
    counted = statistics.copy()
    counted[:, 2 + MAX_ORDER :] = np.maximum(1, counted[:, 2 + MAX_ORDER :])
    scores = _scores(order, penalty, smooth="floor")(counted)
    return mean(name, "%", scores, **_settings(order, penalty, smooth=f"floor[{_FLOOR}]"))


def _scores(order: int, penalty: bool, smooth: str) -> Callable[[Array], Array]:
    """A function from rows of counts to scores in percent."""
    with extra("eval"):
        from sacrebleu.metrics.bleu import BLEU

    def score(row: list[int]) -> float:
        length, reference_length = row[:2]
        result = BLEU.compute_bleu(
            row[2 : 2 + order],
            row[2 + MAX_ORDER : 2 + MAX_ORDER + order],
            length,
            reference_length if penalty else min(length, reference_length),
            smooth_method=smooth,
            smooth_value=_FLOOR if smooth == "floor" else None,
            max_ngram_order=order,
        )
        return float(result.score)

    return lambda rows: np.array([score(row) for row in rows.astype(int).tolist()])


def _settings(order: int, penalty: bool, smooth: str) -> dict[str, str]:
    with extra("eval"):
        from sacrebleu import __version__

    return {
        "order": str(order),
        "bp": "yes" if penalty else "no",
        "refs": "1",
        "case": "mixed",
        "tok": "redraft",
        "smooth": smooth,
        "sacrebleu": __version__,
    }
