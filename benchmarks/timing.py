"""What the benchmarks share: samplers, chains, and runs of them with the seconds that a chain-step takes."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from redraft.predict.prior import Prior, UniformPrior
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler, State
from redraft.sentence import Action
from redraft.target import Target

_ACTIONS = frozenset({Action.REPLACE, Action.INSERT})


def make_sampler(models: Sequence[Any], prior: Prior | None = None) -> Sampler:
    """Forward and backward model, 50 candidates, positions drawn at random unless a prior is given."""
    return Sampler(Target(models[0]), CandidateGenerator(models, 50), prior or UniformPrior(), PaperKernel(), _ACTIONS)


def run(
    sampler: Sampler, chains: Sequence[Chain], steps: int, states: Sequence[State] | None = None
) -> tuple[list[State], float]:
    """Final states, and seconds a chain-step; from the chains' beginnings unless states are given."""
    now = list(states) if states is not None else sampler.init(chains)
    started = time.perf_counter()
    for _ in range(steps):
        now = [state for state, _ in sampler.step(chains, now)]
    return now, (time.perf_counter() - started) / (steps * len(chains))


def one_by_one(sampler: Sampler, chains: Sequence[Chain], steps: int) -> tuple[list[State], float]:
    results = [run(sampler, [chain], steps) for chain in chains]
    return [states[0] for states, _ in results], float(np.mean([seconds for _, seconds in results]))


def check_same(left: Sequence[State], right: Sequence[State]) -> None:
    """End the benchmark if two ways of computing do not lead to the same sentences."""
    for a, b in zip(left, right, strict=True):
        if a.sentence != b.sentence or abs(a.log_prob - b.log_prob) > 1e-4 * max(1.0, abs(a.log_prob)):
            raise SystemExit(f"different results:\n  {a.sentence.text} {a.log_prob}\n  {b.sentence.text} {b.log_prob}")
