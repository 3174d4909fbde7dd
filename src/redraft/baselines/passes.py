"""Bayesian MCMC and TIGS as systems: passes over the missing words of blanks of known lengths."""

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from redraft.assemble import NEEDS_CAUSAL, Models
from redraft.baselines.blank_beams import ToldSystem, blank_beam, prepared, random_filling
from redraft.baselines.gibbs import GibbsPasses
from redraft.baselines.gradient_search import GradientPasses
from redraft.blanks import Layout
from redraft.chain_writer import Track, chains_of, drafts_of
from redraft.drafts import Draft, Observer, Settings
from redraft.errors import InputError
from redraft.models.lstm.embeddings import EmbeddingSpace
from redraft.models.lstm.files import load_lstm, load_network
from redraft.models.pack import Pack
from redraft.models.xlnet.network import ReadingOrder
from redraft.predict.prior import UniformPrior
from redraft.recipes import GibbsRecipe, GradientRecipe, Overrides, PassRecipe
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler, State, Step
from redraft.sentence import ENDING, FREE, Action, Constraints, Sentence
from redraft.target import Target, power_of
from redraft.version import VERSION
from redraft.writer import Shaping, Writer


class PassMethod(Protocol):
    """Revises missing words, one word of every chain at a time."""

    @property
    def target(self) -> Target:
        """What ranks the sentences."""

    @property
    def patience(self) -> int | None:
        """How many passes without a change end a chain; None if none do."""

    def with_power(self, power: float) -> "PassMethod":
        """The same towards the target with another power."""

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """Blanks filled for a start."""

    def revise(self, chains: Sequence[Chain], states: Sequence[State], positions: Sequence[int]) -> list[Step]:
        """Revise the word at a position of each chain."""


@dataclass
class _Walk:
    """A chain on its way: its state, what it did, and how many passes have changed nothing."""

    chain: Chain
    state: State
    track: Track
    num_still: int = 0


class PassWriter(Writer):
    """Passes over the missing words, all chains together. A step of the settings is a pass."""

    pack: Pack

    def __init__(self, pack: Pack, recipe: PassRecipe, method: PassMethod):
        self.pack, self.recipe, self._method = pack, recipe, method

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, all their chains advanced together."""
        if not inputs:
            return []
        given = prepared(self.recipe.name, inputs)
        settings = self.complete(settings or Settings())
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        chains = chains_of(given, settings, seed, numbers)
        started = time.monotonic()
        ends = started + settings.time_limit * len(inputs) if settings.time_limit else math.inf
        tracks = self._run(chains, settings, ends, observe)
        seconds = (time.monotonic() - started) / len(inputs)
        return drafts_of(tracks, settings, seconds, self.signature(settings, seed))

    def _run(self, chains: Sequence[Chain], settings: Settings, ends: float, observe: Observer | None) -> list[Track]:
        walks = []
        for chain, state in zip(chains, self._method.init(chains), strict=True):
            track = Track(chain.constraints, self._method.target, settings.num_drafts, state.sentence)
            track.visit(state)
            walks.append(_Walk(chain, state, track))
        tracks = [walk.track for walk in walks]
        for number in range(1, (settings.steps or 0) + 1):
            best = min((track.best[0] for track in tracks), key=lambda one: one.rank)
            in_time = time.monotonic() <= ends
            if not in_time or (observe is not None and not observe(number - 1, best.sentence, best.nll)):
                break
            self._pass([walk for walk in walks if walk.num_still != self._method.patience], ends)
            if number in settings.checkpoints:
                for track in tracks:
                    track.mark(number)
        return tracks

    def _pass(self, walks: Sequence[_Walk], ends: float) -> None:
        """Revise every missing word of every chain once, from left to right."""
        places = [_revisable(walk.chain.constraints, walk.state.sentence) for walk in walks]
        before = [walk.state.sentence.words for walk in walks]
        for turn in range(max(map(len, places), default=0)):
            if time.monotonic() > ends:
                return
            able = [(walk, some[turn]) for walk, some in zip(walks, places, strict=True) if turn < len(some)]
            steps = self._method.revise(
                [walk.chain for walk, _ in able], [walk.state for walk, _ in able], [position for _, position in able]
            )
            for (walk, _), (state, revision) in zip(able, steps, strict=True):
                walk.state = state
                if revision is not None:
                    walk.track.trace.append(revision)
                    if revision.accepted:
                        walk.track.visit(state)
        for walk, words in zip(walks, before, strict=True):
            walk.track.steps += 1
            walk.num_still = walk.num_still + 1 if walk.state.sentence.words == words else 0

    def complete(self, settings: Settings) -> Settings:
        """The settings, with the recipe's number of passes where none is given."""
        if settings.passes is not None:
            return replace(settings, steps=settings.passes, passes=None)
        return settings if settings.steps is not None else replace(settings, steps=self.recipe.steps)

    def at_temperature(self, temperature: float) -> "PassWriter":
        """The same writer at another temperature."""
        writer = self._copy(temperature)
        writer._method = self._method.with_power(power_of(temperature))
        return writer

    def signature(self, settings: Settings, seed: int) -> str:
        """Version, recipe, models, settings and seed."""
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "passes": settings.steps,
            "candidates": self.recipe.num_candidates,
            "target": self._method.target.name,
            "chains": settings.num_chains,
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **settings.signed_drafts,
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def _revisable(constraints: Constraints, sentence: Sentence) -> list[int]:
    """The positions of the missing words; an ending is revised only if there is a choice."""
    has_choice = len(constraints.allowed_endings) > 1
    return [at for at, lock in enumerate(sentence.locks) if lock == FREE or (lock == ENDING and has_choice)]


