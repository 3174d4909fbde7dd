"""The two kernels: how a move is proposed, and with which ratio it is accepted.

A kernel first says which fillings of the slot are to be scored (``plan``), then draws one of them (``propose``).
``weigh`` gives the probability with which a word is drawn and the acceptance ratio that goes with it; ``propose`` is a
draw and a call of ``weigh``, so what the tests enumerate is what the sampler does.
"""

import enum
import itertools
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from redraft.models.base import Words
from redraft.numerics import Array, draw, log_sum
from redraft.revise.accept import hastings_log_ratio, paper_log_ratio
from redraft.revise.candidates import Candidates
from redraft.sentence import Action, Edit, Sentence


class KernelName(enum.Enum):
    """``paper`` searches, ``exact`` samples; docs/kernels.md has them side by side."""

    PAPER = "paper"
    EXACT = "exact"


class Proposal(NamedTuple):
    """An edit, the log-probability of drawing it once the move is drawn, and the log of its acceptance ratio."""

    edit: Edit
    log_drawn: float
    log_ratio: float


@dataclass(frozen=True)
class Plan:
    """A move with the fillings whose sentences are to be scored: the candidates first, then what else is needed."""

    sentence: Sentence
    action: Action
    position: int
    candidates: Candidates
    extra: tuple[Words, ...]

    @property
    def fillings(self) -> list[Words]:
        return [*((word,) for word in self.candidates.words), *self.extra]

    @property
    def old_word(self) -> str:
        return self.sentence.words[self.position]


class Kernel(Protocol):
    """What the sampler asks of a kernel."""

    @property
    def actions(self) -> frozenset[Action]:
        """The actions it can take."""

    @property
    def counts_prior(self) -> bool:
        """Whether the probabilities of drawing the move and its reverse belong to the ratio."""

    def plan(
        self,
        sentence: Sentence,
        action: Action,
        position: int,
        candidates: Candidates,
        rng: np.random.Generator,
        word: str | None = None,
    ) -> Plan:
        """What is to be scored; a given ``word`` is among it."""

    def propose(self, plan: Plan, log_weights: Array, log_old: float, rng: np.random.Generator) -> Proposal | None:
        """Draw a filling; ``log_weights`` are the target's, one a filling. None where there is nothing to draw."""

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        """The proposal of a given word: how likely it is, and its ratio."""


class PaperKernel:
    """The paper's formulas: a stochastic search. Words come from the K candidates alone."""

    actions = frozenset({Action.REPLACE, Action.INSERT, Action.DELETE})
    counts_prior = False

    def plan(
        self,
        sentence: Sentence,
        action: Action,
        position: int,
        candidates: Candidates,
        rng: np.random.Generator,
        word: str | None = None,
    ) -> Plan:
        return Plan(sentence, action, position, candidates, ((),) if action is Action.DELETE else ())

    def propose(self, plan: Plan, log_weights: Array, log_old: float, rng: np.random.Generator) -> Proposal | None:
        words = plan.candidates.words
        if not words:
            return None
        word = None if plan.action is Action.DELETE else words[draw(log_weights, rng)]
        return self.weigh(plan, log_weights, log_old, word)

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        words = plan.candidates.words
        among = log_weights[: len(words)]
        if word is None:
            ratio = paper_log_ratio(plan.action, log_old, among, float(log_weights[-1]))
            return Proposal(Edit(plan.action, plan.position), 0.0, ratio)
        drawn = float(among[words.index(word)]) - log_sum(among) if word in words else -np.inf
        return Proposal(Edit(plan.action, plan.position, word), drawn, paper_log_ratio(plan.action, log_old, among))


class ExactKernel:
    """Metropolis-Hastings that leaves the target as it is.

    A word is drawn from the candidates in proportion to the target, or, now and then (``wide``), from the proposers'
    distribution over the whole vocabulary, so that every word can be reached and be left.
    """

    actions = frozenset(Action)
    counts_prior = True

    def __init__(self, wide: float = 0.02):
        self._log_wide, self._log_narrow = float(np.log(wide)), float(np.log1p(-wide))
        self._wide = wide

    def plan(
        self,
        sentence: Sentence,
        action: Action,
        position: int,
        candidates: Candidates,
        rng: np.random.Generator,
        word: str | None = None,
    ) -> Plan:
        if action is Action.SWAP:
            swapped = sentence.filling(Edit(action, position))
            return Plan(sentence, action, position, Candidates((), candidates.log_dist, {}), (swapped,))
        if action is Action.DELETE:
            return Plan(sentence, action, position, candidates, ((),))
        wide_word = _draw_word(candidates, rng) if word is None else word
        return Plan(sentence, action, position, candidates, ((wide_word,),))

    def propose(self, plan: Plan, log_weights: Array, log_old: float, rng: np.random.Generator) -> Proposal | None:
        if plan.action in (Action.SWAP, Action.DELETE):
            return self.weigh(plan, log_weights, log_old, None)
        among = log_weights[: len(plan.candidates.words)]
        is_wide, noise = rng.random() < self._wide, rng.gumbel(size=len(among))
        if is_wide or log_sum(among) == -np.inf:
            return self.weigh(plan, log_weights, log_old, plan.extra[0][0])
        return self.weigh(plan, log_weights, log_old, plan.candidates.words[int((among + noise).argmax())])

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        edit = Edit(plan.action, plan.position, word)
        log_extra = float(log_weights[-1])
        if plan.action is Action.SWAP:
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, 0.0, 0.0))
        among = log_weights[: len(plan.candidates.words)]
        if word is None:
            back = self._log_drawn(plan.candidates, among, plan.old_word)
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, back, 0.0))
        drawn = self._log_drawn(plan.candidates, among, word)
        words = plan.candidates.words
        log_new = float(among[words.index(word)]) if word in words else log_extra
        replaces = plan.action is Action.REPLACE
        back = self._log_drawn(plan.candidates, among, plan.old_word) if replaces else 0.0
        return Proposal(edit, drawn, hastings_log_ratio(log_new, log_old, back, drawn))

    def _log_drawn(self, candidates: Candidates, among: Array, word: str) -> float:
        """Log-probability of drawing a word into the slot, whatever stands there now."""
        log_all = log_sum(among)
        wide = candidates.log_wide_of(word)
        if log_all == -np.inf:
            return wide  # no candidate is permitted: every draw is a wide one
        narrow = float(among[candidates.words.index(word)]) - log_all if word in candidates.words else -np.inf
        return float(np.logaddexp(self._log_narrow + narrow, self._log_wide + wide))


def _draw_word(candidates: Candidates, rng: np.random.Generator) -> str:
    at = draw(candidates.log_wide, rng)
    return next(itertools.islice(candidates.columns, at, None))  # no copy of the whole vocabulary at every step
