"""Two stages that leave the target as it is: a cheap model proposes, the target decides among a few tries.

Multiple-try Metropolis. The tries are m words drawn from q: the candidates in proportion to the cheap model's scores,
or, now and then, the whole vocabulary. What they weigh is target / q. At one slot q is the same whatever word stands
there, so the tries that were not taken serve as the reference set of the way back (Liu, Liang and Wong, 2000), and
with W the summed weights of the tries:

    replace   W / (W - weight(new) + weight(old))
    insert    (W / m) / target(old)
    delete    target(new) / (W / m), W over the old word and m - 1 tries

Insertion and deletion are screened before the target is asked at all (delayed acceptance, Christen and Fox, 2005): an
insertion goes on with probability min(1, g), a deletion with min(1, 1 / g), where g is the cheap model's sum over the
candidates over its score of the sentence without a word there; the ratio is then divided, or multiplied, by g. With
m = 1 this is delayed acceptance and nothing else.
"""

import numpy as np

from redraft.models.base import Words
from redraft.numerics import Array, accept, draw, log_normalise, log_sum, log_uniform
from redraft.revise.accept import hastings_log_ratio
from redraft.revise.kernels import WIDE, Opening, Plan, Proposal, swap_plan
from redraft.sentence import Action


class TriesKernel:
    """Exact, with m sentences a step under the target. Needs the scores of a first stage."""

    actions = frozenset(Action)
    counts_prior = True

    def __init__(self, num: int, wide: float = WIDE):
        self._num, self._wide = num, wide
        self._log_wide, self._log_narrow = float(np.log(wide)), float(np.log1p(-wide))

    def plan(self, opening: Opening, rng: np.random.Generator, tries: Words | None = None) -> Plan:
        if opening.action is Action.SWAP:
            return swap_plan(opening)
        num = self._num - (opening.action is Action.DELETE)
        is_screened = tries is None and not accept(_log_screen(opening), log_uniform(rng))
        words = tuple(self._draw(opening, rng) for _ in range(num)) if tries is None else tries
        without: tuple[Words, ...] = ((),) if opening.action is Action.DELETE else ()
        return Plan(opening, words, without, rng.gumbel(size=len(words)), is_screened)

    def propose(self, plan: Plan, log_weights: Array, log_old: float) -> Proposal | None:
        takes_word = plan.opening.action in (Action.REPLACE, Action.INSERT)
        if plan.is_screened:
            return Proposal(plan.opening.edit(plan.words[0] if takes_word else None), 0.0, -np.inf)
        word = plan.drawn(self._weights(plan, log_weights)) if takes_word else None
        return self.weigh(plan, log_weights, log_old, word)

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        """Of tries that are given, the one that is taken comes first; the others in another order are another draw."""
        opening, edit, log_last = plan.opening, plan.opening.edit(word), float(log_weights[-1])
        if opening.action is Action.SWAP:
            return Proposal(edit, 0.0, hastings_log_ratio(log_last, log_old, 0.0, 0.0))
        tried = self._weights(plan, log_weights)
        log_drawn, log_screen, log_num = self._log_q(opening, plan.words).sum(), _log_screen(opening), np.log(self._num)
        if word is None:
            log_mean = log_sum(np.append(tried, self._old_weight(opening, log_old))) - log_num
            inside = log_old > -np.inf  # outside the target, the tries say nothing of the old sentence
            ratio = hastings_log_ratio(log_last, log_mean if inside else log_old, _log_gain(opening), 0.0)
            return Proposal(edit, float(log_drawn), ratio, log_screen)
        at, log_all = plan.words.index(word), log_sum(tried)
        if log_all > -np.inf:
            log_drawn += log_num + tried[at] - log_all
        if opening.action is Action.INSERT:
            ratio = hastings_log_ratio(log_all - log_num, log_old, 0.0, _log_gain(opening))
        else:
            others = np.delete(tried, at)
            log_back = log_sum(np.append(others, self._old_weight(opening, log_old)))
            ratio = hastings_log_ratio(log_all, log_back, 0.0, 0.0)
        return Proposal(edit, float(log_drawn), ratio, log_screen)

    def _weights(self, plan: Plan, log_weights: Array) -> Array:
        return log_weights[: len(plan.words)] - self._log_q(plan.opening, plan.words)

    def _old_weight(self, opening: Opening, log_old: float) -> float:
        """What the word that stands there weighs as a try; without end where it could never be drawn."""
        return log_old if log_old == -np.inf else log_old - float(self._log_q(opening, (opening.old_word,))[0])

    def _draw(self, opening: Opening, rng: np.random.Generator) -> str:
        words, candidates = opening.candidates.words, opening.candidates
        is_wide = rng.random() < self._wide
        return candidates.draw_wide(rng) if is_wide or not words else words[draw(candidates.log_cheap, rng)]

    def _log_q(self, opening: Opening, words: Words) -> Array:
        """Log-probability of each word as a try, whatever stands in the slot now."""
        candidates = opening.candidates
        wide = np.array([candidates.log_wide_of(word) for word in words])
        if not candidates.words:
            return wide
        narrow = dict(zip(candidates.words, log_normalise(candidates.log_cheap), strict=True))
        return np.logaddexp(
            self._log_narrow + np.array([narrow.get(word, -np.inf) for word in words]), self._log_wide + wide
        )


def _log_gain(opening: Opening) -> float:
    """What the cheap model expects of a word more: the sum over its candidates over the sentence without one."""
    candidates = opening.candidates
    return log_sum(candidates.log_cheap) - candidates.log_cheap_empty if candidates.words else 0.0


def _log_screen(opening: Opening) -> float:
    """Log-probability with which a move reaches the second stage."""
    if opening.action is Action.INSERT:
        return min(0.0, _log_gain(opening))
    return min(0.0, -_log_gain(opening)) if opening.action is Action.DELETE else 0.0
