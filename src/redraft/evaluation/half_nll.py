"""Negative log-likelihood of the rest of a sentence, forward or backward from a word inside it."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.corpus import Encoded
from redraft.evaluation.lstm_nll import Direction
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.vocabulary import END, Vocabulary

_BATCH = 64


def random_words(
    vocabulary: Vocabulary, data: Encoded, rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The position of a random word of each sentence; punctuation is not a word, unless there is nothing else."""
    levels = rng.random(len(rows))
    found = np.empty(len(rows), dtype=np.int64)
    for i, row in enumerate(rows):
        ids = data.sentence(row)
        places = np.flatnonzero(vocabulary.is_word[ids])
        places = places if len(places) else np.arange(len(ids))
        found[i] = places[int(levels[i] * len(places))]
    return found


def padded_halves(
    data: Encoded, rows: NDArray[np.int64], positions: NDArray[np.int64], direction: Direction
) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs from the given positions on, targets and the mask of real targets, each [time, rows]."""
    halves = [
        ids[at::-1] if direction == "backward" else ids[at:]
        for ids, at in ((data.sentence(row), at) for row, at in zip(rows, positions, strict=True))
    ]
    longest = max(map(len, halves))
    inputs = np.full((longest, len(rows)), END, dtype=np.int64)
    targets = np.full((longest, len(rows)), END, dtype=np.int64)
    real = np.zeros((longest, len(rows)), dtype=np.bool_)
    for column, half in enumerate(halves):
        inputs[: len(half), column] = half
        targets[: len(half) - 1, column] = half[1:]
        real[: len(half), column] = True
    return torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(real)


def half_loss(network: LstmLM, state: LstmState, inputs: Tensor, targets: Tensor, real: Tensor) -> Tensor:
    """Summed NLL of the real targets, read from a start state of [layers, 1, size]."""
    hidden, cell = (part.expand(-1, inputs.shape[1], -1).contiguous() for part in state)
    read, _ = network(inputs, (hidden, cell))
    loss: Tensor = network.softmax.loss(read[real], targets[real])
    return loss


@torch.inference_mode()
def half_nll(
    network: LstmLM, state: LstmState, vocabulary: Vocabulary, data: Encoded, direction: Direction, seed: int = 0
) -> float:
    """Mean NLL per word after a random word of each sentence, counting the end but not the word itself."""
    order = np.argsort(data.lengths, kind="stable")
    order = order[data.lengths[order] > 0]
    positions = random_words(vocabulary, data, order, np.random.default_rng(seed))
    total, count = 0.0, 0
    for start in range(0, len(order), _BATCH):
        part = slice(start, start + _BATCH)
        inputs, targets, real = padded_halves(data, order[part], positions[part], direction)
        total += half_loss(network, state, inputs, targets, real).item()
        count += int(real.sum())
    return total / count
