"""Training the token classifier on synthetic data."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from redraft.corpus import Encoded
from redraft.errors import InputError, reason
from redraft.files import replacing, sha256
from redraft.models.lstm_files import load_pair, readers_sha256
from redraft.models.pack import DEFAULT, Pack, open_pack
from redraft.models.xlnet_files import CONFIG, PIECES_SHA256, WEIGHTS, read_weights, weights_file
from redraft.predict.classifier import (
    LABELS,
    OVER_READINGS,
    READERS,
    HubNetwork,
    groups,
    labels_of,
    load_classifier,
    padded,
    read_config,
)
from redraft.predict.pieces import PIECES, HubPieces, PieceEncoder, SentencePieces, Splitter, WordIds
from redraft.predict.readings import XlnetOverReadings
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier
from redraft.synthesis.shards import SPLITS, check_shards, read_card, read_shard, shard_paths
from redraft.synthesis.words import Method
from redraft.training.label_scores import LabelScores
from redraft.training.lm import Batches
from redraft.training.loop import BEST, Schedule, train
from redraft.training.muon import optimizers
from redraft.training.processes import WHOLE, Share

IGNORED = 255  # the label of a piece that does not begin a word, and of BOS
LEARNING_RATE = 2e-3  # from scratch; the paper's 1e-5 is for a model that was trained before
FINE_TUNING_RATE = 1e-4
ClassifierBase = (
    Path | Pack | None
)  # where a classifier's words come from: pieces, a pack's LSTM models, its own folder
_SELECTION = 6000  # validation sentences that choose the best checkpoint; the scores are of all of them


@dataclass(frozen=True)
class LabelledPieces:
    """Instances in pieces: ``labels`` has one for every piece, ``methods`` one for every sentence."""

    pieces: Encoded
    labels: NDArray[np.uint8]
    methods: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def num_words(self) -> int:
        """Labels to be predicted: words and ends of sentences."""
        return int((self.labels != IGNORED).sum())


def read_tagged(folder: Path, split: str, splitter: Splitter) -> LabelledPieces:
    """All instances of a split, in pieces. The first piece of a word carries its label."""
    encoder = PieceEncoder(splitter)
    kind = np.uint16 if splitter.size <= 1 << 16 else np.int32
    ids: list[NDArray[Any]] = []
    labels: list[NDArray[np.uint8]] = []
    lengths: list[int] = [0]
    methods: list[str] = []
    for path in shard_paths(folder, split):
        shard_ids: list[int] = []
        shard_labels: list[int] = []
        for row in read_shard(path):
            encoding = encoder.encode(row.words)
            tags = [IGNORED] * len(encoding.ids)
            for first, label in zip(encoding.firsts, row.labels[1:], strict=True):
                tags[first] = label
            shard_ids += encoding.ids
            shard_labels += tags
            lengths.append(len(tags))
            methods.append(row.method)
        ids.append(np.array(shard_ids, kind))
        labels.append(np.array(shard_labels, np.uint8))
    return LabelledPieces(Encoded(np.concatenate(ids), np.cumsum(lengths)), np.concatenate(labels), np.array(methods))


class ClassifierTask:
    """A token classifier for redraft.training.loop. What it minimises on validation data is 1 - macro-F1."""

    def __init__(
        self,
        network: nn.Module,
        splitter: Splitter,
        train_data: LabelledPieces,
        valid_data: LabelledPieces,
        *,
        batch_pieces: int = 3072,
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
        """Cross entropy, every class alike; a token is a label to be predicted."""
        rows = share.of(self._batches.rows(step))
        if not len(rows):
            return torch.zeros(()), 0
        ids, real, labels = batch(self._train, rows, self._splitter.padding)
        known = labels != IGNORED
        return functional.cross_entropy(self._network(ids, real)[known], labels[known], reduction="sum"), int(
            known.sum()
        )

    def validate(self) -> dict[str, float]:
        # Not every fourth sentence: the kinds of instances come in turn.
        rows = np.random.default_rng(0).permutation(len(self._valid))[:_SELECTION]
        return {"lack of macro-F1": 1 - score(self._network, self._valid, rows, self._splitter.padding).macro_f1}


def batch(data: LabelledPieces, rows: Sequence[int] | NDArray[np.int64], padding: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, which of them are real, and labels, each [rows, time]."""
    spans = [slice(*data.pieces.starts[row : row + 2]) for row in rows]
    ids, real = padded([data.pieces.ids[span] for span in spans], padding)
    labels, _ = padded([data.labels[span] for span in spans], IGNORED)
    return ids, real, labels


