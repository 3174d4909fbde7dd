"""Grid beam search (Hokamp and Liu, 2017) as a system of its own: the best sentence of the search, nothing revised."""

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from redraft.assemble import NEEDS_CAUSAL, Models, build_beam
from redraft.chain_writer import Track, chains_of, drafts_of
from redraft.draft.grid_beam import Language
from redraft.drafts import Draft, Observer, Settings, refuse_passes
from redraft.errors import InputError
from redraft.models.pack import Pack
from redraft.recipes import BeamRecipe, Overrides, Recipe
from redraft.sampler import Chain, State
from redraft.scoring import log_weights
from redraft.sentence import Constraints, Sentence
from redraft.target import Target, power_of
from redraft.version import VERSION
from redraft.writer import Shaping, Writer, WritingSystem


class SentenceSearch(Protocol):
    """A search for the best sentences that meet constraints."""

    @property
    def width(self) -> int:
        """The width of the beam."""

    def ranked(self, chain: Chain, num: int, in_time: Callable[[], bool]) -> list[Sentence]:
        """The best ``num`` sentences, or fewer if it finds no more. Those that are too short come last.

        The search may end early once it is no longer ``in_time``.
        """


class BeamWriter(Writer):
    """Beam search. Each chain is a search of its own, with noise of its own if the search adds any."""

    pack: Pack

    def __init__(self, pack: Pack, recipe: Recipe, target: Target, beam: SentenceSearch):
        self.pack, self.recipe, self._target, self._beam = pack, recipe, target, beam

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, one search after the other."""
        if not inputs:
            return []
        settings = self.complete(settings or Settings())
        if settings.steps:
            raise InputError(f"recipe {self.recipe.name} revises nothing, so --steps {settings.steps} has no meaning")
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        chains = chains_of(inputs, settings, seed, numbers)
        started = time.monotonic()
        ends = started + settings.time_limit * len(inputs) if settings.time_limit else math.inf
        found = self._search(chains, settings, ends)
        tracks = [Track(chain.constraints, self._target, settings.num_drafts) for chain in chains]
        visits = [(i, sentence) for i, some in enumerate(found) for sentence in some]
        states = self._states([chains[i] for i, _ in visits], [sentence for _, sentence in visits])
        for (i, _), state in zip(visits, states, strict=True):
            tracks[i].start = tracks[i].start or state.sentence
            tracks[i].visit(state)
        seconds = (time.monotonic() - started) / len(inputs)
        return drafts_of(tracks, settings, seconds, self.signature(settings, seed))

    def _search(self, chains: Sequence[Chain], settings: Settings, ends: float) -> list[list[Sentence]]:
        """Sentences for every chain; the given words alone once the time is up.

        Every input is searched once before any input is searched again.
        """

        def in_time() -> bool:
            return time.monotonic() <= ends

        found: dict[int, list[Sentence]] = {}
        for i in sorted(range(len(chains)), key=lambda i: i % settings.num_chains):
            chain, num = chains[i], settings.num_drafts
            best, *others = self._beam.ranked(chain, num, in_time) if in_time() else [self._unsearched(chain)]
            found[i] = [best, *(one for one in others if chain.constraints.met_by(one.words))]
        return [found[i] for i in range(len(chains))]

    def _unsearched(self, chain: Chain) -> Sentence:
        """What there is without a search: the given words alone."""
        return chain.constraints.start(chain.rng)

    def _states(self, chains: Sequence[Chain], sentences: Sequence[Sentence]) -> list[State]:
        """The sentences with their scores."""
        target, words = self._target, [sentence.words for sentence in sentences]
        readings = target.scorer.read(words, [None] * len(words))
        states = []
        for chain, sentence, reading in zip(chains, sentences, readings, strict=True):
            log_prob = target.scorer.log_prob(reading)
            (log_target,) = log_weights(
                target, chain.constraints, np.array([log_prob]), [sentence.words], allows_short=True
            )
            states.append(State(sentence, log_prob, float(log_target), (reading,)))
        return states

    def complete(self, settings: Settings) -> Settings:
        """The settings, without steps where none are given."""
        refuse_passes(settings, self.recipe.name)
        return settings if settings.steps is not None else replace(settings, steps=0)

    def at_temperature(self, temperature: float) -> "BeamWriter":
        """The same search, its sentences ranked at another temperature."""
        writer = self._copy(temperature)
        writer._target = replace(self._target, power=power_of(temperature))
        return writer

    def signature(self, settings: Settings, seed: int) -> str:
        """Version, recipe, models, settings and seed."""
        precision = self._target.scorer.precision
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "beam": self._beam.width,
            "target": self._target.name,
            **({} if precision == "float32" else {"precision": precision}),
            "chains": settings.num_chains,
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **settings.signed_drafts,
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


@dataclass(frozen=True)
class BeamSystem(WritingSystem):
    """Grid beam search by the forward LSTM of a pack, or by a causal model."""

    recipe: BeamRecipe

    @property
    def needs(self) -> list[str]:
        """The forward LSTM, and a causal target if it has one."""
        return ["a forward LSTM model", *([] if self.recipe.target is None else [self.recipe.target])]

    def missing(self, pack: Pack) -> list[str]:
        """The forward model, if the pack lacks it."""
        return [] if "forward" in pack.parts else ["forward"]

    def override(self, given: Overrides) -> "BeamSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """The writer, with the models of a pack."""
        shaping.refuse_style(self.recipe)
        models = Models(pack)
        model: Language = models.forward
        if self.recipe.target is not None:
            model = models.causal(self.recipe.target, shaping.context)
        elif shaping.context:
            raise InputError(NEEDS_CAUSAL)
        beam = build_beam(model, self.recipe.width, shaping, is_plain=self.recipe.is_plain)
        return BeamWriter(pack, self.recipe, Target(model, shaping.power, shaping.soft), beam)
