"""Counting n-grams."""

from collections import Counter
from collections.abc import Sequence

WordSequence = Sequence[str]
Ngram = tuple[str, ...]


def ngram_counts(words: WordSequence, order: int) -> Counter[Ngram]:
    """Counts of the n-grams of ``order`` words."""
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))
