"""Log-space normalising and sampling, nowhere else. Weights are float64 logarithms; -inf is a weight of zero."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def log_sum(log_weights: Array) -> float:
    """log of the sum of weights; -inf for no weight at all."""
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
    """Logarithm in which zero is -inf without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(weights, dtype=np.float64))


def draw(log_weights: Array, rng: np.random.Generator) -> int:
    """Index drawn with probability proportional to its weight: the argmax after Gumbel noise."""
    noisy = log_weights + rng.gumbel(size=log_weights.shape)
    index = int(noisy.argmax())
    if log_weights.flat[index] == -np.inf:
        raise ValueError("every weight is zero")
    return index


def log_uniform(rng: np.random.Generator) -> float:
    """Logarithm of a number drawn evenly from (0, 1]."""
    return float(np.log1p(-rng.random()))


def accept(log_ratio: float, log_level: float) -> bool:
    """Metropolis: true with probability min(1, exp(log_ratio)) where the level is a ``log_uniform`` draw."""
    return log_level < log_ratio
