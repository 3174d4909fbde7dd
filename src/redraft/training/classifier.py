"""Training the token classifier on synthetic data."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from redraft.errors import InputError
from redraft.files import replacing
from redraft.models.encoder import CasedPieces
from redraft.models.pack import DEFAULT, Pack, open_pack
from redraft.predict.classifier import OVER_READINGS, load_classifier, read_config
from redraft.predict.pieces import PIECES, Splitter
from redraft.synthesis.shards import SPLITS, check_shards, read_card, shard_paths
from redraft.training.classifier_data import read_labelled, words_of
from redraft.training.classifier_files import (
    ClassifierBase,
    base_sha256,
    classifier_from,
    new_classifier,
    new_reading_classifier,
    save_classifier,
)
from redraft.training.classifier_task import BATCH_PIECES, ClassifierTask, score_sets
from redraft.training.label_scores import LabelScores
from redraft.training.loop import BEST, Schedule, train

LEARNING_RATE = 2e-3  # from scratch; the paper's 1e-5 is for a pretrained model
FINE_TUNING_RATE = 1e-4


@dataclass(frozen=True)
class ClassifierTraining:
    """How a classifier is trained. It starts from exactly one of ``init``, ``pieces`` and ``readers``.

    data            folder of synthetic data
    init            folder of a model to start from; one over LSTM states may also name its ``readers``
    pieces          SentencePiece vocabulary, for random weights over pieces
    readers         pack, for random weights over the hidden states of its LSTM models
    shape           fields of the network's configuration, for random weights
    learning_rate   None: LEARNING_RATE from scratch, else FINE_TUNING_RATE
    batch_pieces    sub-word pieces in a batch
    """

    data: Path
    init: Path | None = None
    pieces: Path | None = None
    readers: Pack | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    epochs: float = 2.0
    learning_rate: float | None = None
    batch_pieces: int = BATCH_PIECES
    seed: int = 0

    def schedule(self, num_words: int) -> Schedule:
        """The schedule for a training set of this many words."""
        rate = self.learning_rate or (FINE_TUNING_RATE if self.init else LEARNING_RATE)
        return Schedule(max(1, int(self.epochs * num_words)), rate, seed=self.seed)


def train_classifier(config: ClassifierTraining, out: Path, *, quiet: bool = False) -> dict[str, LabelScores]:
    """Train on synthetic data, or resume training; returns the scores on the validation sets.

    The best checkpoint is saved in ``out`` as a classifier, with a card that states its scores.
    """
    card = _checked_card(config.data)
    network, splitter, base = _start(config)
    train_data, valid_data = (read_labelled(config.data, split, splitter) for split in SPLITS)
    task = ClassifierTask(
        network,
        splitter,
        train_data,
        valid_data,
        batch_pieces=config.batch_pieces,
        seed=config.seed,
        identity=_identity(config, card, base),
    )
    schedule = config.schedule(train_data.num_words)
    train(task, schedule, out, quiet=quiet)
    network.load_state_dict(load_file(out / BEST))
    network.eval()
    save_classifier(network, out, base)
    scores = score_sets(network, valid_data, splitter.padding)
    _write_card(out, card, schedule, scores)
    return scores


def _checked_card(data: Path) -> dict[str, Any]:
    """The card of the data, once its shards are known to be complete."""
    card = read_card(data)
    if not card.get("complete"):
        raise InputError(f"{data} is not complete; run redraft synthesize again to finish it")
    check_shards(data, card)
    for split in SPLITS:
        shard_paths(data, split)
    return card


def _start(config: ClassifierTraining) -> tuple[nn.Module, Splitter, ClassifierBase]:
    """The network before training, its splitter, and what it is saved with."""
    init, pieces, readers = config.init, config.pieces, config.readers
    if init is not None and pieces is None and read_config(init).get("model_type") == OVER_READINGS:
        pack = readers or open_pack(DEFAULT)
        loaded = load_classifier(init, pack=pack)
        return loaded.network, loaded.splitter, pack
    if [init, pieces, readers].count(None) != 2:
        raise InputError(
            "a classifier starts from another model (--init), from pieces (--pieces or --corpus) or from the LSTM "
            "models of a pack (--readers); name one of them"
        )
    if readers is not None:
        return *new_reading_classifier(readers, config.shape, config.seed), readers
    if pieces is not None:
        return *new_classifier(pieces, config.shape, config.seed), pieces
    if init is None:
        raise ValueError("nothing to start from")
    network, splitter = classifier_from(init, words_of(config.data), config.seed)
    if isinstance(splitter, CasedPieces):
        return network, splitter, splitter
    spiece = init / PIECES
    return network, splitter, spiece if spiece.exists() else None


def _identity(config: ClassifierTraining, card: Mapping[str, Any], base: ClassifierBase) -> str:
    """A hash of the data and the starting point: a run is not resumed with others."""
    start = "" if config.init is None else str(config.init.resolve())
    return hashlib.sha256(json.dumps([card["shards"], base_sha256(base), start]).encode()).hexdigest()


def _write_card(out: Path, data: dict[str, Any], schedule: Schedule, scores: dict[str, LabelScores]) -> None:
    content = {
        "data": {key: value for key, value in data.items() if key != "shards"},
        "training": {"words": schedule.num_tokens, "learning_rate": schedule.learning_rate, "seed": schedule.seed},
        "scores": {name: part.as_json() for name, part in scores.items()},
    }
    with replacing(out / "card.json") as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
