"""The training task of the token classifier, and its scores on validation data."""

import hashlib
import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from redraft.predict.classifier import LABELS, sentence_groups
from redraft.predict.pieces import Splitter
from redraft.predict.readings import XlnetOverReadings
from redraft.predict.xlnet import XlnetTokenClassifier
from redraft.synthesis.words import Method
from redraft.training.batches import Batches
from redraft.training.classifier_data import IGNORED, LabelledPieces
from redraft.training.label_scores import LabelScores
from redraft.training.muon import optimizers
from redraft.training.processes import WHOLE, Share

BATCH_PIECES = 3072
_NUM_SELECTION = 6000  # validation sentences that select the best checkpoint; the final scores use all of them


class ClassifierTask:
    """A token classifier as a task of redraft.training.loop. The validation loss is 1 - macro-F1."""

    def __init__(
        self,
        network: nn.Module,
        splitter: Splitter,
        train_data: LabelledPieces,
        valid_data: LabelledPieces,
        *,
        batch_pieces: int = BATCH_PIECES,
        seed: int = 0,
        identity: str = "",
    ):
        self._network, self._splitter, self._train, self._valid = network, splitter, train_data, valid_data
        self._batches = Batches(train_data.pieces, batch_pieces, seed)
        self._optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(network.parameters(), fused=True)]
        if isinstance(network, XlnetTokenClassifier | XlnetOverReadings):
            self._optimizers = optimizers(network)
        self._batch_pieces, self._identity = batch_pieces, identity

    @property
    def module(self) -> nn.Module:
        return self._network

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return self._optimizers

    @property
    def settings(self) -> dict[str, Any]:
        shapes = {name: list(value.shape) for name, value in self._network.state_dict().items()}
        return {
            "batch_pieces": self._batch_pieces,
            "sentences": len(self._train),
            "data or init": self._identity,
            "network": hashlib.sha256(json.dumps(shapes).encode()).hexdigest(),
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        """Cross entropy without class weights. The loop's tokens are the labels to predict."""
        rows = share.of(self._batches.rows(step))
        if not len(rows):
            return torch.zeros(()), 0
        ids, real, labels = self._train.batch(rows, self._splitter.padding)
        known = labels != IGNORED
        loss = functional.cross_entropy(self._network(ids, real)[known], labels[known], reduction="sum")
        return loss, int(known.sum())

    def validate(self) -> dict[str, float]:
        # A random sample, not every n-th sentence: the recipes of the instances alternate.
        rows = np.random.default_rng(0).permutation(len(self._valid))[:_NUM_SELECTION]
        return {"1 - macro-F1": 1 - score(self._network, self._valid, rows, self._splitter.padding).macro_f1}


def score(network: nn.Module, data: LabelledPieces, rows: NDArray[np.int64], padding: int) -> LabelScores:
    """Scores of the predicted labels of some sentences."""
    counts = np.zeros(len(LABELS) ** 2, dtype=np.int64)
    with torch.inference_mode():
        for group in sentence_groups(data.pieces.lengths[rows].tolist()):
            ids, real, labels = data.batch(rows[group], padding)
            known = labels != IGNORED
            pairs = labels[known] * len(LABELS) + network(ids, real)[known].argmax(-1)
            counts += np.bincount(pairs.numpy(), minlength=len(counts))
    return LabelScores(counts.reshape(len(LABELS), len(LABELS)))


def score_sets(network: nn.Module, data: LabelledPieces, padding: int) -> dict[str, LabelScores]:
    """Scores on the masked-LM, the random and the whole validation set; sets without sentences are left out."""
    rows = {method.value: np.flatnonzero(data.methods == method.value) for method in Method}
    scores = {name: score(network, data, found, padding) for name, found in rows.items() if len(found)}
    whole = LabelScores(np.sum([part.counts for part in scores.values()], axis=0))
    return {**scores, "whole": whole}
