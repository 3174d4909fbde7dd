"""Sequential Monte Carlo over the blanks of a template, one after the other.

All particles fill a blank before any goes on to the next one. From where it stands, each particle writes on freely. At
every word's end on the way the next given part may follow; the likelier its first token, the likelier this end of the
blank is drawn among those of all particles. So a blank gets the length that suits what follows, and particles are
compared only when they hold the same parts.

A path ends where it has written the next part by itself: those words are the given ones then, so that every sentence
comes about in one way only and the weights are exact.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
import torch

from redraft.draft.growth import GrowthRules
from redraft.draft.particle import IMPOSSIBLE, ChooseGrowth, GrowingParticle, TokenDist
from redraft.models.causal.infiller import DecoderT
from redraft.models.causal.line import Tokens
from redraft.models.causal.llama import UNREAD
from redraft.numerics import log_normalise, log_sum

_ENDS = 0.3  # how likely a path is ended at a word, once it is longer than blanks usually are

Reading = Generator[tuple[DecoderT, list[int]], torch.Tensor, None]


class _BlankEnd(NamedTuple):
    """A particle at a place where the next part may follow, the row that wrote it, and how likely the part begins."""

    row: int
    particle: GrowingParticle
    realisation: int  # of the part
    tokens: Tokens  # that write it
    log_first: float

    @property
    def log_weight(self) -> float:
        return self.particle.log_weight + self.log_first


@dataclass
class GapByGap(Generic[DecoderT]):
    """Particles with what the model expects next for each row.

    ``num_given`` tokens came before those that the decoder reads.
    """

    rules: GrowthRules
    decoder: DecoderT
    particles: list[GrowingParticle]
    dists: list[TokenDist]
    num_given: int
    most_tokens: int  # at the end of a blank
    to_dists: Callable[[torch.Tensor], list[TokenDist]]

    def fill(
        self, num_held: int, choose: ChooseGrowth, rng: np.random.Generator, is_over: Callable[[], bool]
    ) -> Reading[DecoderT]:
        """Fill the blanks before each part that is not held yet. No particle is left if no part can be written."""
        for part in range(num_held, self.rules.num_parts):
            ends = yield from self._paths(part, choose, rng)
            if not ends or is_over():
                self.particles = []
                return
            self._start(ends, rng)
            yield from self._write_part(rng)

    def _paths(
        self, part: int, choose: ChooseGrowth, rng: np.random.Generator
    ) -> Generator[tuple[DecoderT, list[int]], torch.Tensor, list[_BlankEnd]]:
        """Write on freely with every particle. Returns the places where the part may follow."""
        ends: list[_BlankEnd] = []
        running = list(range(len(self.particles)))
        while running:
            for row in running:
                particle = self.particles[row]
                starts = self.rules.starts(particle)
                for realisation in starts:
                    tokens = self.rules.spell(particle, realisation)
                    log_first = self.dists[row].log_prob(tokens[0])
                    ends.append(_BlankEnd(row, particle.copy(), realisation, tokens, log_first))
                if starts and self.rules.is_long(particle):
                    is_ended = rng.random() < _ENDS
                    particle.log_weight = IMPOSSIBLE if is_ended else particle.log_weight - math.log(1 - _ENDS)
                if particle.log_weight > IMPOSSIBLE:
                    self.rules.advance(particle, self.dists[row], choose)
            running = [row for row in running if self._is_running(self.particles[row], part)]
            if running:
                yield from self._read(running)
        return [end for end in ends if end.log_weight > IMPOSSIBLE]

    def _is_running(self, particle: GrowingParticle, part: int) -> bool:
        return (
            particle.log_weight > IMPOSSIBLE and len(particle.held) == part and len(particle.tokens) < self.most_tokens
        )

    def _start(self, ends: Sequence[_BlankEnd], rng: np.random.Generator) -> None:
        """Draw as many ends as there are particles, and begin the part there."""
        log_weights = np.array([end.log_weight for end in ends])
        chosen = [ends[i] for i in drawn(log_weights, len(self.particles), rng)]
        self._select([end.row for end in chosen], [end.particle.copy() for end in chosen])
        log_mean = log_sum(log_weights) - math.log(len(chosen))
        for particle, end in zip(self.particles, chosen, strict=True):
            particle.log_weight = log_mean - end.log_first  # the whole part is counted when it is complete
            self.rules.start(particle, end.realisation, end.tokens, end.log_first)

    def _write_part(self, rng: np.random.Generator) -> Reading[DecoderT]:
        """Write the rest of a part with all particles, and resample them."""
        yield from self._read(range(len(self.particles)))
        while rows := [row for row, particle in enumerate(self.particles) if particle.queue]:
            for row in rows:
                self.rules.write(self.particles[row], self.dists[row])
            yield from self._read(rows)
        # A particle is counted with the whole part here. Its own weight has it when the part's end is certain.
        log_weights = np.array([particle.log_weight + particle.log_part for particle in self.particles])
        rows = drawn(log_weights, len(self.particles), rng)
        log_mean = log_sum(log_weights) - math.log(len(rows))
        dists = [self.dists[row] for row in rows]
        self._select(rows, [self.particles[row].copy() for row in rows])
        self.dists = dists
        for particle in self.particles:
            particle.log_weight = log_mean - particle.log_part

    def _read(self, rows: Sequence[int]) -> Reading[DecoderT]:
        """Read the latest token of some rows. The others keep what is expected for them."""
        tokens = [UNREAD] * len(self.particles)
        for row in rows:
            tokens[row] = self.particles[row].tokens[-1]
        for row, dist in zip(rows, self.to_dists((yield self.decoder, tokens)), strict=True):
            self.dists[row] = dist

    def _select(self, rows: Sequence[int], particles: Sequence[GrowingParticle]) -> None:
        """Continue with particles, each of which begins with the tokens of a row."""
        self.decoder.select(rows, [len(particle.tokens) - self.num_given for particle in particles])
        self.particles = list(particles)


def drawn(log_weights: np.ndarray, num: int, rng: np.random.Generator) -> list[int]:
    """That many indices in proportion to their weights, by systematic resampling."""
    shares = np.exp(log_normalise(log_weights))
    points = (rng.random() + np.arange(num)) / num
    return [int(i) for i in np.searchsorted(np.cumsum(shares), points).clip(0, len(shares) - 1)]
