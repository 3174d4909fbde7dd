"""Writing with chains: run Algorithm 1 for a number of steps, and return the best sentences that the chains visited."""

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from redraft.blanks import num_missing
from redraft.draft.grid_beam import GridBeam
from redraft.drafts import Draft, Earlier, JobProgress, Observer, Settings, WritingJob
from redraft.errors import InputError
from redraft.models.pack import Pack
from redraft.recipes import ChainRecipe
from redraft.sampler import Chain, Revision, Sampler, State
from redraft.sampling import BURN_IN, THIN, Samples, sample
from redraft.sentence import Constraints, Sentence
from redraft.target import Target, power_of
from redraft.text import is_word
from redraft.version import VERSION
from redraft.writer import Writer


class Visited(NamedTuple):
    """A sentence that a chain visited, and its rank: first the words or blanks that are missing, then the cost."""

    shortfall: int
    cost: float
    nll: float
    sentence: Sentence

    @property
    def rank(self) -> tuple[int, float]:
        return self.shortfall, self.cost


@dataclass
class Track:
    """The best sentences that one chain visited, and what it did."""

    constraints: Constraints
    target: Target
    keep: int
    start: Sentence | None = None
    trace: list[Revision] = field(default_factory=list)
    steps: int = 0
    best: list[Visited] = field(default_factory=list)
    earlier: list[Earlier] = field(default_factory=list)

    def visit(self, state: State) -> None:
        """Keep a sentence that is among the best: long enough first, then the lowest cost (line 12)."""
        cost = self.target.cost(state.log_prob, state.log_target, len(state.sentence))
        shortfall = self.constraints.shortfall(state.sentence, self.target.length)
        visited = Visited(shortfall, cost, state.nll, state.sentence)
        if all(visited.sentence.words != kept.sentence.words for kept in self.best):
            self.best = sorted([*self.best, visited], key=lambda one: one.rank)[: self.keep]

    def mark(self, steps: int) -> None:
        """Record the best draft so far at a checkpoint."""
        best = self.best[0]
        self.earlier.append(Earlier(steps, best.sentence.text, best.nll))


_GoingOn = Callable[[int, Sequence[Track], list[int]], list[int]]  # step, all tracks, chains; those that go on
_Groups = Callable[[Sequence[int]], Iterable[Sequence[int]]]
_CANDIDATES_TOGETHER = 400  # of the chains of a group: a tenth of a second


def steps_for(settings: Settings, constraints: Constraints) -> int:
    """The number of steps of a chain: that of the settings, or what its passes amount to."""
    if settings.passes is None:
        return settings.steps or 0
    return settings.passes * num_missing(constraints)


def _walk(
    sampler: Sampler,
    chains: Sequence[Chain],
    states: list[State],
    tracks: Sequence[Track],
    settings: Settings,
    going_on: _GoingOn,
    groups: _Groups,
) -> None:
    """Advance chains by the steps of the settings, and keep track of them. Chains of a group advance together."""
    limits = [steps_for(settings, chain.constraints) for chain in chains]
    for track, state in zip(tracks, states, strict=True):
        track.start = state.sentence
        track.visit(state)
    moving = list(range(len(chains)))
    for step in range(max(limits, default=0)):
        moving = [i for i in moving if step < limits[i]]
        if settings.until_settled:
            settled = sampler.is_settled([chains[i] for i in moving], [states[i] for i in moving])
            moving = [i for i, is_settled in zip(moving, settled, strict=True) if not is_settled]
        moving = going_on(step, tracks, moving) if moving else []
        if not moving:
            break
        for group in groups(moving):
            results = sampler.step([chains[i] for i in group], [states[i] for i in group])
            for i, (state, revision) in zip(group, results, strict=True):
                states[i], track = state, tracks[i]
                track.steps += 1
                if revision is not None:
                    track.trace.append(revision)
                    if revision.accepted:
                        track.visit(state)
                if track.steps in settings.checkpoints:
                    track.mark(track.steps)


