"""The two kernels: how a move is proposed, and with which ratio it is accepted.

A kernel makes a ``Plan`` for a move: which fillings of the slot are to be scored, and how one of them is drawn. All
noise is drawn when the plan is made, before anything is scored, so what is drawn cannot depend on how, or how far, the
sentences are scored. ``Plan.weigh`` gives the probability of drawing a word and its acceptance ratio; ``Plan.propose``
is a draw and a call of ``weigh``, so what the tests enumerate is what the sampler does.
"""

import enum
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Words
from redraft.numerics import Array, log_sum
from redraft.revise.accept import hastings_log_ratio, paper_log_ratio
from redraft.revise.candidates import Candidates, CandidatesT, ScoredCandidates
from redraft.revise.lazy import undecided_by_paper
from redraft.sentence import Action, Edit, Sentence

WIDE = 0.02  # how often an exact kernel draws from the whole vocabulary


class KernelName(enum.Enum):
    """``paper`` and ``cgmh`` search, ``exact`` samples; docs/kernels.md compares them."""

    PAPER = "paper"
    EXACT = "exact"
    CGMH = "cgmh"


class Proposal(NamedTuple):
    """An edit, the log-probability of drawing it given the move, and the log of its acceptance ratio.

    ``log_screen`` is the log-probability that it passes the first of two stages.
    """

    edit: Edit
    log_drawn: float
    log_ratio: float
    log_screen: float = 0.0


@dataclass(frozen=True)
class Site(Generic[CandidatesT]):
    """A move at a place in a sentence, and the words that are candidates for the place."""

    sentence: Sentence
    action: Action
    position: int
    candidates: CandidatesT

    @property
    def old_word(self) -> str:
        return self.sentence.words[self.position]

    def edit(self, word: str | None) -> Edit:
        return Edit(self.action, self.position, word)


class Plan(Protocol):
    """How a filling of a slot is drawn."""

    @property
    def fillings(self) -> list[Words]:
        """The fillings that are to be scored."""

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        """Draw a filling. ``log_weights`` are the target's, one for each filling. None if there is nothing to draw."""

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        """The proposal of a given word: how likely it is, and its ratio."""


@runtime_checkable
class EarlyPlan(Plan, Protocol):
    """A plan that may know its decision before every sentence is scored in full."""

    def undecided(self, bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float) -> list[int]:
        """The fillings whose scores, known by upper bounds, may still change what is drawn or accepted."""


NeededT = TypeVar("NeededT", bound=Candidates, contravariant=True)


class Kernel(Protocol[NeededT]):
    """Plans revisions. A kernel of two stages accepts only ``ScoredCandidates``."""

    @property
    def actions(self) -> frozenset[Action]:
        """The actions that it can take."""

    @property
    def is_exact(self) -> bool:
        """Whether it leaves the target unchanged, so that a chain draws samples from it."""

    @property
    def ratio_needs_prior(self) -> bool:
        """Whether the probabilities of drawing the move and its reverse belong to the acceptance ratio."""

    @property
    def visits_short_drafts(self) -> bool:
        """Whether a chain may visit drafts with fewer words than the minimum."""

    def plan(self, site: Site[NeededT], rng: np.random.Generator) -> Plan:
        """A plan for a move, all its noise drawn."""


@runtime_checkable
class EnumerableKernel(Kernel[NeededT], Protocol[NeededT]):
    """A kernel whose proposals the tests can enumerate."""

    def plan_given(self, site: Site[NeededT], words: Words) -> Plan:
        """A plan whose random words are given, the one to be weighed first."""


@dataclass(frozen=True)
class WordPlan(Generic[CandidatesT]):
    """Sentences with each of the ``words`` in the slot, then with each of the ``extra`` fillings, are to be scored.

    ``noise`` decides which word is drawn once the scores are known.
    """

    site: Site[CandidatesT]
    words: Words
    extra: tuple[Words, ...] = ()
    noise: Array = field(default_factory=lambda: np.empty(0))

    @property
    def fillings(self) -> list[Words]:
        return [*((word,) for word in self.words), *self.extra]

    def drawn(self, log_weights: Array) -> str:
        """A word drawn in proportion to the weights: the argmax after Gumbel noise."""
        return self.words[int((log_weights[: len(self.words)] + self.noise).argmax())]


@dataclass(frozen=True)
class PaperPlan(WordPlan[Candidates]):
    """A draw among candidates by the paper's formulas."""

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        if not self.words:
            return None
        word = None if self.site.action is Action.DELETE else self.drawn(log_weights)
        return self.weigh(log_weights, log_old, word)

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        action, among = self.site.action, log_weights[: len(self.words)]
        if word is None:
            ratio = paper_log_ratio(action, log_old, among, float(log_weights[-1]))
            return Proposal(self.site.edit(None), 0.0, ratio)
        drawn = float(among[self.words.index(word)]) - log_sum(among) if word in self.words else -np.inf
        return Proposal(self.site.edit(word), drawn, paper_log_ratio(action, log_old, among))

    def undecided(self, bounds: Array, is_final: NDArray[np.bool_], log_old: float, log_level: float) -> list[int]:
        return undecided_by_paper(self.site.action, bounds, is_final, self.noise, log_old, log_level)


