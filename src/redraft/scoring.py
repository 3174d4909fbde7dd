"""Weights of proposed sentences under the target, computed only as far as the decisions need them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Slot, Words
from redraft.numerics import Array
from redraft.revise.kernels import EarlyPlan, Plan
from redraft.revise.lazy import PartialScorer, settle
from redraft.sentence import Constraints
from redraft.target import Target


def log_weights(
    target: Target, constraints: Constraints, log_probs: Array, sentences: Sequence[Words], *, allows_short: bool
) -> Array:
    """Log target weights of sentences: -inf for those that break a hard constraint.

    A search may visit drafts that are still too short (``allows_short``), a sampler may not.
    """
    meets = constraints.has_no_banned_phrase if allows_short else constraints.meets_hard_limits
    weights = target.log_weights(log_probs, sentences)
    return np.where([meets(words) for words in sentences], weights, -np.inf)


def score_plans(
    target: Target,
    constraints: Sequence[Constraints],
    slots: Sequence[Slot],
    plans: Sequence[Plan],
    readings: Sequence[object],
    log_old: Sequence[float],
    log_levels: Sequence[float] | None,
    *,
    allows_short: bool,
    lazily: bool,
) -> list[Array]:
    """Log target weights of each plan's fillings. A filling that occurs twice is scored once.

    With ``lazily`` and the levels of acceptance, weights are exact only as far as the decisions depend on them.
    """
    fillings = [list(dict.fromkeys(plan.fillings)) for plan in plans]
    places = [[one.index(words) for words in plan.fillings] for plan, one in zip(plans, fillings, strict=True)]

    def weights(i: int, log_probs: Array) -> Array:
        sentences = [slots[i].fill(words) for words in fillings[i]]
        return log_weights(target, constraints[i], log_probs, sentences, allows_short=allows_short)[places[i]]

    early = [plan for plan in plans if isinstance(plan, EarlyPlan)]
    scorer = target.scorer
    if lazily and log_levels is not None and isinstance(scorer, PartialScorer) and len(early) == len(plans):

        def undecided(i: int, bounds: Array, is_final: NDArray[np.bool_]) -> list[int]:
            open_ = early[i].undecided(weights(i, bounds), is_final[places[i]], log_old[i], log_levels[i])
            return list(dict.fromkeys(places[i][at] for at in open_))

        log_probs = settle(scorer.scoring(slots, fillings, readings), undecided)
    else:
        log_probs = scorer.log_probs_filled(slots, fillings, readings)
    return [weights(i, found) for i, found in enumerate(log_probs)]
