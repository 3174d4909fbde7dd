"""Whether chains have converged: R-hat and effective sample size by arviz, with a verdict in plain words."""

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from redraft import text
from redraft.errors import OutputError
from redraft.extras import extra
from redraft.numerics import Array
from redraft.sampling import Draw, Samples
from redraft.sentence import FREE, Action, num_words

_AGREED = 1.01  # chains agree if the rank-normalised R-hat is below this (Vehtari et al., 2021)
_ENOUGH = 100  # effective draws per chain, by the same paper


@dataclass(frozen=True)
class Diagnosis:
    """Rank-normalised split R-hat and bulk effective sample size of one quantity."""

    name: str
    r_hat: float
    ess: float
    mean: float


@dataclass(frozen=True)
class ChainReport:
    """The diagnostics of a run."""

    diagnoses: tuple[Diagnosis, ...]
    acceptance: dict[Action, float]
    num_chains: int
    num_draws: int  # per chain
    has_moved: bool

    @property
    def verdict(self) -> str:
        """Whether the chains agree, in a sentence."""
        if not self.has_moved:
            return f"No chain has left its first sentence in {self.num_draws} draws; run more steps."
        worst = max(self.diagnoses, key=lambda one: one.r_hat)
        least = min(self.diagnoses, key=lambda one: one.ess)
        size = f"{self.num_chains} chains of {self.num_draws} draws"
        if not worst.r_hat <= _AGREED:
            return (
                f"The {size} do not agree yet: R-hat of {worst.name} is {worst.r_hat:.2f}, above {_AGREED}. "
                f"Run more steps before you trust a frequency."
            )
        if least.ess < _ENOUGH * self.num_chains:
            return (
                f"The {size} agree (R-hat at most {worst.r_hat:.3f}), but they are worth only {least.ess:.0f} "
                f"independent draws for {least.name}: fine for a mean, coarse for rare words."
            )
        return f"The {size} agree: R-hat at most {worst.r_hat:.3f}, worth {least.ess:.0f} independent draws or more."


def series(samples: Samples, num_indicators: int = 4) -> dict[str, Array]:
    """Quantities [chains, draws]: log-probability, length, and whether each of some common free words occurs.

    The words are those whose presence is most uncertain: they say most about mixing.
    """
    chains = samples.by_chain()
    result = {
        "log-probability": np.array([[draw.log_prob for draw in chain] for chain in chains]),
        "length": np.array([[num_words(draw.sentence.words) for draw in chain] for chain in chains], dtype=np.float64),
    }
    present = Counter(word for draw in samples.draws for word in _free_words(draw))
    unsure = sorted(present.items(), key=lambda item: (abs(item[1] / len(samples.draws) - 0.5), item[0]))
    for word, _ in unsure[:num_indicators]:
        result[f"the word {word!r}"] = np.array([[float(word in _free_words(d)) for d in chain] for chain in chains])
    return result


def _free_words(draw: Draw) -> set[str]:
    pairs = zip(draw.sentence.words, draw.sentence.locks, strict=True)
    return {word for word, lock in pairs if lock == FREE and text.is_word(word)}


def diagnose(samples: Samples) -> ChainReport:
    """R-hat, effective sample size and acceptance of a run of several chains."""
    arviz = _arviz()
    diagnoses = tuple(
        Diagnosis(name, *_r_hat_and_ess(arviz, values), float(values.mean()))
        for name, values in series(samples).items()
    )
    acceptance = {action: samples.accepted.get(action, 0) / count for action, count in samples.tried.items()}
    chains = samples.by_chain()
    has_moved = len({draw.sentence.words for draw in samples.draws}) > 1
    return ChainReport(diagnoses, acceptance, len(chains), len(chains[0]), has_moved)


def _r_hat_and_ess(arviz: Any, values: Array) -> tuple[float, float]:
    if np.ptp(values) == 0:  # constant in every draw, so the chains agree
        return 1.0, float(values.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        r_hat = float(arviz.rhat(values, method="rank"))
        ess = float(arviz.ess(values, method="bulk"))
    return (np.inf if np.isnan(r_hat) else r_hat), (0.0 if np.isnan(ess) else ess)


def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arviz announces its next version on import
        with extra("eval"):
            import arviz

    return arviz


def plot(samples: Samples, path: Path) -> None:
    """Draw traces and autocorrelations of log-probability and length."""
    with extra("eval"):
        import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    values = {name: one for name, one in series(samples).items() if name in ("log-probability", "length")}
    figure, axes = pyplot.subplots(len(values), 2, figsize=(11, 5.5), layout="constrained", squeeze=False)
    for (name, one), (left, right) in zip(values.items(), axes, strict=True):
        for chain in one:
            left.plot(chain, linewidth=0.8, alpha=0.8)
            right.plot(_autocorrelation(chain), linewidth=0.8, alpha=0.8)
        left.set(title=name, xlabel="draw")
        right.set(title=f"autocorrelation of {name}", xlabel="lag in draws", ylim=(-0.3, 1.05))
        right.axhline(0, color="grey", linewidth=0.6)
    try:
        figure.savefig(path, dpi=130)
    except (OSError, ValueError) as error:  # not writable, or an unknown image format
        raise OutputError(f"cannot write {path}: {error}") from error
    pyplot.close(figure)


def _autocorrelation(values: Array, most: int = 60) -> Array:
    centred = values - values.mean()
    variance = float((centred**2).mean())
    lags = range(min(most, len(values) - 1))
    if variance == 0:
        return np.ones(len(lags))
    return np.array([(centred[: len(centred) - lag] * centred[lag:]).sum() / len(values) / variance for lag in lags])
