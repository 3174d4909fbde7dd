"""Rewriting: new words for a stretch of free words, given all other words, accepted by Metropolis-Hastings.

The model draws several versions of the stretch without seeing the current one, so they and the current one have the
same proposal distribution: independent multiple-try Metropolis (Liu, Liang and Wong, 2000; Martino and Read, 2013).
With one try this is the ordinary Metropolis-Hastings rule. A version's weight is

    w = target(sentence) x P(the stretch is chosen in it) / P(drawing it)

One is chosen in proportion to w and accepted with min(1, W / (W - w + w_old)), where W sums over all new versions.

Where given words have several forms, some steps vary the form of one instead: it is drawn in proportion to the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from redraft.models.base import Words
from redraft.numerics import Array, accept, draw, log_sum, log_uniform
from redraft.sentence import Action, Constraints, Edit, Sentence
from redraft.stretches import Stretch

_VARIES = 0.25  # how often a given part is varied, where one can be


class Version(Protocol):
    """A sentence with a rewritten stretch, and the log-probability of drawing it."""

    @property
    def sentence(self) -> Sentence: ...

    @property
    def log_drawn(self) -> float: ...


class StretchWriter(Protocol):
    """Writes new versions of stretches."""

    def rewrite(
        self, constraints: Constraints, sentence: Sentence, stretch: Stretch, rng: np.random.Generator, num: int
    ) -> tuple[Sequence[Version], float]:
        """Up to ``num`` independent draws, and the log-probability of drawing the current words."""


class StretchChoice(Protocol):
    """Chooses where to rewrite."""

    def draw(self, sentence: Sentence, constraints: Constraints, rng: np.random.Generator) -> Stretch | None: ...

    def log_probs(
        self, sentences: Sequence[Sentence], stretches: Sequence[Stretch], constraints: Constraints
    ) -> Array: ...


class SentenceTarget(Protocol):
    """The distribution to sample from."""

    def log_targets(self, constraints: Constraints, sentences: Sequence[Sentence]) -> Array:
        """Log target weights; -inf for sentences that break a constraint."""


class RewriteState(NamedTuple):
    """A chain between two rewrites."""

    sentence: Sentence
    log_target: float


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a step did: the stretch, its words before and after it, and the log of the acceptance ratio."""

    start: int
    old: Words
    new: Words
    log_ratio: float
    accepted: bool
    words: Words  # of the sentence after the step


class Rewriter:
    """Takes one rewriting step at a time."""

    def __init__(self, writer: StretchWriter, where: StretchChoice, target: SentenceTarget, tries: int):
        self._writer, self._where, self._target, self._tries = writer, where, target, tries

    def init(self, constraints: Constraints, sentence: Sentence) -> RewriteState:
        return RewriteState(sentence, float(self._target.log_targets(constraints, [sentence])[0]))

    def step(
        self, constraints: Constraints, state: RewriteState, rng: np.random.Generator
    ) -> tuple[RewriteState, Rewrite | None]:
        """Rewrite a stretch or vary a given part. No ``Rewrite`` if there was no other version to choose."""
        varies = constraints.has_forms and rng.random() < _VARIES
        return (self._vary if varies else self._rewrite)(constraints, state, rng)

    def _vary(
        self, constraints: Constraints, state: RewriteState, rng: np.random.Generator
    ) -> tuple[RewriteState, Rewrite | None]:
        """Draw the realisation of a given part again, in proportion to the target. It is always accepted.

        Varying changes neither which parts a sentence has nor how many, so the part is drawn uniformly.
        """
        old = state.sentence
        parts = [i for i in range(len(old)) if old.starts_part(i) and len(constraints.parts[old.locks[i]].distinct) > 1]
        if not parts:
            return state, None
        at = parts[int(rng.integers(len(parts)))]
        start, end = old.span(Action.VARY, at)
        realisations = constraints.parts[old.locks[at]].distinct
        versions = [old.apply(Edit(Action.VARY, at, " ".join(words))) for words in realisations]
        log_targets = self._target.log_targets(constraints, versions)
        chosen = draw(log_targets, rng)
        new, words = versions[chosen], realisations[chosen]
        if new.words == old.words:
            return state, None
        made = Rewrite(start, old.words[start:end], words, 0.0, True, new.words)
        return RewriteState(new, float(log_targets[chosen])), made

    def _rewrite(
        self, constraints: Constraints, state: RewriteState, rng: np.random.Generator
    ) -> tuple[RewriteState, Rewrite | None]:
        """Propose a new version of a stretch. No ``Rewrite`` if nothing may be written or no version was completed."""
        old = state.sentence
        stretch = self._where.draw(old, constraints, rng)
        log_level = log_uniform(rng)
        if stretch is None:
            return state, None
        versions, log_old_drawn = self._writer.rewrite(constraints, old, stretch, rng, self._tries)
        if not versions:
            return state, None
        log_targets = self._target.log_targets(constraints, [one.sentence for one in versions])
        sentences = [old, *(one.sentence for one in versions)]
        log_weights = self.log_weights(
            constraints,
            sentences,
            stretch,
            np.array([state.log_target, *log_targets]),
            np.array([log_old_drawn, *(one.log_drawn for one in versions)]),
        )
        if not np.isfinite(log_weights[1:]).any():
            return state, None
        chosen = draw(log_weights[1:], rng)
        log_ratio = log_acceptance(log_weights, chosen)
        new = sentences[1 + chosen]
        accepted = accept(log_ratio, log_level) and new.words != old.words
        after = RewriteState(new, float(log_targets[chosen])) if accepted else state
        moved = stretch.moved_to(old, new)
        made = Rewrite(
            stretch.start,
            old.words[stretch.start : stretch.end],
            new.words[moved.start : moved.end],
            log_ratio,
            accepted,
            after.sentence.words,
        )
        return after, made

    def log_weights(
        self,
        constraints: Constraints,
        sentences: Sequence[Sentence],
        stretch: Stretch,
        log_targets: Array,
        log_drawn: Array,
    ) -> Array:
        """The log weights of versions of a stretch. The first sentence is the current one."""
        stretches = [stretch.moved_to(sentences[0], one) for one in sentences]
        log_chosen = self._where.log_probs(sentences, stretches, constraints)
        log_outside = np.full(len(sentences), -np.inf)  # of the target; a chain may start there
        with np.errstate(invalid="ignore"):
            # A version that cannot be drawn again can never be left: its weight is infinite.
            return np.asarray(np.where(log_targets == -np.inf, log_outside, log_targets + log_chosen - log_drawn))


def log_acceptance(log_weights: Array, chosen: int) -> float:
    """Log of W / (W - w + w_old) from the weight of the old version and those of the new ones."""
    new = log_weights[1:]
    others = np.append(np.delete(new, chosen), log_weights[0])
    if np.isposinf(others).any():
        return -np.inf
    return log_sum(new) - log_sum(others)
