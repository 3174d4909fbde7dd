"""The front door of the library: a writer turns constraints into drafts."""

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from redraft import recipes
from redraft.drafting import GridBeam
from redraft.drafts import Author, Draft, Earlier, Observer, Settings
from redraft.errors import InputError
from redraft.infill_writer import InfillWriter
from redraft.models.causal.infiller import INFILLER, load_infiller
from redraft.models.causal.prompts import DEFAULT_STYLE
from redraft.models.lstm.files import load_words
from redraft.models.pack import DEFAULT, Pack, open_pack, require
from redraft.recipes import Recipe
from redraft.sampler import Chain, Revision, Sampler, State
from redraft.sentence import Constraints, Sentence, clean
from redraft.target import SoftScore, Target
from redraft.text import capitalise, is_word
from redraft.version import VERSION


class _Visited(NamedTuple):
    """A sentence of a chain, and by what it is ranked: what is missing in length, then what it costs."""

    shortfall: int
    cost: float
    nll: float
    sentence: Sentence

    @property
    def rank(self) -> tuple[int, float]:
        return self.shortfall, self.cost


@dataclass
class _Track:
    """The best sentences that one chain has visited, and what it did."""

    constraints: Constraints
    target: Target
    keep: int
    start: Sentence | None = None
    trace: list[Revision] = field(default_factory=list)
    steps: int = 0
    best: list[_Visited] = field(default_factory=list)
    earlier: list[Earlier] = field(default_factory=list)

    def visit(self, state: State) -> None:
        """Rank first by what is missing in length, then by the target: NLL per word, unless shaped (line 12)."""
        cost = self.target.cost(state.log_prob, state.log_target, len(state.sentence))
        shortfall = self.constraints.shortfall(state.sentence, self.target.length)
        visited = _Visited(shortfall, cost, state.nll, state.sentence)
        if all(visited.sentence.words != kept.sentence.words for kept in self.best):
            self.best = sorted([*self.best, visited], key=lambda one: one.rank)[: self.keep]

    def mark(self) -> None:
        """Keep the best so far."""
        best = self.best[0]
        self.earlier.append(Earlier(self.steps, best.sentence.text, best.nll))


_GoesOn = Callable[[int, Sequence[_Track]], bool]


def _walk(
    sampler: Sampler,
    chains: Sequence[Chain],
    states: list[State],
    tracks: Sequence[_Track],
    steps: int,
    checkpoints: Sequence[int],
    goes_on: _GoesOn,
) -> None:
    """Take chains some steps on, and keep track of them."""
    for track, state in zip(tracks, states, strict=True):
        track.start = state.sentence
        track.visit(state)
    for step in range(steps):
        if not goes_on(step, tracks):
            break
        results = sampler.step(chains, states)
        states = [state for state, _ in results]
        for track, (state, revision) in zip(tracks, results, strict=True):
            track.steps += 1
            if revision is not None:
                track.trace.append(revision)
                if revision.accepted:
                    track.visit(state)
            if track.steps in checkpoints:
                track.mark()


