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
from redraft.errors import InputError
from redraft.models.pack import DEFAULT, Pack, open_pack
from redraft.recipes import Recipe
from redraft.sampler import Chain, Revision, Sampler, State
from redraft.sentence import Constraints, Order, Sentence, clean
from redraft.target import SoftScore, Target
from redraft.text import is_word
from redraft.version import VERSION


@dataclass(frozen=True)
class Settings:
    """How long to work. Steps are the recipe's if none are given; a seed is drawn, and named in the signature.

    ``time_limit`` is in seconds for each input: several that are written together have the sum of theirs.
    ``checkpoints`` are steps after which the best draft so far is kept as well; they change no draw.
    """

    steps: int | None = None
    chains: int = 1
    num: int = 1
    seed: int | None = None
    time_limit: float | None = None
    checkpoints: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("chains", 1), ("num", 1)):
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"the time limit must be more than 0 seconds, not {self.time_limit}")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"the seed must not be negative, not {self.seed}")

    @property
    def num_chains(self) -> int:
        """At least one for every draft that is asked for."""
        return max(self.chains, self.num)


@dataclass(frozen=True)
class Earlier:
    """The best draft of a chain after fewer steps."""

    steps: int
    text: str
    nll: float


@dataclass(frozen=True)
class Draft:
    """A finished sentence. ``nll`` is per word under the target, ``steps`` are those of its chain.

    ``trace`` tells the chain's revisions from its ``start`` on.
    """

    text: str
    words: tuple[str, ...]
    nll: float
    steps: int
    seconds: float
    constraints_met: bool
    signature: str
    trace: tuple[Revision, ...] = field(repr=False)
    start: Sentence | None = field(default=None, repr=False)
    earlier: tuple[Earlier, ...] = field(default=(), repr=False)


class _Visited(NamedTuple):
    """A sentence of a chain, and by what it is ranked: what is missing in length, then what it costs."""

    shortfall: int
    cost: float
    nll: float
    sentence: Sentence

    @property
    def rank(self) -> tuple[int, float]:
        return self.shortfall, self.cost


Observer = Callable[[int, Sentence, float], bool]  # step, best draft so far, its nll; false ends the work


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


class Writer:
    """Models, ready to write. Make one with ``redraft.load()``."""

    def __init__(self, pack: Pack, recipe: Recipe, sampler: Sampler, drafter: GridBeam | None = None):
        self.pack, self.recipe, self.sampler, self._drafter = pack, recipe, sampler, drafter

    def generate(
        self,
        *keywords: str,
        order: str = "given",
        ban: Sequence[str] = (),
        min_words: int | None = None,
        max_words: int | None = None,
        settings: Settings | None = None,
    ) -> Draft:
        """A sentence with the given words or phrases in it."""
        constraints = Constraints(keywords, None, Order.named(order), _several(ban), min_words, max_words)
        return self.write(constraints, settings)[0]

    def infill(
        self, template: str, *, ban: Sequence[str] = (), max_words: int | None = None, settings: Settings | None = None
    ) -> Draft:
        """The template with its blanks (``___``) filled."""
        return self.write(Constraints(template=template, banned=_several(ban), max_words=max_words), settings)[0]

    def write(
        self, constraints: Constraints, settings: Settings | None = None, observe: Observer | None = None
    ) -> list[Draft]:
        """``settings.num`` different drafts for one input, best first."""
        return self.write_many([constraints], settings, observe=observe)[0]

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, all their chains advanced together.

        An input's draws hang on the seed and on its number (by default its place), not on its neighbours.
        """
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

    def could_sign(self, signature: str, settings: Settings) -> bool:
        """Whether a draft with this signature comes from the same models and settings; any seed where none is set."""
        settings = self.complete(settings)
        seed = signature.rpartition("seed:")[2]
        return (
            seed.isdigit() and settings.seed in (None, int(seed)) and signature == self._signature(settings, int(seed))
        )

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


def _several(words: Sequence[str]) -> tuple[str, ...]:
    """A lone text is one word, not its letters."""
    return (words,) if isinstance(words, str) else tuple(words)


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
) -> Writer:
    """A writer with the models of a pack (a name or a folder), working by a recipe: the best there is by default.

    ``target`` is a causal model that decides instead of the recipe's: "smollm2", a hub name, a folder, a .gguf file. It
    scores ``num_scored`` of the ``num_candidates`` of a step, and reads sentences after a ``context``. ``kernel`` is
    "paper" or "exact"; ``generator`` says who suggests words: "forward", "backward", "both" or "masked". ``power`` (1 /
    temperature) and ``soft`` scores shape the target.
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
    )
    return open_writer(opened, chosen, power=power, soft=tuple(soft), context=context)


def open_writer(
    pack: Pack, recipe: Recipe, *, power: float = 1.0, soft: tuple[SoftScore, ...] = (), context: str = ""
) -> Writer:
    """A writer that works by a recipe, with the models of a pack."""
    context = clean(context, "the context")
    sampler = recipes.build(recipe, pack, power=power, soft=soft, context=context)
    return Writer(pack, recipe, sampler, recipes.build_drafter(recipe, pack, sampler, context))
