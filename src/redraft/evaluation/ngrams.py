"""Counting runs of words."""

from collections import Counter
from collections.abc import Sequence

WordSequence = Sequence[str]
Ngram = tuple[str, ...]


def ngram_counts(words: WordSequence, order: int) -> Counter[Ngram]:
    """How often each run of ``order`` words occurs."""
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))
