"""One step of x-mcmc with a compact XLNet: a batch of chains against whole sentences, one chain at a time; in one run.

python benchmarks/xlnet.py [--pack NAME|DIR] [--threads N] [--rounds N]

A pack without an XLNet lends its words: they become the pieces of a network with random weights, which computes as
long as a trained one. Where the processor has bfloat16, the batch is run in it as well, as ``redraft generate`` would.
"""

import argparse
import copy
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from plain_xlnet import HubNetwork, PlainXlnet
from timing import check_same, make_sampler, run

from redraft import text
from redraft.models.pack import DEFAULT, Pack, open_pack
from redraft.models.precision import PRECISION, compute_dtype
from redraft.models.xlnet.network import ReadingOrder, XlnetConfig, XlnetLM
from redraft.models.xlnet.pack import LANGUAGE_MODEL, load_readers
from redraft.models.xlnet.reader import XlnetReader
from redraft.models.xlnet.words import PieceWords
from redraft.sampler import Chain, Sampler, State
from redraft.sentence import Action, Constraints, Edit

_PIECES, _CHAINS, _STEPS = 16_000, 16, 2
_ROUNDED = f"batch of {_CHAINS}, bfloat16"
_WORDS = "the old house near a river was sold to some people who had never seen it before".split()


class _WordPieces:
    """Words as pieces: enough of a SentencePiece model for a network that was never trained."""

    begin, end, padding = 1, 2, 5

    def __init__(self, words: Sequence[str], size: int):
        self.size = size
        kept = [word for word in words if text.tokenise(word) == [word]][: size - 10]
        self._ids = {word: i for i, word in enumerate(kept, 10)}

    def split(self, word: str) -> tuple[int, ...]:
        return (self._ids.get(word, 0),)

    def whole_words(self) -> list[tuple[str, int]]:
        return list(self._ids.items())


def _models(pack: Pack) -> tuple[list[XlnetReader], str]:
    orders = (ReadingOrder.FORWARD, ReadingOrder.BACKWARD)
    if any(entry["kind"] == LANGUAGE_MODEL for entry in pack.parts.values()):
        found: Any = load_readers(pack, orders)
        return list(found.values()), f"pack {pack.name}@{pack.fingerprint}"
    words = pack.path(pack.parts["forward"]["words"]).read_text(encoding="utf-8").split("\n")[3:]
    torch.manual_seed(0)
    network = XlnetLM(XlnetConfig(_PIECES, n_layer=4, d_inner=768)).eval()
    pieces: Any = _WordPieces(words, _PIECES)
    shared = PieceWords(pieces)
    return [XlnetReader("random", network, shared, backward=b) for b in (False, True)], "random weights"


def _chains(seed: int) -> list[Chain]:
    return [Chain(Constraints(("river",)), np.random.default_rng((seed, i))) for i in range(_CHAINS)]


def _start(sampler: Sampler, chains: Sequence[Chain], seed: int) -> list[State]:
    """Drafts of 4 to 19 words, as chains have them on their way."""
    sentences = []
    for i, chain in enumerate(chains):
        rng = np.random.default_rng((seed, i, 1))
        sentence = chain.constraints.start(chain.rng)
        for word in rng.choice(_WORDS, 2 + i):
            sentence = sentence.apply(Edit(Action.INSERT, int(rng.integers(len(sentence))), str(word)))
        sentences.append(sentence)
    return sampler.read(chains, sentences)


def _measure(make: Callable[[], list[Any]], seed: int, at_once: int) -> tuple[list[State], NDArray[np.float64]]:
    """States after some steps of all chains, and [wall, processor] seconds a chain-step; by models without memories."""
    sampler, chains = make_sampler(make()), _chains(seed)
    states = _start(sampler, chains, seed)
    ends: list[State] = []
    started = np.array([time.perf_counter(), time.process_time()])
    for at in range(0, _CHAINS, at_once):
        part = slice(at, at + at_once)
        ends += run(sampler, chains[part], _STEPS, states[part])[0]
    return ends, (np.array([time.perf_counter(), time.process_time()]) - started) / (_CHAINS * _STEPS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    is_able = compute_dtype() is torch.bfloat16
    os.environ[PRECISION] = "float32"  # ways of computing are compared to 1e-4
    models, source = _models(open_pack(arguments.pack))
    config = models[0].network.config
    print(
        f"{source}: {config.n_layer} layers of {config.d_model}, {config.vocab_size:,} pieces; "
        f"{arguments.threads} threads, 50 candidates, {_CHAINS} chains of 4 to 19 words\n"
    )
    hub = HubNetwork(models[0].network)
    low = copy.deepcopy(models[0].network).bfloat16()

    def fast(network: XlnetLM) -> list[Any]:
        return [XlnetReader(m.name, network, m.pieces, backward=m.backward) for m in models]

    ways: dict[str, tuple[Callable[[], list[Any]], int]] = {
        f"batch of {_CHAINS}": (lambda: fast(models[0].network), _CHAINS),
        "one chain": (lambda: fast(models[0].network), 1),
        "one chain, whole sentences, all logits": (lambda: [PlainXlnet(model) for model in models], 1),
        "the same with transformers' network": (lambda: [PlainXlnet(model, hub) for model in models], 1),
    }
    if is_able:
        ways = {_ROUNDED: (lambda: fast(low), _CHAINS), **ways}
    for make, at_once in ways.values():
        _measure(make, 99, at_once)  # the first calls are slow
    # In turn, round by round: whatever else the machine does, it does to all of them.
    seconds = {way: np.zeros(2) for way in ways}
    for seed in range(arguments.rounds):
        expected: list[State] = []
        for way, (make, at_once) in ways.items():
            ends, taken = _measure(make, seed, at_once)
            if way != _ROUNDED:
                check_same(ends, expected or ends)
                expected = ends
            seconds[way] += taken / arguments.rounds
    first = next(iter(seconds.values()))
    for way, (wall, processor) in seconds.items():
        ratios = f"{wall / first[0]:5.1f} times the first's, {processor / first[1]:5.1f} in processor time"
        print(f"{way:<42}{1000 * wall:8.1f} ms a chain-step   {ratios}")
    print("All in single precision end in the same sentences, their log-probabilities equal to 1e-4.")


if __name__ == "__main__":
    main()
