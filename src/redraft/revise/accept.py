"""The acceptance ratios for the Metropolis rule, redraft.numerics.accept."""

import numpy as np

from redraft.numerics import Array, log_sum
from redraft.sentence import Action


def paper_log_ratio(action: Action, log_old: float, log_candidates: Array, log_without: float | None = None) -> float:
    """Log of the paper's acceptance ratio A*.

    ``log_old`` is log p of the current sentence, ``log_candidates`` are those of the candidate sentences, and
    ``log_without`` is that of the sentence with an empty slot (for a deletion).

    replace   1: the draw from the candidates is a Gibbs step
    insert    sum of p over the candidates / p(old)
    delete    p(without) / sum of p over the candidates and the old sentence

    The probabilities of drawing the action and the position are left out, as in the paper.
    """
    if action is Action.REPLACE:
        return 0.0
    if action is Action.INSERT:
        return log_sum(log_candidates) - log_old
    if log_without is None:
        raise ValueError("a deletion needs the log-probability of the sentence without the word")
    return log_without - log_sum(np.append(log_candidates, log_old))


def hastings_log_ratio(log_new: float, log_old: float, log_back: float, log_there: float) -> float:
    """Log of target(new) q(old | new) / (target(old) q(new | old)).

    A chain may start outside the target, with a draft that is too short. From there it accepts every move.
    """
    if log_old == -np.inf:
        return np.inf
    if log_new == -np.inf or log_back == -np.inf:
        return -np.inf
    return log_new - log_old + log_back - log_there
