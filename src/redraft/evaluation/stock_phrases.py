"""Stock phrases: the share of outputs with one of the few phrases that a system repeats."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import Ngram, WordSequence, ngram_counts
from redraft.text import is_word

_ORDER = 4
_MOST_PHRASES = 10
_FEWEST_OUTPUTS = 3  # a phrase in fewer outputs may be chance


def stock_phrases(outputs: Sequence[WordSequence]) -> Metric:
    """Percent of outputs with one of the ten most common 4-grams; the details list them.

    Case and punctuation are ignored. Human sentences on different subjects have almost none.
    """
    held = [set(ngram_counts([word.lower() for word in words if is_word(word)], _ORDER)) for words in outputs]
    phrases = _common(held)
    hits = [100.0 * any(phrase in one for phrase in phrases) for one in held]
    settings = {"order": str(_ORDER), "phrases": str(_MOST_PHRASES), "in": f">={_FEWEST_OUTPUTS}", "case": "lower"}
    details = tuple(f"{' '.join(phrase)} ({num} of {len(outputs)})" for phrase, num in phrases.items())
    return replace(mean("stock_phrases", "%", hits, **settings, tok="redraft"), details=details)


def _common(held: Sequence[set[Ngram]]) -> dict[Ngram, int]:
    """The most common 4-grams with their number of outputs, most common first."""
    counts = Counter(ngram for one in held for ngram in one)
    common = [(ngram, num) for ngram, num in counts.items() if num >= _FEWEST_OUTPUTS]
    return dict(sorted(common, key=lambda pair: (-pair[1], pair[0]))[:_MOST_PHRASES])
