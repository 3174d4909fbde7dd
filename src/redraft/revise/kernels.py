"""The two kernels: how a move is proposed, and with which ratio it is accepted.

A kernel first says which fillings of the slot are to be scored (``plan``), then draws one of them (``propose``).
``weigh`` gives the probability with which a word is drawn and the acceptance ratio that goes with it; ``propose`` is a
draw and a call of ``weigh``, so what the tests enumerate is what the sampler does. All noise is drawn by ``plan``,
before anything is scored: what is drawn cannot hang on how, or how far, the sentences are scored.
"""

import enum
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Words
from redraft.numerics import Array, log_sum
from redraft.revise.accept import hastings_log_ratio, paper_log_ratio
from redraft.revise.candidates import Candidates
from redraft.revise.lazy import undecided_by_paper
from redraft.sentence import Action, Edit, Sentence

WIDE = 0.02  # how often an exact kernel draws from the whole vocabulary


class KernelName(enum.Enum):
    """``paper`` searches, ``exact`` samples; docs/kernels.md has them side by side."""

    PAPER = "paper"
    EXACT = "exact"


class Proposal(NamedTuple):
    """An edit, the log-probability of drawing it once the move is drawn, and the log of its acceptance ratio.

    ``log_screen`` is the log-probability with which it gets as far as being weighed.
    """

    edit: Edit
    log_drawn: float
    log_ratio: float
    log_screen: float = 0.0


@dataclass(frozen=True)
class Opening:
    """A place in a sentence, what is to be done there, and the words that may stand there."""

    sentence: Sentence
    action: Action
    position: int
    candidates: Candidates

    @property
    def old_word(self) -> str:
        return self.sentence.words[self.position]

    def edit(self, word: str | None) -> Edit:
        return Edit(self.action, self.position, word)


@dataclass(frozen=True)
class Plan:
    """What is to be scored at an opening: sentences with the ``words`` in it, then with each of the ``extra`` fillings.

    ``noise`` decides which word is drawn once the scores are known. A plan that was screened out is not scored.
    """

    opening: Opening
    words: Words
    extra: tuple[Words, ...] = ()
    noise: Array = field(default_factory=lambda: np.empty(0))
    is_screened: bool = False

    @property
    def fillings(self) -> list[Words]:
        if self.is_screened:
            return []
        return [*((word,) for word in self.words), *self.extra]

    def drawn(self, log_weights: Array) -> str:
        """The word that a draw in proportion to the weights gives: the argmax after Gumbel noise."""
        return self.words[int((log_weights[: len(self.words)] + self.noise).argmax())]


class Kernel(Protocol):
    """What the sampler asks of a kernel."""

    @property
    def actions(self) -> frozenset[Action]:
        """The actions it can take."""

    @property
    def counts_prior(self) -> bool:
        """Whether the probabilities of drawing the move and its reverse belong to the ratio."""

    def plan(self, opening: Opening, rng: np.random.Generator, tries: Words | None = None) -> Plan:
        """What is to be scored. ``tries`` are words instead of drawn ones, the one that is to be proposed first."""

    def propose(self, plan: Plan, log_weights: Array, log_old: float) -> Proposal | None:
        """Draw a filling; ``log_weights`` are the target's, one a filling. None where there is nothing to draw."""

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        """The proposal of a given word: how likely it is, and its ratio."""


@runtime_checkable
class EarlyKernel(Kernel, Protocol):
    """A kernel that may know its decision before every sentence is scored in full."""

    def undecided(
        self, plan: Plan, bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float
    ) -> list[int]:
        """Fillings whose scores, of which upper bounds are known, may still change what is drawn and accepted."""