class Writer(Author):
    """Models, ready to write. Make one with ``redraft.load()``."""

    def __init__(self, pack: Pack, recipe: Recipe, sampler: Sampler, drafter: GridBeam | None = None):
        self.pack, self.recipe, self.sampler, self._drafter = pack, recipe, sampler, drafter

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
        settings = self.complete(settings or Settings())
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        num_chains = settings.num_chains
        chains = [
            Chain(constraints, np.random.default_rng((seed, number, c)))
            for number, constraints in zip(numbers or range(len(inputs)), inputs, strict=True)
            for c in range(num_chains)
        ]
        started = time.monotonic()
        ends = started + settings.time_limit * len(inputs) if settings.time_limit else math.inf
        tracks = self._run(chains, settings, ends, observe)
        seconds = (time.monotonic() - started) / max(1, len(inputs))
        signature = self._signature(settings, seed)
        return [
            _drafts(tracks[i * num_chains : (i + 1) * num_chains], settings.num, seconds, signature)
            for i in range(len(inputs))
        ]

    def _run(self, chains: Sequence[Chain], settings: Settings, ends: float, observe: Observer | None) -> list[_Track]:
        def in_time() -> bool:
            return time.monotonic() <= ends

        def goes_on(step: int, tracks: Sequence[_Track]) -> bool:
            best = min((track.best[0] for track in tracks), key=lambda one: one.rank)
            return in_time() and (observe is None or observe(step, best.sentence, best.nll))

        tracks = [_Track(chain.constraints, self.sampler.target, settings.num) for chain in chains]
        states = self._start(chains, settings.num_chains, in_time)
        _walk(self.sampler, chains, states, tracks, settings.steps or 0, settings.checkpoints, goes_on)
        return tracks

    def _start(self, chains: Sequence[Chain], num_chains: int, in_time: Callable[[], bool]) -> list[State]:
        """The constraints alone, or a draft with them as long as there is time to search for one.

        Every input has a draft before one has its second.
        """
        if self._drafter is None:
            return self.sampler.init(chains)
        drafts: dict[int, Sentence] = {}
        for i in sorted(range(len(chains)), key=lambda i: i % num_chains):
            drafts[i] = self._drafter.draft(chains[i]) if in_time() else chains[i].constraints.start(chains[i].rng)
        return self.sampler.read(chains, [drafts[i] for i in range(len(chains))])

    def complete(self, settings: Settings) -> Settings:
        """Settings with the recipe's number of steps where none is given."""
        return settings if settings.steps is not None else replace(settings, steps=self.recipe.steps)

    def _num_steps(self, settings: Settings) -> str:
        return f"{settings.steps} after beam {self._drafter.width}" if self._drafter else f"{settings.steps}"

    @property
    def _num_candidates(self) -> str:
        scored = self.recipe.num_scored
        return f"{self.recipe.num_candidates}" if scored is None else f"{scored} of {self.recipe.num_candidates}"

    def _signature(self, settings: Settings, seed: int) -> str:
        precision = self.sampler.target.scorer.precision
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "steps": self._num_steps(settings),
            "candidates": self._num_candidates,
            "generator": self.recipe.generator.value,
            "kernel": self.recipe.kernel.value,
            "target": self.sampler.target.name,
            **({} if precision == "float32" else {"precision": precision}),
            "chains": settings.num_chains,
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **({"drafts": settings.num} if settings.num > 1 else {}),
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def _drafts(tracks: Sequence[_Track], num: int, seconds: float, signature: str) -> list[Draft]:
    entries = [(one, track) for track in tracks for one in track.best]
    return [
        Draft(
            text=one.sentence.text,
            words=one.sentence.words,
            nll=one.nll,
            steps=track.steps,
            seconds=seconds,
            constraints_met=track.constraints.met_by(one.sentence.words),
            signature=signature,
            trace=tuple(track.trace),
            start=track.start,
            earlier=tuple(track.earlier),
        )
        for one, track in _diverse(entries, num)
    ]


_Entry = tuple[_Visited, _Track]


def _diverse(entries: Sequence[_Entry], num: int) -> list[_Entry]:
    """The best entry, then again and again the one that is best after a fine for words it shares with those taken."""
    left = list({one.sentence.words: (one, track) for one, track in entries}.values())
    taken: list[_Entry] = []
    while left and len(taken) < num:
        fines = [max((_overlap(one, other) for other in taken), default=0.0) for one in left]
        ranks = [(one.shortfall, one.cost + fine) for (one, _), fine in zip(left, fines, strict=True)]
        chosen = left[ranks.index(min(ranks))]
        left.remove(chosen)
        taken.append(chosen)
    return taken


