"""The vocabulary of a word-level model."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.models.base import Slot

# The first ids. END follows a sentence, START precedes it, UNKNOWN is any word outside the vocabulary.
END, UNKNOWN, START = 0, 1, 2
SPECIALS = ("</s>", "<unk>", "<s>")


class Vocabulary:
    """Words by decreasing frequency. An id is a frequency rank."""

    def __init__(self, words: Sequence[str]):
        self.words: tuple[str, ...] = tuple(words)
        self._ids = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def from_counts(cls, counts: Counter[str], size: int) -> "Vocabulary":
        """Take the ``size`` most frequent words. Ties are broken alphabetically, so the result is reproducible."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]
        return cls([*SPECIALS, *(word for word, _ in ranked)])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        return self._ids.get(word, UNKNOWN)

    def ids(self, words: Iterable[str]) -> list[int]:
        return [self._ids.get(word, UNKNOWN) for word in words]

    def surface_ids(self, words: Sequence[str]) -> list[int]:
        """Ids of a sentence as it is written: its first word is capitalised, if the capitalised form is listed."""
        ids = self.ids(words)
        first = text.opening(words)
        if first is not None:
            ids[first] = self.id(self.opening_form(words[first]))
        return ids

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    @cached_property
    def opening_ids(self) -> NDArray[np.int64]:
        """For each word, the id of its capitalised form, or its own id if that form is not listed."""
        return np.array([self._ids.get(text.capitalise(word), i) for i, word in enumerate(self.words)])

    @cached_property
    def may_open(self) -> NDArray[np.bool_]:
        """Which words can open a sentence as it is written: those with a capital, or never listed with one."""
        return np.asarray(self.opening_ids == np.arange(len(self)))

    def opening_form(self, word: str) -> str:
        """The form in which a model reads a word that opens a sentence: with a capital, if that form is listed."""
        capital = text.capitalise(word)
        return capital if capital in self else word

    @cached_property
    def _lowered(self) -> NDArray[np.int64]:
        return np.array([self._ids.get(word[:1].lower() + word[1:], i) for i, word in enumerate(self.words)])

    @cached_property
    def plain_ids(self) -> NDArray[np.int64]:
        """For each word, the id of its plain form: its own id, or that of the lower-case form if it is not plain."""
        return np.where(self.is_plain, np.arange(len(self)), self._lowered)

    def plain(self, word: str) -> str:
        """The form in which a sentence holds a word that opens it: "the" for "The"."""
        return self.words[self.plain_ids[self._ids[word]]] if word in self._ids else word

    @cached_property
    def is_word(self) -> NDArray[np.bool_]:
        """Whether a word is more than punctuation. An unknown word counts as a word."""
        found = np.array([text.is_word(word) for word in self.words])
        found[: len(SPECIALS)] = False
        found[UNKNOWN] = True
        return found

    @cached_property
    def is_plain(self) -> NDArray[np.bool_]:
        """False for a capitalised form whose lower-case form is more frequent, such as "The".

        A sentence holds the lower-case form and is capitalised when it is shown. So a word can be inserted before its
        first word without leaving a capital inside the sentence.
        """
        return self._lowered >= np.arange(len(self))

    def use_plain_openings(self, log_dist: NDArray[np.float32], slots: Sequence[Slot]) -> None:
        """Change log-probabilities [slots, words] in place where a slot opens its sentence.

        There a word is proposed in its plain form, with the probability of its capitalised form.
        """
        for row, slot in enumerate(slots):
            if slot.opens_sentence:
                log_dist[row] = np.where(self.is_plain, log_dist[row][self.opening_ids], -np.inf)
