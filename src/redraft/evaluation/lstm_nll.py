"""Negative log-likelihood of held-out sentences by an LSTM language model."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.corpus import Encoded
from redraft.models.lstm.network import LstmLM
from redraft.models.vocabulary import END, START, UNKNOWN, Vocabulary

Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")
MAX_WORDS = 50  # per sentence, in training and in measuring; longer sentences are truncated


def padded(data: Encoded, rows: NDArray[np.int64], direction: Direction) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and the mask of real targets, each [time, rows]."""
    longest = int(data.lengths[rows].max())
    inputs = np.full((longest + 1, len(rows)), START, dtype=np.int64)
    targets = np.full((longest + 1, len(rows)), END, dtype=np.int64)
    real = np.zeros((longest + 1, len(rows)), dtype=np.bool_)
    for column, row in enumerate(rows):
        ids = data.sentence(row)
        if direction == "backward":
            ids = ids[::-1]
        inputs[1 : len(ids) + 1, column] = ids
        targets[: len(ids), column] = ids
        real[: len(ids) + 1, column] = True
    return torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(real)


def nll_per_word(model: LstmLM, data: Encoded, direction: Direction, batch: int = 64) -> float:
    """Mean NLL per word in nats. The end of a sentence counts as a word."""
    order = np.argsort(data.lengths, kind="stable")
    total, count = 0.0, 0
    for start in range(0, len(order), batch):
        inputs, targets, real = padded(data, order[start : start + batch], direction)
        total += model.loss(inputs, targets, real).item()
        count += int(real.sum())
    return total / count


@torch.inference_mode()
def word_nll(model: LstmLM, data: Encoded, direction: Direction, batch: int = 64) -> list[NDArray[np.float64]]:
    """NLL of each word of each sentence in text order, followed by that of the sentence end."""
    result = [np.empty(0)] * len(data)
    order = np.argsort(data.lengths, kind="stable")
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        inputs, targets, real = padded(data, rows, direction)
        hidden, _ = model(inputs)
        nll = torch.zeros(real.shape, dtype=torch.float64)
        nll[real] = -model.softmax.log_prob_of(hidden[real], targets[real]).double()
        for row, found in zip(rows, nll.T.numpy(), strict=True):
            result[row] = in_text_order(found[: data.lengths[row] + 1], is_backward=direction == "backward")
    return result


def known_words(vocabulary: Vocabulary, sentences: Iterable[Sequence[str]]) -> list[NDArray[np.bool_]]:
    """Mask of the entries of ``word_nll`` that belong to words of the vocabulary or to a sentence end."""
    return [np.array([*vocabulary.ids(words[:MAX_WORDS]), END]) != UNKNOWN for words in sentences]


def mean_over(nlls: Iterable[NDArray[np.float64]], known: Iterable[NDArray[np.bool_]]) -> float:
    """Mean NLL over the words that are known."""
    kept = [nll[mask] for nll, mask in zip(nlls, known, strict=True)]
    return float(np.concatenate(kept).mean())


def in_text_order(read: NDArray[np.float64], *, is_backward: bool) -> NDArray[np.float64]:
    """Reorder values from reading order to text order; the sentence end stays last."""
    return np.append(read[-2::-1], read[-1]) if is_backward else read
