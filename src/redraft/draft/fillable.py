"""Which words may fill a blank, and blanks filled with random ones."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.blanks import Layout
from redraft.sentence import ENDING, Constraints, Sentence

_MASKS = 64  # sets of banned words whose masks are kept
_TRIES = 100  # draws of random words without a banned phrase


class FillableWords:
    """Which words of a vocabulary may fill a blank."""

    def __init__(self, words: Sequence[str], proposable: NDArray[np.bool_]):
        self._proposable = proposable
        self._lowered = [word.lower() for word in words]
        self._negation = np.array([text.is_negation(word) for word in words])
        self._not_banned = lru_cache(_MASKS)(self._find_not_banned)

    def mask(self, constraints: Constraints, *, follows_given: bool) -> NDArray[np.bool_]:
        """Words that are not banned; right after a given word no "'t", which would turn it into another word."""
        allowed = self._not_banned(constraints.banned_words)
        return allowed & ~self._negation if follows_given else allowed

    def _find_not_banned(self, banned: frozenset[str]) -> NDArray[np.bool_]:
        allowed = np.array([word not in banned for word in self._lowered]) if banned else True
        return np.asarray(self._proposable & allowed)


class RandomFilling:
    """Blanks filled with words drawn uniformly from a vocabulary; an ending is drawn among those that are allowed."""

    def __init__(self, words: Sequence[str], proposable: NDArray[np.bool_]):
        self._words = words
        self._fillable = FillableWords(words, proposable)

    def fill(self, layout: Layout, constraints: Constraints, rng: np.random.Generator) -> Sentence:
        """A sentence without banned words; without banned phrases too, unless that is next to impossible."""
        for _ in range(_TRIES):
            sentence = layout.filled([self._word(layout, constraints, at, rng) for at in layout.missing])
            if constraints.has_no_banned_phrase(sentence.words):
                break
        return sentence

    def _word(self, layout: Layout, constraints: Constraints, position: int, rng: np.random.Generator) -> str:
        if layout.locks[position] == ENDING:
            return constraints.allowed_endings[int(rng.integers(len(constraints.allowed_endings)))]
        mask = self._fillable.mask(constraints, follows_given=layout.follows_given(position))
        return self._words[int(rng.choice(np.flatnonzero(mask)))]
