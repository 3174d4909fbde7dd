"""Beam search that fills blanks of known lengths, from left to right or from right to left.

All partial sentences of a beam have the same words at the given places and the same number of words in all, so their
scores are comparable as they are. A search sees only what it has passed: one from left to right does not know what is
given further on until it gets there.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.blanks import Layout
from redraft.draft.fillable import FillableWords
from redraft.draft.halves import Continuer, falling
from redraft.models.base import Words
from redraft.numerics import Array
from redraft.sentence import ENDING, Constraints, Sentence

StateT = TypeVar("StateT")


class BlankModel(Continuer[StateT], Protocol[StateT]):
    """A model that writes a sentence from one end to the other. It knows how the word that opens it is spelt."""

    @property
    def may_open(self) -> NDArray[np.bool_]:
        """Which columns can open a sentence as it is written."""

    def opening_form(self, word: str) -> str:
        """A word as it is read where it opens a sentence: "The" for "the"."""

    def plain(self, word: str) -> str:
        """The form in which a sentence holds a word that opens it: "the" for "The"."""

    def log_probs_of(self, states: Sequence[StateT], word: str) -> NDArray[np.floating]:
        """Log-probabilities [states] of one word; an unknown one has that of all unknown words."""


class Filling(NamedTuple, Generic[StateT]):
    """The words that a search has put down, in text order and as the model reads them."""

    words: Words
    log_prob: float
    state: StateT


class BlankBeam(Generic[StateT]):
    """Beam search for the likeliest sentence of a layout, by a model that reads forward or backward."""

    def __init__(self, model: BlankModel[StateT], width: int):
        self._model, self.width = model, width
        self._fillable = FillableWords(model.words, model.proposable)

    def find(self, layout: Layout, constraints: Constraints) -> list[Sentence]:
        """The sentences of the last beam, likeliest first; none if every way leads to a banned phrase."""
        return [self._sentence(layout, one) for one in self.fillings(layout, constraints)]

    def fillings(self, layout: Layout, constraints: Constraints) -> list[Filling[StateT]]:
        """The same as the model reads them, with their log-probabilities, the end of the sentence counted."""
        alive: list[Filling[StateT]] = [Filling((), 0.0, self._model.begin(()))]
        order = range(len(layout.words))
        for position in reversed(order) if self._model.is_backward else order:
            alive = self._grown(layout, constraints, position, alive)
            if not alive:
                return []
        log_ends = self._model.log_ends([one.state for one in alive])
        whole = [
            one._replace(log_prob=one.log_prob + float(log_end)) for one, log_end in zip(alive, log_ends, strict=True)
        ]
        return sorted(whole, key=lambda one: -one.log_prob)

    def _opens(self, layout: Layout, position: int, words: Words) -> bool:
        """Whether the word at a position is capitalised. A backward search has not chosen the words before it."""
        return position == layout.opening if self._model.is_backward else text.opening(words) is None

    def _grown(
        self, layout: Layout, constraints: Constraints, position: int, alive: Sequence[Filling[StateT]]
    ) -> list[Filling[StateT]]:
        """The partial sentences with one more word: all of them with a given word, or the likeliest."""
        given = layout.words[position]
        if given is None and layout.locks[position] != ENDING:
            return self._with_missing(layout, constraints, position, alive)
        choices = (given,) if given is not None else constraints.allowed_endings
        grown = [one for word in choices for one in self._with_word(layout, position, alive, word)]
        allowed = [one for one in grown if constraints.has_no_banned_phrase(one.words)]
        return sorted(allowed, key=lambda one: -one.log_prob)[: self.width]

    def _with_word(
        self, layout: Layout, position: int, alive: Sequence[Filling[StateT]], word: str
    ) -> list[Filling[StateT]]:
        """Every partial sentence with the word, spelt with a capital where it opens the sentence."""
        opens = [self._opens(layout, position, one.words) for one in alive]
        grown = []
        for spelt, is_first in ((word, False), (self._model.opening_form(word), True)):
            some = [one for one, opening in zip(alive, opens, strict=True) if opening is is_first]
            if some:
                states = [one.state for one in some]
                log_probs = self._model.log_probs_of(states, spelt).tolist()
                longer = self._model.extend(states, [spelt] * len(some))
                grown += [
                    Filling(self._longer(one.words, spelt), one.log_prob + log_prob, state)
                    for one, log_prob, state in zip(some, log_probs, longer, strict=True)
                ]
        return grown

    def _with_missing(
        self, layout: Layout, constraints: Constraints, position: int, alive: Sequence[Filling[StateT]]
    ) -> list[Filling[StateT]]:
        """The likeliest partial sentences with one more word."""
        dists = self._model.log_dists([one.state for one in alive]).astype(np.float64)
        for row, one in enumerate(alive):
            dists[row, ~self._allowed(layout, constraints, position, one.words)] = -np.inf
        scores: Array = dists + np.array([one.log_prob for one in alive])[:, None]
        longer = (
            (row, column, self._longer(alive[row].words, self._model.words[column]))
            for row, column in falling(scores, self.width)
        )
        best = list(islice((one for one in longer if constraints.has_no_banned_phrase(one[2])), self.width))
        if not best:
            return []
        states = self._model.extend(
            [alive[row].state for row, _, _ in best], [self._model.words[column] for _, column, _ in best]
        )
        return [
            Filling(words, float(scores[row, column]), state)
            for (row, column, words), state in zip(best, states, strict=True)
        ]

    def _allowed(self, layout: Layout, constraints: Constraints, position: int, words: Words) -> NDArray[np.bool_]:
        allowed = self._fillable.mask(constraints, follows_given=layout.follows_given(position))
        return allowed & self._model.may_open if self._opens(layout, position, words) else allowed

    def _longer(self, words: Words, word: str) -> Words:
        return (word, *words) if self._model.is_backward else (*words, word)

    def _sentence(self, layout: Layout, filling: Filling[StateT]) -> Sentence:
        """The sentence, whose first word is held in its plain form."""
        words = list(filling.words)
        if (first := text.opening(words)) is not None:
            words[first] = self._model.plain(words[first])
        return layout.filled([words[at] for at in layout.missing])
