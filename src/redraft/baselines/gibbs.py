"""Bayesian MCMC (Berglund et al., 2015): blanks of known length, whose words are drawn one after the other.

A word is drawn in proportion to the probability of the sentence with it, under the forward model: a Gibbs step. It is
drawn among the K likeliest words by both models. If K covers the vocabulary, the chain leaves the target unchanged.
"""

from collections.abc import Sequence

import numpy as np

from redraft.blanks import Layout
from redraft.draft.fillable import RandomFilling
from redraft.numerics import log_uniform
from redraft.predict.prior import Move
from redraft.sampler import Chain, Sampler, State, Step
from redraft.sentence import Action
from redraft.target import Target

_NO_TABLE = np.empty((0, 0))  # the place is not drawn, so there is no prior


class GibbsPasses:
    """Passes of Gibbs steps over the missing words, from random ones on."""

    patience: int | None = None  # a chain never comes to rest

    def __init__(self, sampler: Sampler, start: RandomFilling):
        self._sampler, self._start = sampler, start

    @property
    def target(self) -> Target:
        """The target of the sampler."""
        return self._sampler.target

    def with_power(self, power: float) -> "GibbsPasses":
        """The same towards the target with another power."""
        return GibbsPasses(self._sampler.with_power(power), self._start)

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """Blanks filled with random words."""
        sentences = [self._start.fill(Layout.of(one.constraints), one.constraints, one.rng) for one in chains]
        return self._sampler.read(chains, sentences)

    def revise(self, chains: Sequence[Chain], states: Sequence[State], positions: Sequence[int]) -> list[Step]:
        """A Gibbs step for one word of each chain."""
        moves = [Move(Action.REPLACE, position) for position in positions]
        log_levels = [log_uniform(chain.rng) for chain in chains]
        return self._sampler.revise(chains, states, [_NO_TABLE] * len(chains), moves, log_levels)
