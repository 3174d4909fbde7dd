"""The training task of an XLNet language model that reads in several orders with one set of weights."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.evaluation.xlnet_nll import Predictor, draw_masked, nll_by_order
from redraft.models.output_layer import Columns, sample_columns
from redraft.models.pieces import SentencePieces
from redraft.models.precision import precision_name
from redraft.models.xlnet.network import ReadingOrder, XlnetLM
from redraft.training.batches import Batches
from redraft.training.muon import optimizers
from redraft.training.piece_data import PieceData
from redraft.training.processes import WHOLE, Share
from redraft.training.teacher import Teacher, TeacherBatch, TeacherTargets

BATCH_PIECES = 4096
_MASKED_SHARE = 0.25  # fraction of the pieces that the masked order predicts
_FREQUENT, _SAMPLED = 2000, 1500  # columns of the output layer in a training step
_NUM_SELECTION = 1000  # held-out sentences that select the best weights; the final scores use all of them


class _OrderPart(NamedTuple):
    """The sentences of a batch for one order; ``masked`` are the positions that the masked order predicts."""

    order: ReadingOrder
    sentences: list[NDArray[np.uint16]]
    masked: list[NDArray[np.int64]]

    def share(self, share: Share) -> "_OrderPart":
        return _OrderPart(self.order, share.of(self.sentences), share.of(self.masked))

    def targets(self, splitter: SentencePieces) -> NDArray[np.int64]:
        """The pieces to predict, in no particular order."""
        if self.order is ReadingOrder.MASKED:
            pieces = [sentence[positions] for sentence, positions in zip(self.sentences, self.masked, strict=True)]
        else:
            pieces = [
                *self.sentences,
                np.array([splitter.end if self.order is ReadingOrder.FORWARD else splitter.begin]),
            ]
        return np.concatenate(pieces).astype(np.int64) if pieces else np.empty(0, np.int64)


class XlnetTask:
    """An XLNet language model as a task of redraft.training.loop.

    Every batch is split among the orders; an order that is listed twice gets twice the sentences. The loop's tokens
    are the predicted pieces.
    """

    def __init__(
        self,
        network: XlnetLM,
        splitter: SentencePieces,
        data: PieceData,
        orders: Sequence[ReadingOrder],
        *,
        batch_pieces: int = BATCH_PIECES,
        seed: int = 0,
        identity: str = "",
        teacher: Teacher | None = None,
        precision: torch.dtype = torch.float32,
    ):
        self._network, self._splitter, self._data = network, splitter, data
        self._precision = precision
        self._orders, self._seed = tuple(orders), seed
        self._predict = Predictor(network, splitter)
        self._batches = Batches(data.train, batch_pieces, seed)
        self._batch_pieces, self._identity = batch_pieces, identity
        self._optimizers = optimizers(network, precision)
        self._teacher = teacher

    @property
    def module(self) -> XlnetLM:
        return self._network

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return self._optimizers

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "orders": [order.value for order in self._orders],
            "batch_pieces": self._batch_pieces,
            "sentences": len(self._data.train),
            "init": self._identity,
            "teacher": self._teacher.identity if self._teacher else None,
            "precision": precision_name(self._precision),
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        """Cross entropy of the predictions in all orders; the output layer is estimated from sampled columns."""
        rng = np.random.default_rng((self._seed, step))
        rows = self._batches.rows(step)
        num = len(self._orders)
        # Rotate the orders, so that each gets its turn when a batch has fewer sentences than there are orders.
        parts = [self._part(rows[(at + step) % num :: num], order, rng) for at, order in enumerate(self._orders)]
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        in_batch = torch.from_numpy(np.concatenate([part.targets(self._splitter) for part in parts]))
        columns = sample_columns(in_batch, self._network.config.vocab_size, _FREQUENT, _SAMPLED, generator)
        own = [taken for part in parts if (taken := part.share(share)).sentences]
        # Weights and activations between layers stay in single precision; matrix products use the other one.
        with torch.autocast("cpu", self._precision, enabled=self._precision is not torch.float32):
            found = [self._predict(part.sentences, part.order, part.masked) for part in own]
            if not found:
                return torch.zeros(()), 0
            hidden, target = (torch.cat(tensors) for tensors in zip(*found, strict=True))
            soft = self._soft_targets(own, [len(predicted) for _, predicted in found], columns)
            return self._network.loss(hidden, target, columns, soft), len(target)

    def _soft_targets(
        self, parts: Sequence[_OrderPart], num_predicted: Sequence[int], columns: Columns
    ) -> TeacherTargets | None:
        if self._teacher is None:
            return None
        batches = [
            TeacherBatch(part.order, part.sentences, num) for part, num in zip(parts, num_predicted, strict=True)
        ]
        return self._teacher.soft_targets(batches, columns)

    def _part(self, rows: NDArray[np.int64], order: ReadingOrder, rng: np.random.Generator) -> _OrderPart:
        sentences = [self._data.train.sentence(row) for row in rows]
        masked = draw_masked(map(len, sentences), _MASKED_SHARE, rng) if order is ReadingOrder.MASKED else []
        return _OrderPart(order, sentences, masked)

    def validate(self) -> dict[str, float]:
        spread = max(1, len(self._data.held_out) // _NUM_SELECTION)
        return self.scores(np.arange(0, len(self._data.held_out), spread))

    def scores(self, rows: NDArray[np.int64] | None = None) -> dict[str, float]:
        """NLL of held-out sentences by order."""
        data, num_words = self._data.held_out, self._data.held_out_words
        return nll_by_order(self._network, self._splitter, data, num_words, self._orders, rows)
