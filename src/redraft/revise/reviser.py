"""STEP 2 of the paper as one object: candidates for moves, and a kernel's plans to draw among them."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from redraft.models.base import Reader, Slot, Words
from redraft.revise.candidates import Candidates, CandidateSource
from redraft.revise.kernels import EnumerableKernel, Kernel, Plan, Site
from redraft.revise.vary import VaryPlan
from redraft.sentence import Action, Constraints, Sentence

SomeT = TypeVar("SomeT", bound=Candidates)
ActionAt = tuple[Action, int]  # an action and its position


class Reviser(Protocol):
    """A source of candidates together with a kernel that accepts them, as the sampler sees them."""

    @property
    def readers(self) -> Sequence[Reader]: ...

    def plans(
        self,
        sentences: Sequence[Sentence],
        moves: Sequence[ActionAt],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
        rngs: Sequence[np.random.Generator],
    ) -> Sequence[Plan]:
        """A plan for each move, all its noise drawn."""

    def plans_given(
        self,
        sentences: Sequence[Sentence],
        moves: Sequence[ActionAt],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
        words: Sequence[Words],
    ) -> Sequence[Plan]:
        """A plan for each move whose random words are given."""


class KernelReviser(Generic[SomeT]):
    """A source of candidates and a matching kernel: a kernel of two stages needs scored candidates."""

    def __init__(self, source: CandidateSource[SomeT], kernel: Kernel[SomeT]):
        self._source, self._kernel = source, kernel

    @property
    def readers(self) -> Sequence[Reader]:
        return self._source.readers

    def plans(
        self,
        sentences: Sequence[Sentence],
        moves: Sequence[ActionAt],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
        rngs: Sequence[np.random.Generator],
    ) -> list[Plan]:
        sites = self._sites(sentences, moves, slots, constraints, readings)
        return [
            VaryPlan.of(site, given, rng) if site.action is Action.VARY else self._kernel.plan(site, rng)
            for site, given, rng in zip(sites, constraints, rngs, strict=True)
        ]

    def plans_given(
        self,
        sentences: Sequence[Sentence],
        moves: Sequence[ActionAt],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
        words: Sequence[Words],
    ) -> list[Plan]:
        kernel = self._kernel
        if not isinstance(kernel, EnumerableKernel):
            raise TypeError(f"the proposals of {type(kernel).__name__} cannot be enumerated")
        sites = self._sites(sentences, moves, slots, constraints, readings)
        return [
            VaryPlan.of(site, one, None) if site.action is Action.VARY else kernel.plan_given(site, given)
            for site, one, given in zip(sites, constraints, words, strict=True)
        ]

    def _sites(
        self,
        sentences: Sequence[Sentence],
        moves: Sequence[ActionAt],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> list[Site[SomeT]]:
        found = self._source.candidates(sentences, slots, constraints, readings)
        return [
            Site(sentence, action, position, one)
            for sentence, (action, position), one in zip(sentences, moves, found, strict=True)
        ]
