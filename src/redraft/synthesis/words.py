"""Sources of wrong words: uniform over a vocabulary, or the most likely words of a masked language model."""

import enum
from collections.abc import Sequence
from typing import Protocol

from redraft.models.base import Slot
from redraft.models.vocabulary import SPECIALS, Vocabulary

NUM_LIKELY = 20  # the paper's N


class Method(enum.Enum):
    """How wrong words are chosen."""

    RANDOM = "random"
    MASKED_LM = "masked-lm"


class MaskedLm(Protocol):
    """Predicts the words of a slot from the words on both sides of it."""

    @property
    def card(self) -> dict[str, str]:
        """Name and kind of the model, for the card of the data."""

    def likeliest(self, slots: Sequence[Slot], num: int) -> list[list[str]]:
        """The ``num`` most likely words of each slot, best first, without special symbols."""


class WordSource(Protocol):
    """Draws a wrong word for each slot. ``draws`` are uniform numbers in [0, 1), one per slot."""

    def words(self, slots: Sequence[Slot], draws: Sequence[float]) -> list[str]: ...


class RandomWords:
    """Draws uniformly from a vocabulary."""

    def __init__(self, vocabulary: Vocabulary):
        self._words = vocabulary.words[len(SPECIALS) :]

    def words(self, slots: Sequence[Slot], draws: Sequence[float]) -> list[str]:
        return [self._draw(slot, draw) for slot, draw in zip(slots, draws, strict=True)]

    def _draw(self, slot: Slot, draw: float) -> str:
        rank = int(draw * len(self._words))
        word = self._words[rank]
        return self._words[rank - 1] if _is_original(slot, word) else word


class LikelyWords:
    """Draws uniformly from the most likely words of a masked language model."""

    def __init__(self, model: MaskedLm):
        self._model = model

    def words(self, slots: Sequence[Slot], draws: Sequence[float]) -> list[str]:
        found = self._model.likeliest(slots, NUM_LIKELY + 1)
        return [self._draw(*arguments) for arguments in zip(slots, found, draws, strict=True)]

    @staticmethod
    def _draw(slot: Slot, found: Sequence[str], draw: float) -> str:
        rank = int(draw * min(NUM_LIKELY, len(found) - 1))
        return found[rank + 1] if _is_original(slot, found[rank]) else found[rank]


def _is_original(slot: Slot, word: str) -> bool:
    return slot.end > slot.start and slot.words[slot.start] == word
