"""Chain-steps per second: one chain, batches, and the plain way; all in one run, because machines differ.

python benchmarks/sampler.py [--pack NAME|DIR] [--threads N]
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch
from plain import PlainReader

from redraft.models.lstm_files import load_lstm
from redraft.models.lstm_reader import LstmReader
from redraft.models.pack import DEFAULT, open_pack
from redraft.predict.prior import UniformPrior
from redraft.revise.candidates import CandidateGenerator
from redraft.revise.kernels import PaperKernel
from redraft.sampler import Chain, Sampler, State
from redraft.sentence import Action, Constraints
from redraft.target import Target

_ACTIONS = frozenset({Action.REPLACE, Action.INSERT})
_KEYWORDS = ("person home problems depression", "view", "promoting energy", "experience feels dream", "seized party")


def _sampler(models: Sequence[LstmReader | PlainReader]) -> Sampler:
    return Sampler(Target(models[0]), CandidateGenerator(models, 50), UniformPrior(), PaperKernel(), _ACTIONS)


def _chains(count: int, **limits: int) -> list[Chain]:
    return [
        Chain(Constraints(tuple(_KEYWORDS[i % len(_KEYWORDS)].split()), **limits), np.random.default_rng((0, i)))
        for i in range(count)
    ]


def _run(sampler: Sampler, chains: Sequence[Chain], steps: int) -> tuple[list[State], float]:
    """Final states, and seconds a chain-step."""
    states = sampler.init(chains)
    started = time.perf_counter()
    for _ in range(steps):
        states = [state for state, _ in sampler.step(chains, states)]
    return states, (time.perf_counter() - started) / (steps * len(chains))


def _one_by_one(sampler: Sampler, chains: Sequence[Chain], steps: int) -> tuple[list[State], float]:
    results = [_run(sampler, [chain], steps) for chain in chains]
    return [states[0] for states, _ in results], float(np.mean([seconds for _, seconds in results]))


def _template(words: int) -> Constraints:
    """A sentence of so many words with one blank in the middle: its length stays what it is."""
    half = " ".join(["the old house near the river"] * 20).split()[: words // 2]
    return Constraints(template=" ".join([*half, "___", *half, "."]), max_words=2 * len(half) + 3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pack = open_pack(arguments.pack)
    models = [load_lstm(pack, part) for part in ("forward", "backward")]
    fast = _sampler(models)
    print(f"pack {pack.name}@{pack.fingerprint}, {arguments.threads} threads, 50 candidates, up to 25 words")
    _run(fast, _chains(4), 5)  # the first calls are slow

    count, steps = 32, 40
    batch, batch_seconds = _run(fast, _chains(count), steps)
    few = 3
    alone, alone_seconds = _one_by_one(fast, _chains(few), steps)
    print(f"\n{'one chain':<46}{1 / alone_seconds:8.1f} chain-steps/s")
    print(f"{f'batch of {count}':<46}{1 / batch_seconds:8.1f} chain-steps/s")
    for whole_softmax, label in ((True, "all logits, as published"), (False, "adaptive softmax")):
        plain = _sampler([PlainReader(model, whole_softmax=whole_softmax) for model in models])
        states, seconds = _one_by_one(plain, _chains(few), steps)
        _check(states, batch[:few])
        _check(states, alone)
        ratio = f"batch / plain = {seconds / batch_seconds:.1f}, one chain / plain = {seconds / alone_seconds:.1f}"
        print(f"{f'plain: one chain, no caches, {label}':<46}{1 / seconds:8.1f} chain-steps/s   {ratio}")
    print("All end in the same sentences, their log-probabilities equal to 1e-4.")

    print("\nwords   ms a chain-step (batch of 16)")
    for words in (10, 20, 40, 80):
        chains = [Chain(_template(words), np.random.default_rng((1, i))) for i in range(16)]
        print(f"{words:5}   {1000 * _run(fast, chains, 8)[1]:.1f}")
    print("\nbatch   chain-steps/s")
    for size in (1, 2, 4, 8, 16, 32, 64):
        print(f"{size:5}   {1 / _run(fast, _chains(size), 20)[1]:.1f}")


def _check(left: Sequence[State], right: Sequence[State]) -> None:
    for a, b in zip(left, right, strict=True):
        if a.sentence != b.sentence or abs(a.log_prob - b.log_prob) > 1e-4 * max(1.0, abs(a.log_prob)):
            raise SystemExit(f"different results:\n  {a.sentence.text} {a.log_prob}\n  {b.sentence.text} {b.log_prob}")


if __name__ == "__main__":
    main()