class PaperKernel:
    """The paper's formulas: a stochastic search. Words are drawn from the K candidates only."""

    actions = frozenset({Action.REPLACE, Action.INSERT, Action.DELETE})
    is_exact = False
    ratio_needs_prior = False
    visits_short_drafts = True

    def plan(self, site: Site[Candidates], rng: np.random.Generator) -> PaperPlan:
        return _paper_plan(site, site.candidates.words, rng)

    def plan_given(self, site: Site[Candidates], words: Words) -> PaperPlan:
        return PaperPlan(site, site.candidates.words, empty_filling(site, site.candidates.words))


class ThinningKernel:
    """The paper's kernel in two stages: the K candidates are thinned to ``num_scored`` before the target scores them.

    The cheap model's scores plus Gumbel noise choose them: draws in proportion to the scores, without replacement.
    """

    actions = PaperKernel.actions
    is_exact = False
    ratio_needs_prior = False
    visits_short_drafts = True

    def __init__(self, num_scored: int):
        self._num_scored = num_scored

    def plan(self, site: Site[ScoredCandidates], rng: np.random.Generator) -> PaperPlan:
        words, cheap = site.candidates.words, site.candidates.log_cheap
        top = np.argsort(-(cheap + rng.gumbel(size=cheap.shape)), kind="stable")[: self._num_scored]
        return _paper_plan(site, tuple(words[i] for i in sorted(top)), rng)


def _paper_plan(site: Site[Candidates], words: Words, rng: np.random.Generator) -> PaperPlan:
    return PaperPlan(site, words, empty_filling(site, words), rng.gumbel(size=len(words)))


def empty_filling(site: Site[Candidates], words: Words) -> tuple[Words, ...]:
    """The empty filling, which a deletion scores as well."""
    return ((),) if site.action is Action.DELETE and words else ()


@dataclass(frozen=True)
class ExactPlan(WordPlan[Candidates]):
    """A draw from the candidates in proportion to the target, or with probability ``wide`` from the vocabulary."""

    wide: float = WIDE

    def propose(self, log_weights: Array, log_old: float) -> Proposal | None:
        if self.site.action in (Action.SWAP, Action.DELETE):
            return self.weigh(log_weights, log_old, None)
        is_narrow = np.isfinite(log_weights[: len(self.words)] + self.noise).any()
        word = self.drawn(log_weights) if is_narrow else self.extra[0][0]
        return self.weigh(log_weights, log_old, word)

    def weigh(self, log_weights: Array, log_old: float, word: str | None) -> Proposal:
        site, edit, log_extra = self.site, self.site.edit(word), float(log_weights[-1])
        if site.action is Action.SWAP:
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, 0.0, 0.0))
        among = log_weights[: len(self.words)]
        if word is None:
            back = self._log_drawn(among, site.old_word)
            return Proposal(edit, 0.0, hastings_log_ratio(log_extra, log_old, back, 0.0))
        drawn = self._log_drawn(among, word)
        log_new = float(among[self.words.index(word)]) if word in self.words else log_extra
        back = self._log_drawn(among, site.old_word) if site.action is Action.REPLACE else 0.0
        return Proposal(edit, drawn, hastings_log_ratio(log_new, log_old, back, drawn))

    def _log_drawn(self, among: Array, word: str) -> float:
        """Log-probability of drawing a word into the slot, whatever word is there now."""
        log_all = log_sum(among)
        wide = self.site.candidates.log_wide_of(word)
        if log_all == -np.inf:
            return wide  # no candidate is allowed: every draw is from the vocabulary
        words = self.site.candidates.words
        narrow = float(among[words.index(word)]) - log_all if word in words else -np.inf
        return float(np.logaddexp(np.log1p(-self.wide) + narrow, np.log(self.wide) + wide))


class ExactKernel:
    """Metropolis-Hastings that leaves the target unchanged.

    A word is drawn from the candidates in proportion to the target, or, with probability ``wide``, from the proposers'
    distribution over the whole vocabulary. So every word can be reached, and every word can be left.
    """

    actions = frozenset(Action)
    is_exact = True
    ratio_needs_prior = True
    visits_short_drafts = False

    def __init__(self, wide: float = WIDE):
        self._wide = wide

    def plan(self, site: Site[Candidates], rng: np.random.Generator) -> ExactPlan:
        if site.action in (Action.SWAP, Action.DELETE):
            return self.plan_given(site, ())
        words = site.candidates.words
        is_wide, noise = rng.random() < self._wide, rng.gumbel(size=len(words))
        wide_word = (site.candidates.draw_wide(rng),)
        noise = np.full(len(words), -np.inf) if is_wide else noise
        return ExactPlan(site, words, (wide_word,), noise, wide=self._wide)

    def plan_given(self, site: Site[Candidates], words: Words) -> ExactPlan:
        if site.action is Action.SWAP:
            return ExactPlan(site, (), swap_filling(site), wide=self._wide)
        extra = () if site.action is Action.DELETE else words
        return ExactPlan(site, site.candidates.words, (extra,), wide=self._wide)


def swap_filling(site: Site[Candidates]) -> tuple[Words, ...]:
    """A swap has one outcome and no words to draw."""
    return (site.sentence.filling(site.edit(None)),)
