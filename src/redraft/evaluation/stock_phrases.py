"""Stock phrases: how many outputs lean on the few runs of words that a system writes again and again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import Ngram, WordSequence, ngram_counts
from redraft.text import is_word

_ORDER = 4
_MOST_PHRASES = 10
_FEWEST_OUTPUTS = 3  # a run of words in fewer outputs is chance


def stock_phrases(outputs: Sequence[WordSequence]) -> Metric:
    """Percent of outputs with one of the ten 4-grams that most outputs contain; the details name them.

    Case and punctuation are ignored. Human sentences on different subjects have next to none.
    """
    held = [set(ngram_counts([word.lower() for word in words if is_word(word)], _ORDER)) for words in outputs]
    phrases = _common(held)
    hits = [100.0 * any(phrase in one for phrase in phrases) for one in held]
    settings = {"order": str(_ORDER), "phrases": str(_MOST_PHRASES), "in": f">={_FEWEST_OUTPUTS}", "case": "lower"}
    details = tuple(f"{' '.join(phrase)} ({num} of {len(outputs)})" for phrase, num in phrases.items())
    return replace(mean("stock_phrases", "%", hits, **settings, tok="redraft"), details=details)


def _common(held: Sequence[set[Ngram]]) -> dict[Ngram, int]:
    """The 4-grams in most outputs and in how many, the most common first."""
    counts = Counter(ngram for one in held for ngram in one)
    common = [(ngram, num) for ngram, num in counts.items() if num >= _FEWEST_OUTPUTS]
    return dict(sorted(common, key=lambda pair: (-pair[1], pair[0]))[:_MOST_PHRASES])
