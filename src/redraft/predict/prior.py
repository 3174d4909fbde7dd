"""The prior over (action, position): a table of weights for each sentence, zero for what is not legal.

Drawing an action by the row sums and then a position within the row, as the paper does, is drawing a cell of the
table in proportion to its weight.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.numerics import Array, draw, log_of, log_sum
from redraft.sentence import Action, Sentence

_ACTIONS = tuple(Action)


class Move(NamedTuple):
    """Where and how: the paper's action A and position P."""

    action: Action
    position: int


def reverse(move: Move) -> Move:
    """The move that undoes a move: an insertion is undone by a deletion, and the other way round."""
    undoing = {Action.INSERT: Action.DELETE, Action.DELETE: Action.INSERT}
    return Move(undoing.get(move.action, move.action), move.position)


class Prior(Protocol):
    """Computes a table of log weights [actions, positions] for each sentence of a batch, over its legal pairs."""

    def log_tables(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[Array]: ...


@runtime_checkable
class SettlingPrior(Prior, Protocol):
    """A prior that also says when a sentence needs no revision."""

    def expects_no_revision(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[bool]: ...


class UniformPrior:
    """The same weight for every legal pair: the paper's systems without a classifier."""

    def log_tables(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[Array]:
        return [log_of(table) for table in legal]


class EqualActionsPrior:
    """Every action equally likely, then every legal position of it: CGMH. An action without a position is not drawn."""

    def log_tables(self, sentences: Sequence[Sentence], legal: Sequence[NDArray[np.bool_]]) -> list[Array]:
        return [log_of(table / np.maximum(1, table.sum(1, keepdims=True))) for table in legal]


def draw_move(log_table: Array, rng: np.random.Generator) -> Move | None:
    """Draw a legal pair; None if there is none."""
    if not np.isfinite(log_table).any():
        return None
    row, position = np.unravel_index(draw(log_table.ravel(), rng), log_table.shape)
    return Move(_ACTIONS[int(row)], int(position))


def log_prior(log_table: Array, move: Move) -> float:
    """Log-probability of drawing a move."""
    return float(log_table[_ACTIONS.index(move.action), move.position]) - log_sum(log_table.ravel())