def score(network: nn.Module, data: LabelledPieces, rows: NDArray[np.int64], padding: int) -> LabelScores:
    """How well the labels of some sentences are predicted."""
    counts = np.zeros(len(LABELS) ** 2, dtype=np.int64)
    with torch.inference_mode():
        for group in groups(data.pieces.lengths[rows].tolist()):
            ids, real, labels = batch(data, rows[group], padding)
            known = labels != IGNORED
            pairs = labels[known] * len(LABELS) + network(ids, real)[known].argmax(-1)
            counts += np.bincount(pairs.numpy(), minlength=len(counts))
    return LabelScores(counts.reshape(len(LABELS), len(LABELS)))


def score_sets(network: nn.Module, data: LabelledPieces, padding: int) -> dict[str, LabelScores]:
    """Scores on the masked-LM, the random and the whole validation set; a set without sentences is left out."""
    rows = {method.value: np.flatnonzero(data.methods == method.value) for method in Method}
    scores = {name: score(network, data, found, padding) for name, found in rows.items() if len(found)}
    whole = LabelScores(np.sum([part.counts for part in scores.values()], axis=0))
    return {**scores, "whole": whole}


def new_classifier(
    pieces: Path, shape: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[XlnetTokenClassifier, Splitter]:
    """A compact XLNet with fresh weights over a SentencePiece vocabulary; ``shape`` are fields of its configuration."""
    splitter = SentencePieces(pieces)
    torch.manual_seed(seed)  # torch's initialisers have no generator of their own
    return XlnetTokenClassifier(replace(XlnetConfig(splitter.size), **(shape or {})), len(LABELS)), splitter


def new_reading_classifier(
    pack: Pack, shape: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[XlnetOverReadings, Splitter]:
    """An XLNet with fresh weights over what the LSTM models of a pack read."""
    readers, vocabulary = load_pair(pack)
    torch.manual_seed(seed)
    config = replace(XlnetConfig(len(vocabulary)), **(shape or {}))
    return XlnetOverReadings(config, len(LABELS), readers, vocabulary), WordIds(vocabulary)


def _start(
    init: Path | None, pieces: Path | None, readers: Pack | None, shape: Mapping[str, Any] | None, seed: int
) -> tuple[nn.Module, Splitter, ClassifierBase]:
    """An untrained classifier, or another model's weights; one over readings goes on with those of ``readers``."""
    if init is not None and pieces is None and read_config(init).get("model_type") == OVER_READINGS:
        pack = readers or open_pack(DEFAULT)
        loaded = load_classifier(init, pack=pack)
        return loaded.network, loaded.splitter, pack
    if [init, pieces, readers].count(None) != 2:
        raise InputError(
            "a classifier starts from another model (--init), from pieces (--pieces or --corpus) or from what the "
            "models of a pack read (--readers); name one of them"
        )
    if readers is not None:
        return *new_reading_classifier(readers, shape, seed), readers
    if pieces is not None:
        return *new_classifier(pieces, shape, seed), pieces
    if init is None:
        raise ValueError("nothing to start from")
    spiece = init / PIECES
    return *classifier_from(init, seed), spiece if spiece.exists() else None


def classifier_from(folder: Path, seed: int = 0) -> tuple[nn.Module, Splitter]:
    """A classifier that starts from the weights of another model: a language model or a classifier."""
    config = read_config(folder)
    if not (XlnetConfig.supports(config) and (folder / PIECES).exists()):
        return _from_hub(folder)
    network, splitter = new_classifier(folder / PIECES, asdict(XlnetConfig.read(config)), seed)
    if splitter.size != config["vocab_size"]:
        raise InputError(f"{folder / PIECES} has {splitter.size} pieces, the model {config['vocab_size']}")
    own = network.state_dict()
    # A language model has a head of its own, which is left behind, and so is that of a classifier of other labels.
    kept = tuple(own) if labels_of(config) == LABELS else tuple(name for name in own if name.startswith("transformer."))
    given = {name: value for name, value in read_weights(folder).items() if name in kept}
    if missing := [name for name in own if name.startswith("transformer.") and name not in given]:
        raise InputError(f"{weights_file(folder)} lacks {missing[0]}; it is not an XLNet to start from")
    try:
        network.load_state_dict(given, strict=False)
    except RuntimeError as error:
        raise InputError(f"{weights_file(folder)} does not hold what {CONFIG} describes: {reason(error)}") from error
    return network, splitter


def _from_hub(folder: Path) -> tuple[nn.Module, Splitter]:
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model = AutoModelForTokenClassification.from_pretrained(
            folder,
            dtype=torch.float32,
            id2label=dict(enumerate(LABELS)),
            label2id={name: i for i, name in enumerate(LABELS)},
            ignore_mismatched_sizes=True,
            trust_remote_code=False,
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} cannot be loaded as a token classifier: {reason(error)}") from error
    return HubNetwork(model, tokenizer), HubPieces(tokenizer)


def _sha256(base: ClassifierBase) -> str:
    if base is None:
        return ""
    return readers_sha256(base) if isinstance(base, Pack) else sha256(base)


def save_classifier(network: nn.Module, folder: Path, base: ClassifierBase = None) -> None:
    """Write a classifier as transformers would; a compact XLNet in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, HubNetwork):
        network.save(folder)
        return
    if isinstance(network, XlnetOverReadings) and isinstance(base, Pack):
        about: dict[str, Any] = {"model_type": OVER_READINGS, READERS: _sha256(base)}
    elif isinstance(network, XlnetTokenClassifier) and isinstance(base, Path):
        about = {"model_type": "xlnet", "architectures": ["XLNetForTokenClassification"], "dropout": 0.0}
        about[PIECES_SHA256] = _sha256(base)
        if base.resolve() != (folder / PIECES).resolve():
            with replacing(folder / PIECES) as partial:
                shutil.copyfile(base, partial)
    else:
        raise ValueError("an XLNet is saved with its pieces or with the pack whose models it reads by")
    config = {
        **about,
        **asdict(network.config),
        "id2label": {str(i): name for i, name in enumerate(LABELS)},
        "label2id": {name: i for i, name in enumerate(LABELS)},
    }
    with replacing(folder / CONFIG) as partial:
        partial.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    with replacing(folder / WEIGHTS) as partial:
        halves = {name: value.half() for name, value in network.state_dict().items()}
        save_file(halves, partial, metadata={"format": "pt"})


def train_classifier(
    data: Path,
    out: Path,
    *,
    init: Path | None = None,
    pieces: Path | None = None,
    readers: Pack | None = None,
    shape: Mapping[str, Any] | None = None,
    epochs: float = 2.0,
    learning_rate: float | None = None,
    batch_pieces: int = 3072,
    seed: int = 0,
    quiet: bool = False,
) -> dict[str, LabelScores]:
    """Train on a folder of synthetic data; call again to resume.

    A classifier starts from ``init``, or from scratch: over ``pieces``, or over what the LSTM models of a pack read.

    The best checkpoint is left in ``out`` as a classifier, with a card that tells its scores, which are returned.
    """
    card = read_card(data)
    if not card.get("complete"):
        raise InputError(f"{data} is not complete; run redraft synthesize again to finish it")
    check_shards(data, card)
    for split in SPLITS:
        shard_paths(data, split)  # before any work
    network, splitter, base = _start(init, pieces, readers, shape, seed)
    train_data, valid_data = (read_tagged(data, split, splitter) for split in SPLITS)
    start = "" if init is None else str(init.resolve())
    identity = hashlib.sha256(json.dumps([card["shards"], _sha256(base), start]).encode()).hexdigest()
    task = ClassifierTask(
        network, splitter, train_data, valid_data, batch_pieces=batch_pieces, seed=seed, identity=identity
    )
    rate = learning_rate or (FINE_TUNING_RATE if init else LEARNING_RATE)
    plan = Schedule(max(1, int(epochs * train_data.num_words)), rate, seed=seed)
    train(task, plan, out, quiet=quiet)
    network.load_state_dict(load_file(out / BEST))
    network.eval()
    save_classifier(network, out, base)
    scores = score_sets(network, valid_data, splitter.padding)
    _write_card(out, card, plan, scores)
    return scores


def _write_card(out: Path, data: dict[str, Any], plan: Schedule, scores: dict[str, LabelScores]) -> None:
    content = {
        "data": {key: value for key, value in data.items() if key != "shards"},
        "training": {"words": plan.num_tokens, "learning_rate": plan.learning_rate, "seed": plan.seed},
        "scores": {name: part.as_json() for name, part in scores.items()},
    }
    with replacing(out / "card.json") as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
