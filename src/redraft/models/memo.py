"""Scores that need not be computed again: a chain whose proposal was refused often asks for the same slot once more."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redraft.models.base import Slot, Words
from redraft.numerics import Array

_KEPT = 100_000  # scores, of 50 or so a slot

Compute = Callable[[Sequence[Slot], Sequence[Sequence[Words]], Sequence[Any]], list[Array]]


class ScoreMemo:
    """Log-probabilities of filled slots, by what stands around them. Forgets what was not asked for lately."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[Words, Words], dict[Words, float]] = OrderedDict()
        self._num_scores = 0

    def scores(
        self,
        slots: Sequence[Slot],
        fillings: Sequence[Sequence[Words]],
        readings: Sequence[Any],
        compute: Compute,
    ) -> list[Array]:
        """What ``compute`` gives; it is asked for what is not known."""
        known = [self._known(slot) for slot in slots]
        unknown = [[words for words in some if words not in seen] for some, seen in zip(fillings, known, strict=True)]
        asked = [i for i, some in enumerate(unknown) if some]
        found = compute([slots[i] for i in asked], [unknown[i] for i in asked], [readings[i] for i in asked])
        for i, scores in zip(asked, found, strict=True):
            before = len(known[i])
            known[i].update(zip(unknown[i], scores.tolist(), strict=True))
            self._num_scores += len(known[i]) - before  # two chains may ask for one slot
        self._forget()
        return [np.array([seen[words] for words in some]) for some, seen in zip(fillings, known, strict=True)]

    def _known(self, slot: Slot) -> dict[Words, float]:
        key = slot.before, slot.after
        found = self._seen.setdefault(key, {})
        self._seen.move_to_end(key)
        return found

    def _forget(self) -> None:
        while self._num_scores > _KEPT:
            _, scores = self._seen.popitem(last=False)
            self._num_scores -= len(scores)
