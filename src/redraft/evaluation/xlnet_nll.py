"""Negative log-likelihood of held-out sentences by an XLNet language model, in each order that it reads."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.corpus import Encoded
from redraft.evaluation.lstm_nll import MAX_WORDS, in_text_order
from redraft.models.batching import padded
from redraft.models.pieces import SentencePieces
from redraft.models.xlnet.network import ReadingOrder, XlnetLM

_SEED = 1  # of the positions that the masked order predicts
_BATCH = 32  # sentences per call


class Predictor:
    """Computes the predictions of a batch in one order: hidden states and the pieces that they should predict."""

    def __init__(self, network: XlnetLM, splitter: SentencePieces):
        self._network, self._splitter = network, splitter

    def __call__(
        self, sentences: Sequence[NDArray[np.uint16]], order: ReadingOrder, masked: Sequence[NDArray[np.int64]] = ()
    ) -> tuple[Tensor, Tensor]:
        """States [n, d] and target pieces [n]. ``masked`` are the positions that the masked order predicts."""
        rows = [[self._splitter.begin, *sentence.tolist(), self._splitter.end] for sentence in sentences]
        if order is ReadingOrder.MASKED:
            return self._predict_masked(rows, masked)
        if order is ReadingOrder.BACKWARD:
            rows = [row[::-1] for row in rows]
        ids, real = padded(rows, self._splitter.padding)
        hidden, _ = self._network.transformer.causal(ids[:, :-1], backward=order is ReadingOrder.BACKWARD)
        return hidden[real[:, 1:]], ids[:, 1:][real[:, 1:]]

    def _predict_masked(
        self, rows: Sequence[Sequence[int]], masked: Sequence[NDArray[np.int64]]
    ) -> tuple[Tensor, Tensor]:
        ids, real = padded(rows, self._splitter.padding)
        mask = torch.zeros_like(real)
        for row, positions in enumerate(masked):
            mask[row, torch.from_numpy(positions) + 1] = True  # BOS comes first
        return self._network.transformer(ids, real, mask)[mask], ids[mask]


def draw_masked(lengths: Iterable[int], share: float, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Positions to predict in sentences of these lengths: a share of them, at least one."""
    return [np.sort(rng.permutation(length)[: max(1, round(share * length))]) for length in lengths]


@torch.inference_mode()
def piece_nll(
    network: XlnetLM, splitter: SentencePieces, data: Encoded, order: ReadingOrder
) -> list[NDArray[np.float64]]:
    """NLL of each piece of each sentence in text order, followed by that of the sentence end.

    The order is forward or backward.
    """
    predict = Predictor(network, splitter)
    result = [np.empty(0)] * len(data)
    by_length = np.argsort(data.lengths, kind="stable")
    for start in range(0, len(by_length), _BATCH):
        rows = by_length[start : start + _BATCH]
        nll = -network.log_prob_of(*predict([data.sentence(row) for row in rows], order)).double().numpy()
        for row, found in zip(rows, np.split(nll, np.cumsum(data.lengths[rows] + 1)[:-1]), strict=True):
            result[row] = in_text_order(found, is_backward=order is ReadingOrder.BACKWARD)
    return result


def sum_by_words(
    splitter: SentencePieces, sentences: Iterable[Sequence[str]], by_piece: Iterable[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """The values of ``piece_nll`` summed over the pieces of each word; the sentence end stays last."""
    starts = ([0, *(len(splitter.split(word)) for word in words[:MAX_WORDS])] for words in sentences)
    return [np.add.reduceat(nll, np.cumsum(first)) for nll, first in zip(by_piece, starts, strict=True)]


def nll_by_order(
    network: XlnetLM,
    splitter: SentencePieces,
    data: Encoded,
    num_words: NDArray[np.int64],
    orders: Sequence[ReadingOrder],
    rows: NDArray[np.int64] | None = None,
) -> dict[str, float]:
    """Mean NLL per word and sentence end, by order; masked: per piece, of one piece per sentence given all others."""
    rng, predict = np.random.default_rng(_SEED), Predictor(network, splitter)
    rows = np.arange(len(data)) if rows is None else rows
    rows = rows[np.argsort(data.lengths[rows], kind="stable")]
    masked = draw_masked(data.lengths[rows], 0.0, rng)
    totals = dict.fromkeys(sorted(set(orders), key=list(ReadingOrder).index), 0.0)
    with torch.inference_mode():
        for start in range(0, len(rows), _BATCH):
            part = slice(start, start + _BATCH)
            sentences = [data.sentence(row) for row in rows[part]]
            for order in totals:
                hidden, target = predict(sentences, order, masked[part])
                totals[order] -= network.log_prob_of(hidden, target).double().sum().item()
    words = int(num_words[rows].sum()) + len(rows)
    return {
        order.value: round(total / (len(rows) if order is ReadingOrder.MASKED else words), 4)
        for order, total in totals.items()
    }