class PaperKernel:
    """The paper's formulas: a stochastic search. Words come from the K candidates alone.

    With a first stage (``num_scored``), the K are thinned to so many by the cheap model's scores: the largest after
    Gumbel noise, which draws them in proportion to the scores without putting any back.
    """

    actions = frozenset({Action.REPLACE, Action.INSERT, Action.DELETE})
    counts_prior = False

    def __init__(self, num_scored: int | None = None):
        self._num_scored = num_scored

    def plan(self, opening: Opening, rng: np.random.Generator, tries: Words | None = None) -> Plan:
        words = opening.candidates.words
        if self._num_scored is not None:
            cheap = opening.candidates.log_cheap
            top = np.argsort(-(cheap + rng.gumbel(size=cheap.shape)), kind="stable")[: self._num_scored]
            words = tuple(words[i] for i in sorted(top))
        without: tuple[Words, ...] = ((),) if opening.action is Action.DELETE and words else ()
        return Plan(opening, words, without, rng.gumbel(size=len(words)))

    def propose(self, plan: Plan, log_weights: Array, log_old: float) -> Proposal | None:
        if not plan.words:
            return None
        word = None if plan.opening.action is Action.DELETE else plan.drawn(log_weights)
        return self.weigh(plan, log_weights, log_old, word)

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        action, among = plan.opening.action, log_weights[: len(plan.words)]
        if word is None:
            ratio = paper_log_ratio(action, log_old, among, float(log_weights[-1]))
            return Proposal(plan.opening.edit(None), 0.0, ratio)
        drawn = float(among[plan.words.index(word)]) - log_sum(among) if word in plan.words else -np.inf
        return Proposal(plan.opening.edit(word), drawn, paper_log_ratio(action, log_old, among))

    def undecided(
        self, plan: Plan, bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float
    ) -> list[int]:
        return undecided_by_paper(plan.opening.action, bounds, is_final, plan.noise, log_old, log_level)


class ExactKernel:
    """Metropolis-Hastings that leaves the target as it is.

    A word is drawn from the candidates in proportion to the target, or, now and then (``wide``), from the proposers'
    distribution over the whole vocabulary, so that every word can be reached and be left.
    """

    actions = frozenset(Action)
    counts_prior = True

    def __init__(self, wide: float = WIDE):
        self._log_wide, self._log_narrow = float(np.log(wide)), float(np.log1p(-wide))
        self._wide = wide

    def plan(self, opening: Opening, rng: np.random.Generator, tries: Words | None = None) -> Plan:
        if opening.action is Action.SWAP:
            return swap_plan(opening)
        words = opening.candidates.words
        if opening.action is Action.DELETE:
            return Plan(opening, words, ((),))
        if tries is not None:
            return Plan(opening, words, (tries,))
        is_wide, noise = rng.random() < self._wide, rng.gumbel(size=len(words))
        wide_word = (opening.candidates.draw_wide(rng),)
        return Plan(opening, words, (wide_word,), np.full(len(words), -np.inf) if is_wide else noise)

    def propose(self, plan: Plan, log_weights: Array, log_old: float) -> Proposal | None:
        if plan.opening.action in (Action.SWAP, Action.DELETE):
            return self.weigh(plan, log_weights, log_old, None)
        is_narrow = np.isfinite(log_weights[: len(plan.words)] + plan.noise).any()
        word = plan.drawn(log_weights) if is_narrow else plan.extra[0][0]
        return self.weigh(plan, log_weights, log_old, word)

    def weigh(self, plan: Plan, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        opening, edit, log_extra = plan.opening, plan.opening.edit(word), float(log_weights[-1])
        if opening.action is Action.SWAP:
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, 0.0, 0.0))
        among = log_weights[: len(plan.words)]
        if word is None:
            back = self._log_drawn(opening, among, opening.old_word)
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, back, 0.0))
        drawn = self._log_drawn(opening, among, word)
        log_new = float(among[plan.words.index(word)]) if word in plan.words else log_extra
        replaces = opening.action is Action.REPLACE
        back = self._log_drawn(opening, among, opening.old_word) if replaces else 0.0
        return Proposal(edit, drawn, hastings_log_ratio(log_new, log_old, back, drawn))

    def _log_drawn(self, opening: Opening, among: Array, word: str) -> float:
        """Log-probability of drawing a word into the slot, whatever stands there now."""
        log_all = log_sum(among)
        wide = opening.candidates.log_wide_of(word)
        if log_all == -np.inf:
            return wide  # no candidate is permitted: every draw is a wide one
        words = opening.candidates.words
        narrow = float(among[words.index(word)]) - log_all if word in words else -np.inf
        return float(np.logaddexp(self._log_narrow + narrow, self._log_wide + wide))


def swap_plan(opening: Opening) -> Plan:
    """A swap has one outcome and no words to draw."""
    return Plan(opening, (), (opening.sentence.filling(opening.edit(None)),))
