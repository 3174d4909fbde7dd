"""Replace, insert, delete: which sentences a move compares, and what it proposes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from redraft.numerics import Array, draw
from redraft.revise.accept import paper_log_ratio
from redraft.sentence import Action, Edit


class Proposal(NamedTuple):
    """An edit and the log of its acceptance ratio."""

    edit: Edit
    log_ratio: float


def fills(action: Action, candidates: Sequence[str]) -> list[str | None]:
    """What is to be scored in the slot: the candidates, and for a deletion the empty slot, last."""
    return [*candidates, None] if action is Action.DELETE else list(candidates)


def propose(
    action: Action,
    position: int,
    candidates: Sequence[str],
    log_filled: Array,
    log_old: float,
    rng: np.random.Generator,
) -> Proposal:
    """Draw a candidate in proportion to its sentence's probability; a deletion has nothing to draw."""
    if action is Action.DELETE:
        ratio = paper_log_ratio(action, log_old, log_filled[:-1], float(log_filled[-1]))
        return Proposal(Edit(action, position), ratio)
    word = candidates[draw(log_filled, rng)]
    return Proposal(Edit(action, position, word), paper_log_ratio(action, log_old, log_filled))
