"""A sentence that is being written, what the model expects next in it, and the ways in which it may continue."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IMPOSSIBLE = -np.inf


class TokenDist(NamedTuple):
    """The distribution of the next token: scores and probabilities, both [vocabulary]."""

    scores: NDArray[np.floating]  # log-probabilities, up to a constant
    log_total: float  # the constant
    probs: NDArray[np.floating]

    def log_prob(self, token: int) -> float:
        return float(self.scores[token]) - self.log_total


class Boundary(NamedTuple):
    """A place where a word may start: how likely each part was started there, and how likely the free way to it is."""

    at: int  # in the text
    log_starts: dict[int, float]
    log_free: float

    def log_start(self, part: int) -> float:
        return self.log_starts.get(part, IMPOSSIBLE)


@dataclass
class GrowingParticle:
    """A sentence that is being written. ``held`` are the parts in it, up to the latest whose end is certain.

    Parts are numbers of realisations of ``DraftTask``.
    """

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    held: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # of the held parts in the text
    log_weight: float = 0.0
    log_prob: float = 0.0
    log_free: float = 0.0  # of the tokens so far, had all of them been drawn freely
    boundaries: list[Boundary] = field(default_factory=list)  # in the present gap
    part: int | None = None  # that is being written, or was just written
    queue: tuple[int, ...] = ()  # its tokens that are left
    part_log_prob: float = 0.0  # minus the log-probability of what came before it

    @property
    def log_part(self) -> float:
        """The log-probability of the part that is being written."""
        return self.log_prob + self.part_log_prob

    def copy(self) -> "GrowingParticle":
        return replace(self, tokens=list(self.tokens), boundaries=list(self.boundaries))


class GrowthOptions(NamedTuple):
    """How a particle may continue: with parts, or with tokens that come freely. Both together have probability one.

    The weights of the tokens are linear, because a logarithm of the whole vocabulary is expensive. ``log_scale`` makes
    probabilities of them.
    """

    log_starts: dict[int, float]
    weights: NDArray[np.floating]  # [vocabulary]
    log_scale: float

    def log_token(self, token: int) -> float:
        weight = float(self.weights[token])
        return self.log_scale + math.log(weight) if weight > 0 else IMPOSSIBLE

    def mixed(self, other: "GrowthOptions", log_shares: tuple[float, float]) -> "GrowthOptions":
        """A mixture of these options and others."""
        own, others = log_shares
        parts = {*self.log_starts, *other.log_starts}
        log_starts = {
            part: float(
                np.logaddexp(
                    own + self.log_starts.get(part, IMPOSSIBLE), others + other.log_starts.get(part, IMPOSSIBLE)
                )
            )
            for part in sorted(parts)
        }
        scales = own + self.log_scale, others + other.log_scale
        top = max(scales)
        if top == IMPOSSIBLE:
            return GrowthOptions(log_starts, np.zeros_like(self.weights), 0.0)
        weights = math.exp(scales[0] - top) * self.weights + math.exp(scales[1] - top) * other.weights
        return GrowthOptions(log_starts, weights, top)


class GrowthChoice(NamedTuple):
    """A part to start, or a token."""

    part: int | None
    token: int = -1


ChooseGrowth = Callable[[GrowthOptions], GrowthChoice | None]  # None where there is nothing to choose
