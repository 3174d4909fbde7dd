"""Chain-steps per second: one chain, batches, and the plain way; all in one run, because machines differ.

python benchmarks/sampler.py [--pack NAME|DIR] [--threads N]
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch
from plain import PlainReader
from timing import check_same, make_sampler, one_by_one, run

from redraft.models.base import Words
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import DEFAULT, open_pack
from redraft.numerics import Array
from redraft.predict.classifier import CLASSIFIER, Classifier, pack_classifier
from redraft.predict.learned import LearnedPrior
from redraft.predict.prior import Prior
from redraft.sampler import Chain, Sampler
from redraft.sentence import Constraints

_KEYWORDS = ("person home problems depression", "view", "promoting energy", "experience feels dream", "seized party")


def _chains(count: int, **limits: int) -> list[Chain]:
    return [
        Chain(Constraints(tuple(_KEYWORDS[i % len(_KEYWORDS)].split()), **limits), np.random.default_rng((0, i)))
        for i in range(count)
    ]


def _template(words: int, number: int) -> Constraints:
    """A sentence of so many words with one blank in the middle: its length stays what it is, its words do not."""
    sentence = "the old house near a big river was sold to some people who had never seen it".split()
    half = [sentence[(number + i) % len(sentence)] for i in range(words // 2)]
    return Constraints(template=" ".join([*half, "___", *half, "."]), max_words=2 * len(half) + 3)


class TimedClassifier(Classifier):
    """A classifier that knows how long it took."""

    seconds = 0.0

    def log_probs(self, sentences: Sequence[Words]) -> list[Array]:
        started = time.perf_counter()
        found = super().log_probs(sentences)
        self.seconds += time.perf_counter() - started
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pack = open_pack(arguments.pack)
    parts = ("forward", "backward")

    def fast(prior: Prior | None = None) -> Sampler:
        """New readers for every run: they remember scores, and runs go through the same sentences."""
        return make_sampler([load_lstm(pack, part) for part in parts], prior)

    print(f"pack {pack.name}@{pack.fingerprint}, {arguments.threads} threads, 50 candidates, up to 25 words")
    run(fast(), _chains(4), 5)  # the first calls are slow

    count, steps = 32, 40
    batch, batch_seconds = run(fast(), _chains(count), steps)
    few = 3
    alone, alone_seconds = one_by_one(fast(), _chains(few), steps)
    print(f"\n{'one chain':<46}{1 / alone_seconds:8.1f} chain-steps/s")
    print(f"{f'batch of {count}':<46}{1 / batch_seconds:8.1f} chain-steps/s")
    for whole_softmax, label in ((True, "all logits, as published"), (False, "adaptive softmax")):
        plain = make_sampler([PlainReader(load_lstm(pack, part), whole_softmax=whole_softmax) for part in parts])
        states, seconds = one_by_one(plain, _chains(few), steps)
        check_same(states, batch[:few])
        check_same(states, alone)
        ratio = f"batch / plain = {seconds / batch_seconds:.1f}, one chain / plain = {seconds / alone_seconds:.1f}"
        print(f"{f'plain: one chain, no caches, {label}':<46}{1 / seconds:8.1f} chain-steps/s   {ratio}")
    print("All end in the same sentences, their log-probabilities equal to 1e-4.")

    print("\nwords   ms a chain-step (batch of 16)")
    for words in (10, 20, 40, 80):
        chains = [Chain(_template(words, i), np.random.default_rng((1, i))) for i in range(16)]
        print(f"{words:5}   {1000 * run(fast(), chains, 8)[1]:.1f}")
    print("\nbatch   chain-steps/s")
    for size in (1, 2, 4, 8, 16, 32, 64):
        print(f"{size:5}   {1 / run(fast(), _chains(size), 20)[1]:.1f}")

    if CLASSIFIER in pack.parts:
        classifier = pack_classifier(pack)
        print("\nbatch   what the classifier adds to a step with the learned prior")
        for size, steps in ((1, 100), (16, 40)):
            timed = TimedClassifier(classifier.network, classifier.splitter)
            seconds = run(fast(LearnedPrior(timed)), _chains(size), steps)[1] * size * steps
            print(f"{size:5}   {timed.seconds / (seconds - timed.seconds):.1%}")


if __name__ == "__main__":
    main()