class ChainWriter(Writer):
    """Writes with a sampler. ``drafter`` finds the sentences that chains start from; without it, the given words alone.

    ``exact`` opens the same sampler with the exact kernel, for drawing samples.
    """

    pack: Pack

    def __init__(
        self,
        pack: Pack,
        recipe: ChainRecipe,
        sampler: Sampler,
        drafter: GridBeam | None = None,
        exact: Callable[[], Sampler] | None = None,
    ):
        self.pack, self.recipe, self.sampler, self._drafter, self._exact = pack, recipe, sampler, drafter, exact

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Write drafts for several inputs. All their chains advance together."""
        if not inputs:
            return []
        settings = self._checked(settings, inputs)
        seed = secrets.randbits(32) if settings.seed is None else settings.seed
        chains = chains_of(inputs, settings, seed, numbers)
        started = time.monotonic()
        ends = started + settings.time_limit * len(inputs) if settings.time_limit else math.inf

        def going_on(step: int, tracks: Sequence[Track], moving: list[int]) -> list[int]:
            best = _best(tracks)
            return moving if observe is None or observe(step, best.sentence, best.nll) else []

        num_together = self._num_together if settings.time_limit else len(chains)
        tracks = self._run(chains, settings, ends, going_on, num_together)
        seconds = (time.monotonic() - started) / len(inputs)
        return drafts_of(tracks, settings, seconds, self.signature(settings, seed))

    def write_jobs(self, jobs: Sequence[WritingJob], settings: Settings | None = None) -> list[list[Draft]]:
        """Write drafts for jobs. All their chains advance together."""
        settings = self._checked(settings, [job.constraints for job in jobs])
        num = settings.num_chains
        chains = [chain for job in jobs for chain in _chains(job.constraints, num, job.seed, job.number)]
        started = time.monotonic()
        ends = started + settings.time_limit if settings.time_limit else math.inf

        def going_on(step: int, tracks: Sequence[Track], moving: list[int]) -> list[int]:
            at_work = sorted({i // num for i in moving})
            wanted = {at for at in at_work if jobs[at].watch(_progress(step, tracks[at * num : (at + 1) * num]))}
            return [i for i in moving if i // num in wanted]

        # Jobs have long time limits, which a step of all chains may exceed for the sake of speed.
        tracks = self._run(chains, settings, ends, going_on, max(1, len(chains)))
        seconds = (time.monotonic() - started) / max(1, len(jobs))
        for at, job in enumerate(jobs):  # the last step of each, after which nobody is asked
            ended = tracks[at * num : (at + 1) * num]
            job.watch(_progress(max(track.steps for track in ended), ended))
        return [
            _drafts(tracks[at * num : (at + 1) * num], settings.num_drafts, seconds, self.signature(settings, job.seed))
            for at, job in enumerate(jobs)
        ]

    def _checked(self, settings: Settings | None, inputs: Sequence[Constraints]) -> Settings:
        """The complete settings. Those that the inputs or the recipe cannot have are refused."""
        settings = self.complete(settings or Settings())
        for constraints in inputs:
            steps_for(settings, constraints)
        if settings.until_settled and not self.sampler.can_settle:
            raise InputError(
                f"recipe {self.recipe.name} has no classifier that could end a chain; use l-mcmc-c, x-mcmc-c or "
                "smollm2-mcmc-c, or a number of steps alone"
            )
        return settings

    def _run(
        self, chains: Sequence[Chain], settings: Settings, ends: float, going_on: _GoingOn, num_together: int
    ) -> list[Track]:
        def in_time() -> bool:
            return time.monotonic() <= ends

        def asked(step: int, tracks: Sequence[Track], moving: list[int]) -> list[int]:
            return going_on(step, tracks, moving) if in_time() else []

        def groups(moving: Sequence[int]) -> Iterator[Sequence[int]]:
            for first in range(0, len(moving), num_together):
                if first == 0 or in_time():
                    yield moving[first : first + num_together]

        tracks = [Track(chain.constraints, self.sampler.target, settings.num_drafts) for chain in chains]
        states = self._start(chains, settings.num_chains, in_time)
        _walk(self.sampler, chains, states, tracks, settings, asked, groups)
        return tracks

    @property
    def _num_together(self) -> int:
        """How many chains advance before a time limit is looked at again."""
        is_causal = self.recipe.num_scored is not None
        return 1 if is_causal else max(1, _CANDIDATES_TOGETHER // self.recipe.num_candidates)

    def _start(self, chains: Sequence[Chain], num_chains: int, in_time: Callable[[], bool]) -> list[State]:
        """The states that chains start from."""
        if self._drafter is None:
            return self.sampler.init(chains)
        return self.sampler.read(chains, first_drafts(self._drafter, chains, num_chains, in_time))

    def complete(self, settings: Settings) -> Settings:
        """The settings, with the recipe's number of steps if none is given."""
        has_end = settings.steps is not None or settings.passes is not None
        return settings if has_end else replace(settings, steps=self.recipe.steps)

    def at_temperature(self, temperature: float) -> "ChainWriter":
        """The same writer at another temperature."""
        power, exact = power_of(temperature), self._exact
        writer = self._copy(temperature)
        writer.sampler = self.sampler.with_power(power)
        writer._exact = None if exact is None else lambda: exact().with_power(power)
        return writer

    def sample(
        self,
        constraints: Constraints,
        *,
        num: int = 100,
        burn_in: int = BURN_IN,
        thin: int = THIN,
        chains: int = 1,
        seed: int | None = None,
        observe: Callable[[int], bool] | None = None,
    ) -> Samples:
        """Draw from the target distribution. A writer with the paper's kernel opens the exact one for it."""
        sampler = self.sampler if self.sampler.is_exact or self._exact is None else self._exact()
        return sample(
            sampler, constraints, num=num, burn_in=burn_in, thin=thin, chains=chains, seed=seed, observe=observe
        )

    def _num_steps(self, settings: Settings) -> str:
        steps = f"{settings.steps}" if settings.passes is None else f"{settings.passes} passes"
        return f"{steps} after beam {self._drafter.width}" if self._drafter else steps

    @property
    def _num_candidates(self) -> str:
        scored = self.recipe.num_scored
        return f"{self.recipe.num_candidates}" if scored is None else f"{scored} of {self.recipe.num_candidates}"

    def signature(self, settings: Settings, seed: int) -> str:
        """Version, recipe, models, settings and seed."""
        precision = self.sampler.target.scorer.precision
        parts = {
            "redraft": VERSION,
            "recipe": self.recipe.name,
            "pack": f"{self.pack.name}@{self.pack.fingerprint}",
            "steps": self._num_steps(settings),
            "candidates": self._num_candidates,
            "generator": self.recipe.generator,
            "kernel": self.recipe.kernel.value,
            "target": self.sampler.target.name,
            **({} if precision == "float32" else {"precision": precision}),
            "chains": settings.num_chains,
            **({"seconds": f"{settings.time_limit:g}"} if settings.time_limit else {}),
            **settings.signed_drafts,
            **({"until": "settled"} if settings.until_settled else {}),
            "seed": seed,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


def chains_of(
    inputs: Sequence[Constraints], settings: Settings, seed: int, numbers: Sequence[int] | None
) -> list[Chain]:
    """The chains of every input, each with its own random generator; those of one input are adjacent."""
    return [
        chain
        for number, constraints in zip(numbers or range(len(inputs)), inputs, strict=True)
        for chain in _chains(constraints, settings.num_chains, seed, number)
    ]


def _chains(constraints: Constraints, num: int, seed: int, number: int) -> list[Chain]:
    """The chains of one input."""
    return [Chain(constraints, np.random.default_rng((seed, number, c))) for c in range(num)]


def _best(tracks: Sequence[Track]) -> Visited:
    """The best sentence of several chains."""
    return min((track.best[0] for track in tracks), key=lambda one: one.rank)


def _progress(step: int, tracks: Sequence[Track]) -> JobProgress:
    """What the chains of one input have done."""
    best = _best(tracks)
    starts = tuple(track.start for track in tracks if track.start is not None)
    return JobProgress(step, best.sentence, best.nll, starts, tuple(track.trace for track in tracks))


def first_drafts(
    drafter: GridBeam, chains: Sequence[Chain], num_chains: int, in_time: Callable[[], bool]
) -> list[Sentence]:
    """A first draft for every chain; the given words alone once the time is up.

    Every input gets its first draft before any input gets its second.
    """
    drafts: dict[int, Sentence] = {}
    for i in sorted(range(len(chains)), key=lambda i: i % num_chains):
        drafts[i] = drafter.draft(chains[i], in_time) if in_time() else chains[i].constraints.start(chains[i].rng)
    return [drafts[i] for i in range(len(chains))]


def drafts_of(tracks: Sequence[Track], settings: Settings, seconds: float, signature: str) -> list[list[Draft]]:
    """The drafts of every input, from the tracks of its chains."""
    of_input = [tracks[i : i + settings.num_chains] for i in range(0, len(tracks), settings.num_chains)]
    return [_drafts(some, settings.num_drafts, seconds, signature) for some in of_input]


def _drafts(tracks: Sequence[Track], num: int, seconds: float, signature: str) -> list[Draft]:
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
            locks=one.sentence.locks,
        )
        for one, track in _diverse(entries, num)
    ]


_Entry = tuple[Visited, Track]


def _diverse(entries: Sequence[_Entry], num: int) -> list[_Entry]:
    """Choose the best entry, then repeatedly the best one after a penalty for words shared with those chosen."""
    left = list({one.sentence.words: (one, track) for one, track in entries}.values())
    penalties = [0.0] * len(left)
    taken: list[_Entry] = []
    while left and len(taken) < num:
        ranks = [(one.shortfall, one.cost + penalty) for (one, _), penalty in zip(left, penalties, strict=True)]
        best = ranks.index(min(ranks))
        chosen, _ = left.pop(best), penalties.pop(best)
        taken.append(chosen)
        penalties = [max(old, _overlap(one, chosen)) for one, old in zip(left, penalties, strict=True)]
    return taken


def _overlap(left: _Entry, right: _Entry) -> float:
    """Share of common words, not counting keywords."""
    a, b = (
        {word for word, lock in zip(one.words, one.locks, strict=True) if lock < 0 and is_word(word)}
        for one in (left[0].sentence, right[0].sentence)
    )
    return len(a & b) / max(1, len(a | b))
