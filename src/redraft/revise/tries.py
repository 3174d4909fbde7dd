"""Two stages that leave the target unchanged: a cheap model proposes, the target decides among a few tries.

Multiple-try Metropolis. The tries are m words drawn from q: the candidates in proportion to the cheap model's scores,
or, with a small probability, the whole vocabulary. The weight of a try is target / q. At one slot q is the same for
every word that may be there, so the tries that were not taken serve as the reference set of the way back (Liu, Liang
and Wong, 2000). With W the sum of the weights of the tries:

    replace   W / (W - weight(new) + weight(old))
    insert    (W / m) / target(old)
    delete    target(new) / (W / m), W over the old word and m - 1 tries

Insertion and deletion are screened before the target scores anything (delayed acceptance, Christen and Fox, 2005): an
insertion passes with probability min(1, g), a deletion with min(1, 1 / g), where g is the cheap model's sum over the
candidates divided by its score of the sentence without a word there. The ratio is then divided, or multiplied, by g.
With m = 1 this is plain delayed acceptance.
"""

from dataclasses import dataclass

import numpy as np

from redraft.models.base import Words
from redraft.numerics import Array, accept, draw, log_normalise, log_sum, log_uniform
from redraft.revise.accept import hastings_log_ratio
from redraft.revise.candidates import ScoredCandidates
from redraft.revise.kernels import WIDE, Proposal, Site, WordPlan, swap_filling
from redraft.sentence import Action


@dataclass(frozen=True)
class TriesPlan(WordPlan[ScoredCandidates]):
    """A draw among ``num`` tries. A move that did not pass the first stage scores nothing and is rejected."""

    num: int = 1
    wide: float = WIDE
    is_screened: bool = False

    @property
    def fillings(self) -> list[Words]:
        return [] if self.is_screened else super().fillings

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        takes_word = self.site.action in (Action.REPLACE, Action.INSERT)
        if self.is_screened:
            return Proposal(self.site.edit(self.words[0] if takes_word else None), 0.0, -np.inf)
        word = self.drawn(self._weights(log_weights)) if takes_word else None
        return self.weigh(log_weights, log_old, word)

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        """Of given tries, the first one is taken. The others in another order are another draw."""
        site, edit, log_last = self.site, self.site.edit(word), float(log_weights[-1])
        if site.action is Action.SWAP:
            return Proposal(edit, 0.0, hastings_log_ratio(log_last, log_old, 0.0, 0.0))
        tried = self._weights(log_weights)
        log_drawn, log_screen, log_num = self._log_q(self.words).sum(), _log_screen(site), np.log(self.num)
        if word is None:
            log_mean = log_sum(np.append(tried, self._old_weight(log_old))) - log_num
            inside = log_old > -np.inf  # outside the target, the tries say nothing about the old sentence
            ratio = hastings_log_ratio(log_last, log_mean if inside else log_old, _log_gain(site), 0.0)
            return Proposal(edit, float(log_drawn), ratio, log_screen)
        at, log_all = self.words.index(word), log_sum(tried)
        if log_all > -np.inf:
            log_drawn += log_num + tried[at] - log_all
        if site.action is Action.INSERT:
            ratio = hastings_log_ratio(log_all - log_num, log_old, 0.0, _log_gain(site))
        else:
            others = np.delete(tried, at)
            log_back = log_sum(np.append(others, self._old_weight(log_old)))
            ratio = hastings_log_ratio(log_all, log_back, 0.0, 0.0)
        return Proposal(edit, float(log_drawn), ratio, log_screen)

    def _weights(self, log_weights: Array) -> Array:
        return log_weights[: len(self.words)] - self._log_q(self.words)

    def _old_weight(self, log_old: float) -> float:
        """The weight of the word in the slot as a try; infinite if it could never be drawn."""
        return log_old if log_old == -np.inf else log_old - float(self._log_q((self.site.old_word,))[0])

    def _log_q(self, words: Words) -> Array:
        """Log-probability of each word as a try, whatever word is in the slot now."""
        candidates = self.site.candidates
        wide = np.array([candidates.log_wide_of(word) for word in words])
        if not candidates.words:
            return wide
        narrow = dict(zip(candidates.words, log_normalise(candidates.log_cheap), strict=True))
        return np.logaddexp(
            float(np.log1p(-self.wide)) + np.array([narrow.get(word, -np.inf) for word in words]),
            float(np.log(self.wide)) + wide,
        )


class TriesKernel:
    """Exact, with m sentences per step under the target. Needs candidates that a first stage has scored."""

    actions = frozenset(Action)
    is_exact = True
    ratio_needs_prior = True
    visits_short_drafts = False

    def __init__(self, num: int, wide: float = WIDE):
        self._num, self._wide = num, wide

    def plan(self, site: Site[ScoredCandidates], rng: np.random.Generator) -> TriesPlan:
        if site.action is Action.SWAP:
            return self.plan_given(site, ())
        is_screened = not accept(_log_screen(site), log_uniform(rng))
        num = self._num - (site.action is Action.DELETE)
        words = tuple(self._draw(site, rng) for _ in range(num))
        return self._plan(site, words, rng.gumbel(size=len(words)), is_screened)

    def plan_given(self, site: Site[ScoredCandidates], words: Words) -> TriesPlan:
        return self._plan(site, words, np.zeros(len(words)))

    def _plan(self, site: Site[ScoredCandidates], words: Words, noise: Array, is_screened: bool = False) -> TriesPlan:
        extra: tuple[Words, ...] = ((),) if site.action is Action.DELETE else ()
        if site.action is Action.SWAP:
            words, extra = (), swap_filling(site)
        return TriesPlan(site, words, extra, noise, self._num, self._wide, is_screened)

    def _draw(self, site: Site[ScoredCandidates], rng: np.random.Generator) -> str:
        words, candidates = site.candidates.words, site.candidates
        is_wide = rng.random() < self._wide
        return candidates.draw_wide(rng) if is_wide or not words else words[draw(candidates.log_cheap, rng)]


def _log_gain(site: Site[ScoredCandidates]) -> float:
    """What the cheap model expects of one more word: its sum over the candidates over the sentence without one."""
    candidates = site.candidates
    return log_sum(candidates.log_cheap) - candidates.log_cheap_empty if candidates.words else 0.0


def _log_screen(site: Site[ScoredCandidates]) -> float:
    """Log-probability that a move passes the first stage."""
    if site.action is Action.INSERT:
        return min(0.0, _log_gain(site))
    return min(0.0, -_log_gain(site)) if site.action is Action.DELETE else 0.0
