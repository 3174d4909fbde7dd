"""Which revisions are legal: a table of (action, position) pairs."""

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.sentence import ENDING, FREE, Action, Constraints, Order, Sentence, num_words

ROW = {action: row for row, action in enumerate(Action)}


def legal_table(sentence: Sentence, constraints: Constraints, actions: frozenset[Action]) -> NDArray[np.bool_]:
    """Rows are actions, columns positions; the last column is the end of the sentence.

    Only constraints with parts of several realisations have a row for varying them. No locked word is replaced or
    deleted. Nothing is inserted into a closed gap or at the length limit, nothing is deleted while there are too few
    words, and no "'t" is moved right after a locked word.
    """
    size = len(sentence)
    # The draw of a move depends on the shape of the table, so that it has no row that is never used.
    table = np.zeros((len(ROW) - (not constraints.has_forms), size + 1), dtype=np.bool_)
    locks = np.array(sentence.locks)
    if Action.REPLACE in actions:
        replaceable_ending = (locks == ENDING) & (len(constraints.allowed_endings) > 1)
        table[ROW[Action.REPLACE], :size] = (locks == FREE) | replaceable_ending
    if Action.DELETE in actions and num_words(sentence.words) >= (constraints.min_words or 0):
        table[ROW[Action.DELETE], :size] = (locks == FREE) & ~_shields(sentence)
    if Action.SWAP in actions:
        free_order = constraints.order is Order.ANY and constraints.template is None
        may_move = [lock == FREE or free_order for lock in sentence.locks]
        can_swap = [may and sentence.can_swap(i) for i, may in enumerate(may_move)]
        table[ROW[Action.SWAP], :size] = np.array(can_swap) & ~_shields(sentence)
    if Action.VARY in actions and constraints.has_forms:
        starts = filter(sentence.starts_part, range(size))
        table[ROW[Action.VARY], [i for i in starts if len(constraints.realisations_at(sentence, i)) > 1]] = True
    if Action.INSERT in actions and size < constraints.limit:
        table[ROW[Action.INSERT]] = sentence.open_gaps
    return table


def _shields(sentence: Sentence) -> NDArray[np.bool_]:
    """Free words between a locked word and a "'t", which would turn it into another word: "can is 't"."""
    before, after = (FREE, *sentence.locks), (*sentence.words[1:], "")
    return np.array(
        [
            lock == FREE and previous != FREE and text.is_negation(following)
            for lock, previous, following in zip(sentence.locks, before, after, strict=False)
        ],
        dtype=np.bool_,
    )
