"""What may be touched: the table of legal (action, position) pairs."""

import numpy as np
from numpy.typing import NDArray

from redraft.sentence import ENDING, FREE, Action, Constraints, Order, Sentence

ROW = {action: row for row, action in enumerate(Action)}


def legal_table(sentence: Sentence, constraints: Constraints, actions: frozenset[Action]) -> NDArray[np.bool_]:
    """Rows are actions, columns positions; the last column is the end of the sentence.

    No locked word is replaced or deleted, nothing goes into a closed gap, nothing is inserted at the length limit.
    """
    size = len(sentence)
    table = np.zeros((len(ROW), size + 1), dtype=np.bool_)
    locks = np.array(sentence.locks)
    if Action.REPLACE in actions:
        replaceable_ending = (locks == ENDING) & (len(constraints.allowed_endings) > 1)
        table[ROW[Action.REPLACE], :size] = (locks == FREE) | replaceable_ending
    if Action.DELETE in actions:
        table[ROW[Action.DELETE], :size] = locks == FREE
    if Action.SWAP in actions:
        free_order = constraints.order is Order.ANY and constraints.template is None
        table[ROW[Action.SWAP], :size] = [
            sentence.can_swap(i) and (lock == FREE or free_order) for i, lock in enumerate(sentence.locks)
        ]
    if Action.INSERT in actions and size < constraints.limit:
        table[ROW[Action.INSERT]] = sentence.open_gaps
    return table
