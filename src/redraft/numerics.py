"""Normalising and sampling in log space. Weights are float64 logarithms; -inf is a weight of zero."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_BLOCK = 256


def log_sum(log_weights: Array) -> float:
    """Log of the sum of weights; -inf if there are none."""
    if log_weights.size == 0:
        return -np.inf
    top = float(log_weights.max())
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.exp(log_weights - top).sum()))


def log_normalise(log_weights: Array) -> Array:
    """Weights scaled to sum to one."""
    return log_weights - log_sum(log_weights)


def log_of(weights: NDArray[np.floating] | NDArray[np.bool_]) -> Array:
    """Logarithm with log(0) = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(weights, dtype=np.float64))


def draw(log_weights: Array, rng: np.random.Generator) -> int:
    """An index drawn in proportion to its weight: the argmax after Gumbel noise."""
    noisy = log_weights + rng.gumbel(size=log_weights.shape)
    index = int(noisy.argmax())
    if log_weights.flat[index] == -np.inf:
        raise ValueError("every weight is zero")
    return index


def draw_index(weights: NDArray[np.floating], rng: np.random.Generator) -> int:
    """An index drawn in proportion to its weight, for many weights that are not logarithms; some must be positive.

    Cumulative sums of blocks come first, since the sum over a whole vocabulary is expensive.
    """
    sums = np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK), dtype=np.float64))
    level = rng.random() * sums[-1]
    block = min(int(np.searchsorted(sums, level, side="right")), len(sums) - 1)
    inside = np.cumsum(weights[block * _BLOCK : (block + 1) * _BLOCK], dtype=np.float64)
    level -= sums[block - 1] if block else 0.0
    # Rounding may put the level at the end of a block, behind its last positive weight.
    return block * _BLOCK + int(np.searchsorted(inside, min(level, np.nextafter(inside[-1], 0.0)), side="right"))


def log_uniform(rng: np.random.Generator) -> float:
    """Logarithm of a uniform draw from (0, 1]."""
    return float(np.log1p(-rng.random()))


def accept(log_ratio: float, log_level: float) -> bool:
    """Metropolis: true with probability min(1, exp(log_ratio)) if the level is a ``log_uniform`` draw."""
    return log_level < log_ratio
