"""First drafts by sequential Monte Carlo: particles that write a sentence with the given parts in it.

The target is the model's distribution over sentences, restricted to those that meet the constraints. Particles grow
token by token in one batch, by the rules of ``redraft.draft.growth``. They are resampled among those that hold the same
number of parts: one that holds more has paid for them already.

A stretch of a sentence is rewritten in the same way, with the words before and after it as given parts. Particles then
stay independent, so that the probability of drawing each is known, and that of the present words as well.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Generic, NamedTuple

import numpy as np
import torch

from redraft.draft.gap_by_gap import GapByGap
from redraft.draft.growth import GrowthRules
from redraft.draft.particle import (
    IMPOSSIBLE,
    ChooseGrowth,
    GrowingParticle,
    GrowthChoice,
    GrowthOptions,
    TokenDist,
)
from redraft.draft.task import Drafted, DraftTask
from redraft.models.base import Words
from redraft.models.causal.infiller import DecoderT, Writing
from redraft.models.causal.prompts import DEFAULT_STYLE
from redraft.models.threads import one_core
from redraft.numerics import draw_index, log_normalise, log_sum
from redraft.sentence import Constraints, Sentence
from redraft.stretches import Stretch

_TOKENS_PER_WORD = 1.8  # room for words of several tokens
_SPARE_TOKENS = 8
_RESAMPLE = 0.5  # of the particles of a group; with fewer effective ones they are resampled


_CACHED_ROWS = 16
_ROWS_OF_SEVERAL_CORES = 128  # particles whose step is worth several cores; 64 take 1.3 times as long on two as on one
_MOST_ROWS = 192  # particles that are read in one pass; the time per particle hardly falls with more

# Drafting one input: yields the next token of each particle, is sent what they expect then, returns those that ended.
_Drafting = Generator[tuple[DecoderT, list[int]], torch.Tensor, list[Drafted]]


class DraftOrder(NamedTuple):
    """What to draft: how many particles for which constraints, with which draws.

    ``is_wanted`` is asked after each token; if it returns False, drafting ends.
    """

    constraints: Constraints
    rng: np.random.Generator
    num: int
    is_wanted: Callable[[], bool] = lambda: True


class Rewritten(NamedTuple):
    """A sentence with a stretch written anew, and the log-probability of drawing it."""

    sentence: Sentence
    log_drawn: float


@dataclass
class _Running(Generic[DecoderT]):
    """The drafting of one order: the step that it waits for, or what it found."""

    number: int
    drafting: _Drafting[DecoderT]
    step: tuple[DecoderT, list[int]] | None = None
    found: list[Drafted] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(self.step[1]) if self.step else 0

    def advance(self, expected: torch.Tensor | None) -> None:
        """Go on with what the particles expect; None at the beginning."""
        try:
            self.step = next(self.drafting) if expected is None else self.drafting.send(expected)
        except StopIteration as end:
            self.step, self.found = None, end.value


class ParticleDrafter(Generic[DecoderT]):
    """Writes drafts with a model. ``temperature`` sharpens or flattens what it expects, token by token.

    ``lowered`` are words that are written with a capital only where they open a sentence. Words that are
    ``encouraged``, by how many nats, are proposed more often; the weights take that back.
    """

    def __init__(
        self,
        model: Writing[DecoderT],
        *,
        style: str = DEFAULT_STYLE,
        temperature: float = 1.0,
        lowered: frozenset[str] = frozenset(),
        encouraged: Mapping[str, float] = MappingProxyType({}),
    ):
        self._model, self._style, self._temperature, self._lowered = model, style, temperature, lowered
        self._encouraged = encouraged

    def draft(self, order: DraftOrder, deadline: float = math.inf) -> list[Drafted]:
        """The particles that reached an end, up to ``num`` of them, with weights.

        Particles that are not done at the ``deadline`` (of ``time.monotonic``) are dropped.
        """
        ((_, found),) = self.draft_many([order], deadline)
        return found

    def draft_many(
        self, orders: Iterable[DraftOrder], deadline: float = math.inf
    ) -> Iterator[tuple[int, list[Drafted]]]:
        """The number of each order and what ``draft`` returns for it, as soon as it is finished.

        Particles of several orders are read in one pass, which is faster and does not change them.
        """
        waiting = (_Running(number, self._drafting(order, deadline)) for number, order in enumerate(orders))
        running: list[_Running[DecoderT]] = []
        while True:
            while sum(one.num_rows for one in running) < _MOST_ROWS and (started := next(waiting, None)):
                started.advance(None)
                running.append(started)
            yield from ((one.number, one.found) for one in running if one.step is None)
            steps = [one.step for one in running if one.step is not None]
            running = [one for one in running if one.step is not None]
            if not running:
                return
            is_small = sum(one.num_rows for one in running) < _ROWS_OF_SEVERAL_CORES
            with one_core() if is_small else nullcontext():
                for one, expected in zip(running, self._model.step(steps), strict=True):
                    one.advance(expected)

    def _drafting(self, order: DraftOrder, deadline: float) -> _Drafting[DecoderT]:
        def is_over() -> bool:
            return time.monotonic() > deadline or not order.is_wanted()

        task, rng, most = DraftTask.of(order.constraints), order.rng, _most_tokens(order.constraints)
        rules = self._rules(task, starts_none=task.fills_blanks)
        first, logits, decoder = self._begin(task, rules, order.num)
        particles = [first.copy() for _ in range(order.num)]
        dists = self._dists(logits[None]) * order.num
        choose = partial(_draw_token if task.fills_blanks else _draw, rng=rng)
        if task.fills_blanks:
            longest = max((len(self._model.spell((), one)) for one in task.realisations), default=0)
            gaps = GapByGap(rules, decoder, particles, dists, len(first.tokens), most - longest, self._dists)
            yield from gaps.fill(len(first.held) + (first.part is not None), choose, rng, is_over)
            particles, dists = gaps.particles, gaps.dists
        finished: list[Drafted] = []
        for _ in range(most):
            alive = []
            for i, (particle, dist) in enumerate(zip(particles, dists, strict=True)):
                rules.advance(particle, dist, choose)
                if self._is_complete(particle):
                    finished += rules.finished(particle)
                elif particle.log_weight > IMPOSSIBLE:
                    alive.append(i)
            if not alive or is_over():
                break
            chosen = _resampled([particles[i] for i in alive], rng)
            rows = [alive[i] for i, _ in chosen]
            if rows != list(range(len(particles))):
                decoder.select(rows)
            particles = [particle for _, particle in chosen]
            dists = self._dists((yield decoder, [particle.tokens[-1] for particle in particles]))
        return finished

    @torch.inference_mode()
    def rewrite(
        self, constraints: Constraints, sentence: Sentence, stretch: Stretch, rng: np.random.Generator, num: int
    ) -> tuple[list[Rewritten], float]:
        """Independent draws of a stretch given all other words, and the log-probability of drawing the present one.

        Up to ``num`` of them: some come to nothing. A draw that is not spelled as the model's tokenizer spells its
        words is dropped, so the probability of each sentence is that of one sequence of tokens.
        """
        task = DraftTask.around(constraints, sentence, stretch)
        rules = self._rules(task)
        first, logits, decoder = self._begin(task, rules, num + 1)
        particles = [first.copy() for _ in range(num + 1)]
        script = self._script(task, sentence.words[stretch.start : stretch.end])
        choices: list[ChooseGrowth] = [lambda options: _scripted(options, script), *[partial(_draw, rng=rng)] * num]
        dists = self._dists(logits[None]) * (num + 1)
        rows = list(range(num + 1))  # particles that are still in the stretch
        closing = []  # those that have come to the words after it
        for _ in range(_most_tokens(constraints)):
            alive = []
            for row, dist in zip(rows, dists, strict=True):
                rules.advance(particles[row], dist, choices[row])
                if task.is_closed_by(particles[row].part):
                    closing.append(row)
                elif not self._is_complete(particles[row]) and particles[row].log_weight > IMPOSSIBLE:
                    alive.append(row)
            if not alive:
                break
            if alive != rows:
                decoder.select([rows.index(row) for row in alive])
            rows = alive
            (logits,) = self._model.step([(decoder, [particles[row].tokens[-1] for row in rows])])
            dists = self._dists(logits)
        self._close(task, rules, [(particles[row], choices[row]) for row in closing])
        log_drawn = [self._log_drawn(particle) for particle in particles]
        found = [
            Rewritten(made, log_one)
            for particle, log_one in zip(particles[1:], log_drawn[1:], strict=True)
            for made in self._rewritten(rules, particle, sentence, stretch)
        ]
        return found, log_drawn[0]

    def _rules(self, task: DraftTask, *, starts_none: bool = False) -> GrowthRules:
        return GrowthRules(task, self._model, self._lowered, self._encouraged, starts_none=starts_none)

    def prompt(self, constraints: Constraints) -> str:
        """What the model is asked for these constraints."""
        return DraftTask.of(constraints).prompt(self._style)

    def _begin(self, task: DraftTask, rules: GrowthRules, num: int) -> tuple[GrowingParticle, torch.Tensor, DecoderT]:
        """A particle with the words that every sentence begins with, scores of its next token, and a decoder."""
        given = self._model.spell((), task.realisations[0]) if task.begins_given else ()
        particle, prompt = GrowingParticle(), task.prompt(self._style)
        for dist in self._dists(self._model.logits(prompt, [given])[0]) if given else ():
            rules.advance(particle, dist, _only_start)
        return particle, *self._model.begin(prompt, num, _most_tokens(task.constraints), given)

    def _close(
        self, task: DraftTask, rules: GrowthRules, particles: Sequence[tuple[GrowingParticle, ChooseGrowth]]
    ) -> None:
        """Write the last given part and the end of particles that have started it: nothing else may follow."""
        end = self._model.tokens.end
        rows = [(*particle.tokens, *particle.queue, end) for particle, _ in particles]
        for (particle, choose), logits in zip(
            particles, self._model.logits(task.prompt(self._style), rows) if rows else (), strict=True
        ):
            for dist in self._dists(logits[len(particle.tokens) :]):
                rules.advance(particle, dist, choose)

    def _is_complete(self, particle: GrowingParticle) -> bool:
        return particle.tokens[-1:] == [self._model.tokens.end]

    def _script(self, task: DraftTask, stretch: Words) -> Iterator[GrowthChoice]:
        """The choices that lead to the present words of a stretch."""
        before: Words = ()
        for number, piece in enumerate(task.pieces):
            if piece is None:
                yield from (GrowthChoice(None, token) for token in self._model.spell(before, stretch))
                before += stretch
            else:
                if number > 0:  # the particle begins after the words before the stretch
                    yield GrowthChoice(len(task.parts) - 1)
                before += piece
        yield GrowthChoice(None, self._model.tokens.end)

    def _log_drawn(self, particle: GrowingParticle) -> float:
        return particle.log_prob - particle.log_weight if self._is_complete(particle) else IMPOSSIBLE

    def _rewritten(
        self, rules: GrowthRules, particle: GrowingParticle, sentence: Sentence, stretch: Stretch
    ) -> list[Sentence]:
        """The sentence of a particle with the locks of the old one around the stretch; none where it is unusable."""
        found = rules.finished(particle) if self._is_complete(particle) else []
        if not found or particle.tokens != [*self._model.spell((), found[0].sentence.words), self._model.tokens.end]:
            return []
        return [stretch.filled(sentence, found[0].sentence.words)]

    def _dists(self, logits: torch.Tensor) -> list[TokenDist]:
        """The distributions of logits [rows, vocabulary]."""
        scores = (logits if logits.dtype == torch.float64 else logits.float()) / self._temperature
        # A few rows at a time stay in the processor's cache.
        parts = [(part, part.logsumexp(-1).tolist(), part.softmax(-1)) for part in torch.split(scores, _CACHED_ROWS)]
        return [
            TokenDist(*one)
            for part, log_totals, probs in parts
            for one in zip(part.numpy(), log_totals, probs.numpy(), strict=True)
        ]


def _most_tokens(constraints: Constraints) -> int:
    return round(_TOKENS_PER_WORD * constraints.limit) + _SPARE_TOKENS


def _only_start(options: GrowthOptions) -> GrowthChoice | None:
    """The part that must come first."""
    return GrowthChoice(next(iter(options.log_starts)))


def _draw(options: GrowthOptions, rng: np.random.Generator) -> GrowthChoice | None:
    level = rng.random()
    for part, log_prob in options.log_starts.items():
        level -= float(np.exp(log_prob))
        if level < 0:
            return GrowthChoice(part)
    if not options.weights.any():
        return GrowthChoice(next(iter(options.log_starts))) if options.log_starts else None
    return _draw_token(options, rng)


def _draw_token(options: GrowthOptions, rng: np.random.Generator) -> GrowthChoice | None:
    return GrowthChoice(None, draw_index(options.weights, rng)) if options.weights.any() else None


def _scripted(options: GrowthOptions, script: Iterator[GrowthChoice]) -> GrowthChoice | None:
    """The next choice of a script; None where it is impossible."""
    choice = next(script)
    log_prob = options.log_token(choice.token) if choice.part is None else options.log_starts.get(choice.part)
    return choice if log_prob is not None and log_prob > IMPOSSIBLE else None


def _resampled(particles: Sequence[GrowingParticle], rng: np.random.Generator) -> list[tuple[int, GrowingParticle]]:
    """Particles to go on with, and which they were. Groups keep their size and the sum of their weights."""
    chosen: list[tuple[int, GrowingParticle]] = []
    groups: dict[int, list[int]] = {}
    for i, particle in enumerate(particles):
        groups.setdefault(len(particle.held) + (particle.part is not None), []).append(i)
    for group in groups.values():
        log_weights = np.array([particles[i].log_weight for i in group])
        shares = np.exp(log_normalise(log_weights))
        if len(group) == 1 or 1 / float((shares**2).sum()) >= _RESAMPLE * len(group):
            chosen += [(i, particles[i]) for i in group]
            continue
        log_mean = log_sum(log_weights) - float(np.log(len(group)))
        points = (rng.random() + np.arange(len(group))) / len(group)
        for place in np.searchsorted(np.cumsum(shares), points).clip(0, len(group) - 1):
            copy = particles[group[int(place)]].copy()
            copy.log_weight = log_mean
            chosen.append((group[int(place)], copy))
    return sorted(chosen, key=lambda pair: pair[0])