@dataclass(frozen=True)
class GibbsSystem(ToldSystem):
    """Bayesian MCMC: Gibbs steps towards the forward LSTM of a pack; both models propose."""

    recipe: GibbsRecipe

    @property
    def orders(self) -> tuple[ReadingOrder, ...]:
        """Both."""
        return ReadingOrder.FORWARD, ReadingOrder.BACKWARD

    def override(self, given: Overrides) -> "GibbsSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """The writer, with the models of a pack."""
        shaping.refuse_style(self.recipe)
        if shaping.context:
            raise InputError(NEEDS_CAUSAL)
        models = Models(pack)
        candidates = CandidateGenerator([models.forward, models.backward], self.recipe.num_candidates)
        target = Target(models.forward, shaping.power, shaping.soft)
        sampler = Sampler(target, candidates, UniformPrior(), PaperKernel(), frozenset({Action.REPLACE}))
        return PassWriter(pack, self.recipe, GibbsPasses(sampler, random_filling(pack)))


@dataclass(frozen=True)
class GradientSystem(ToldSystem):
    """TIGS with the forward LSTM of a pack."""

    recipe: GradientRecipe

    def override(self, given: Overrides) -> "GradientSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """The writer, with the models of a pack."""
        self.refuse_shaping(shaping)
        start = _greedy(pack) if self.recipe.starts_greedy else _random(pack)
        method = GradientPasses(
            load_lstm(pack, "forward"),
            EmbeddingSpace(load_network(pack, "forward")[0]),
            start,
            num_nearest=self.recipe.num_candidates,
            rate=self.recipe.rate,
        )
        return PassWriter(pack, self.recipe, method)


def _random(pack: Pack) -> Callable[[Chain], Sentence]:
    words = random_filling(pack)
    return lambda chain: words.fill(Layout.of(chain.constraints), chain.constraints, chain.rng)


def _greedy(pack: Pack) -> Callable[[Chain], Sentence]:
    """The likeliest word at each place, from left to right: a beam of one. Random words if that leads nowhere."""
    beam, otherwise = blank_beam(pack, ReadingOrder.FORWARD, 1), _random(pack)

    def start(chain: Chain) -> Sentence:
        found = beam.find(Layout.of(chain.constraints), chain.constraints)
        return found[0] if found else otherwise(chain)

    return start
