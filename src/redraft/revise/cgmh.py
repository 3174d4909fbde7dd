"""The kernel of CGMH (Miao et al., 2019): acceptance by the probability of the reverse proposal.

A word is drawn from the candidates in proportion to the target. With g(new | old) for the probability of drawing it,

replace   1: the draw is a Gibbs step
insert    p(new) / (p(old) g(new | old)), as a deletion has one outcome
delete    p(new) g(old | new) / p(old); 0 if the deleted word is not among the candidates of its place

CGMH draws insertions and deletions equally often, so the probabilities of the actions cancel. Insertions and deletions
are then in detailed balance, but for the probabilities of the positions, which the formulas leave out: a longer
sentence has more of them. Replacements are not: a word that is not among the candidates is replaced and can never come
back. With the probabilities of the moves in the ratio (``ratio_needs_prior``) and every word a candidate, the kernel
leaves its target unchanged. tests/exact/test_cgmh.py measures each of the two errors.
"""

from dataclasses import dataclass

import numpy as np

from redraft.models.base import Words
from redraft.numerics import Array, log_sum
from redraft.revise.accept import hastings_log_ratio
from redraft.revise.candidates import Candidates
from redraft.revise.kernels import PaperKernel, Proposal, Site, WordPlan, empty_filling
from redraft.sentence import Action


@dataclass(frozen=True)
class CgmhPlan(WordPlan[Candidates]):
    """A draw among candidates; a deletion scores the sentence without the word as well."""

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        if not self.words:
            return None
        word = None if self.site.action is Action.DELETE else self.drawn(log_weights)
        return self.weigh(log_weights, log_old, word)

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        among = log_weights[: len(self.words)]
        if word is None:
            log_back = self._log_drawn(among, self.site.old_word)
            return Proposal(self.site.edit(None), 0.0, hastings_log_ratio(float(log_weights[-1]), log_old, log_back, 0))
        log_there = self._log_drawn(among, word)
        if self.site.action is Action.REPLACE:
            return Proposal(self.site.edit(word), log_there, 0.0)
        log_new = float(among[self.words.index(word)]) if word in self.words else -np.inf
        return Proposal(self.site.edit(word), log_there, hastings_log_ratio(log_new, log_old, 0.0, log_there))

    def _log_drawn(self, among: Array, word: str) -> float:
        """Log-probability of drawing a word into the slot."""
        return float(among[self.words.index(word)]) - log_sum(among) if word in self.words else -np.inf


class CgmhKernel:
    """CGMH's formulas. Words are drawn from the K candidates only."""

    actions = PaperKernel.actions
    is_exact = False
    ratio_needs_prior = False
    visits_short_drafts = True

    def plan(self, site: Site[Candidates], rng: np.random.Generator) -> CgmhPlan:
        words = site.candidates.words
        return CgmhPlan(site, words, empty_filling(site, words), rng.gumbel(size=len(words)))

    def plan_given(self, site: Site[Candidates], words: Words) -> CgmhPlan:
        return CgmhPlan(site, site.candidates.words, empty_filling(site, site.candidates.words))
