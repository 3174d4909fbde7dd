"""Counting runs of words."""

from collections import Counter
from collections.abc import Sequence

Words = Sequence[str]
Ngram = tuple[str, ...]


def ngram_counts(words: Words, order: int) -> Counter[Ngram]:
    """How often each run of ``order`` words occurs."""
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))
