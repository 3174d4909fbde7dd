"""The learned prior: the table of the paper's Figure 1."""

import enum
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.numerics import Array, log_normalise, log_of, log_sum
from redraft.predict.classifier import LABELS, Classifier
from redraft.sentence import Action, Sentence

# The actions that the classifier has labels for, the table's first rows. "Copy" is dropped: its mass is not needed.
LABELLED = tuple(action for action in Action if action.value in LABELS)
_COPY, _REPLACE = LABELS.index("copy"), LABELS.index("replace")
_SWAP = list(Action).index(Action.SWAP)
_VARY = list(Action).index(Action.VARY)
_LOG_SWAP = float(np.log(0.1))  # the classifier has no label for swaps: they get a tenth of the other actions' mass


class Learned(enum.Enum):
    """What the prior takes from the classifier. The last two are the paper's ablations."""

    ALL = "actions and positions"
    POSITIONS = "without the prior for actions"
    ACTIONS = "without the prior for positions"


class LearnedPrior:
    """Class probabilities of each (action, position), zero for what is not legal."""

    def __init__(self, classifier: Classifier, learned: Learned = Learned.ALL):
        self._classifier, self._learned = classifier, learned

    def log_tables(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[Array]:
        """One table [actions, positions] for each sentence, with one call of the classifier for the whole batch."""
        found = self._classifier.log_probs([sentence.words for sentence in sentences])
        return [self._table(log_probs, allowed) for log_probs, allowed in zip(found, legal, strict=True)]

    def expects_no_revision(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[bool]:
        """For each sentence, whether "copy" is the likeliest label wherever another one is legal."""
        found = self._classifier.log_probs([sentence.words for sentence in sentences])
        return [
            all(
                (log_probs[allowed[row], LABELS.index(action.value)] <= log_probs[allowed[row], _COPY]).all()
                for row, action in enumerate(LABELLED)
            )
            for log_probs, allowed in zip(found, legal, strict=True)
        ]

    def _table(self, log_probs: Array, allowed: NDArray[np.bool_]) -> Array:
        table = np.full(allowed.shape, -np.inf)
        for row, action in enumerate(LABELLED):
            table[row] = log_probs[:, LABELS.index(action.value)]
        table = self._reduced(np.where(allowed, table, -np.inf), allowed)
        if swaps := allowed[_SWAP].sum():
            mass = log_sum(table.ravel())
            share = 0.0 if mass == -np.inf else mass + _LOG_SWAP - np.log(swaps)
            table[_SWAP] = np.where(allowed[_SWAP], share, -np.inf)
        if len(table) > _VARY:  # a given word that the classifier would replace is one to vary
            table[_VARY] = np.where(allowed[_VARY], log_probs[:, _REPLACE], -np.inf)
        return table

    def _reduced(self, table: Array, allowed: NDArray[np.bool_]) -> Array:
        rows = np.isfinite(table).any(1)
        result = table.copy()
        if self._learned is Learned.POSITIONS:  # all possible actions have the same weight
            for row in np.flatnonzero(rows):
                result[row] = log_normalise(table[row])
        elif self._learned is Learned.ACTIONS:  # all possible positions have the same weight
            for row in np.flatnonzero(rows):
                result[row] = log_of(allowed[row]) + log_sum(table[row]) - np.log(allowed[row].sum())
        return result
