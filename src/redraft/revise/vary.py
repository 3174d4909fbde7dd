"""Varying: the realisation of a given part is drawn again, in proportion to the target."""

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Words
from redraft.numerics import Array, log_sum
from redraft.revise.accept import hastings_log_ratio
from redraft.revise.candidates import CandidatesT
from redraft.revise.kernels import Proposal, Site
from redraft.sentence import Action, Constraints


@dataclass(frozen=True)
class VaryPlan(Generic[CandidatesT]):
    """A draw among all realisations of the part at a site. It is the same for every kernel, and exact.

    ``noise`` decides which one is drawn once the scores are known.
    """

    site: Site[CandidatesT]
    realisations: tuple[Words, ...]
    noise: Array

    @classmethod
    def of(
        cls, site: Site[CandidatesT], constraints: Constraints, rng: np.random.Generator | None
    ) -> "VaryPlan[CandidatesT]":
        """A plan; without ``rng`` it has no noise and cannot draw."""
        found = constraints.realisations_at(site.sentence, site.position)
        return cls(site, found, np.empty(0) if rng is None else rng.gumbel(size=len(found)))

    @property
    def fillings(self) -> list[Words]:
        return list(self.realisations)

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        if not np.isfinite(log_weights).any():
            return None
        drawn = self.realisations[int((log_weights + self.noise).argmax())]
        return self.weigh(log_weights, log_old, " ".join(drawn))

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        start, end = self.site.sentence.span(Action.VARY, self.site.position)
        old = self.realisations.index(self.site.sentence.words[start:end])
        new = self.realisations.index(tuple((word or "").split()))
        there, back = (float(log_weights[i]) - log_sum(log_weights) for i in (new, old))
        ratio = hastings_log_ratio(float(log_weights[new]), log_old, back, there)
        return Proposal(self.site.edit(word), there, ratio)

    def undecided(self, bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float) -> list[int]:
        """All realisations are scored in full: they are few."""
        return [int(i) for i in np.argsort(-bounds) if not is_final[i]]