def _overlap(left: _Entry, right: _Entry) -> float:
    """Share of common words that no constraint asked for."""
    a, b = (
        {word for word, lock in zip(one.words, one.locks, strict=True) if lock < 0 and is_word(word)}
        for one in (left[0].sentence, right[0].sentence)
    )
    return len(a & b) / max(1, len(a | b))


def load(
    pack: str = DEFAULT,
    recipe: str | None = None,
    *,
    num_candidates: int | None = None,
    num_scored: int | None = None,
    kernel: str | None = None,
    generator: str | None = None,
    target: str | None = None,
    context: str = "",
    power: float = 1.0,
    soft: Sequence[SoftScore] = (),
    style: str | None = None,
    particles: int | None = None,
) -> Author:
    """A writer with the models of a pack (a name or a folder), working by a recipe: the best there is by default.

    ``target`` is a causal model that decides instead of the recipe's: "smollm2", a hub name, a folder, a .gguf file. It
    scores ``num_scored`` of the ``num_candidates`` of a step, and reads sentences after a ``context``. ``kernel`` is
    "paper" or "exact"; ``generator`` says who suggests words: "forward", "backward", "both" or "masked". ``power`` (1 /
    temperature) and ``soft`` scores shape the target. ``style`` is the kind of text that the infiller should write in,
    one of those that it was trained on; ``particles`` is how many sentences it writes to choose from.
    """
    opened = open_pack(pack)
    name = recipe or (recipes.default(opened) if target is None else recipes.own(opened))
    chosen = recipes.recipe(
        name,
        num_candidates=num_candidates,
        num_scored=num_scored,
        kernel=kernel,
        generator=generator,
        target=target,
        particles=particles,
    )
    return open_author(opened, chosen, power=power, soft=tuple(soft), context=context, style=style)


def open_author(
    pack: Pack,
    recipe: Recipe,
    *,
    power: float = 1.0,
    soft: tuple[SoftScore, ...] = (),
    context: str = "",
    style: str | None = None,
) -> Author:
    """A system that works by a recipe, with the models of a pack."""
    if recipe.particles:
        return _open_infiller(pack, recipe, power=power, soft=soft, context=context, style=style)
    if style is not None:
        raise InputError(f"recipe {recipe.name} has no styles; the recipe infiller has")
    return open_writer(pack, recipe, power=power, soft=soft, context=context)


def _open_infiller(
    pack: Pack, recipe: Recipe, *, power: float, soft: tuple[SoftScore, ...], context: str, style: str | None
) -> InfillWriter:
    require(pack, [INFILLER])
    model = load_infiller(pack.part_folder(INFILLER), context=clean(context, "the context"))
    styles = model.styles or (DEFAULT_STYLE,)
    if style is not None and style not in styles:
        known = ", ".join(styles)
        raise InputError(f"the infiller of pack {pack.name} has no style {style!r}; choose one of: {known}")
    return InfillWriter(
        pack,
        recipe,
        model,
        style=style or styles[0],
        temperature=1 / power,
        soft=soft,
        lowered=_lowered(pack),
        fallback=lambda: open_writer(pack, recipes.recipe(recipes.revising(pack)), power=power, soft=soft),
    )


def _lowered(pack: Pack) -> frozenset[str]:
    """Words that a pack's list, the most frequent first, has in small letters before it has them with a capital."""
    if "forward" not in pack.parts:
        return frozenset()
    rank = {word: i for i, word in enumerate(load_words(pack, "forward"))}
    return frozenset(word for word in rank if rank[word] < rank.get(capitalise(word), math.inf))


def open_writer(
    pack: Pack, recipe: Recipe, *, power: float = 1.0, soft: tuple[SoftScore, ...] = (), context: str = ""
) -> Writer:
    """A writer that works by a recipe, with the models of a pack."""
    context = clean(context, "the context")
    if recipe.particles:
        raise ValueError("the infiller is opened by load")
    sampler = recipes.build(recipe, pack, power=power, soft=soft, context=context)
    return Writer(pack, recipe, sampler, recipes.build_drafter(recipe, pack, sampler, context))
