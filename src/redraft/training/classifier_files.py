"""Creating untrained token classifiers, loading weights to start from, and saving trained ones."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from redraft.errors import InputError, reason
from redraft.files import replacing, sha256
from redraft.models.lstm.files import load_pair, readers_sha256
from redraft.models.pack import Pack
from redraft.models.xlnet.files import CONFIG, PIECES_SHA256, WEIGHTS, read_weights, weights_file
from redraft.predict.classifier import LABELS, OVER_READINGS, READERS, HubNetwork, labels_of, read_config
from redraft.predict.pieces import PIECES, HubPieces, SentencePieces, Splitter, WordIds
from redraft.predict.readings import XlnetOverReadings
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier

# What turns words into inputs: a file of pieces, the LSTM models of a pack, or nothing besides the model's folder.
ClassifierBase = Path | Pack | None


def new_classifier(
    pieces: Path, shape: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[XlnetTokenClassifier, Splitter]:
    """A compact XLNet with random weights over a SentencePiece vocabulary; ``shape`` sets fields of its config."""
    splitter = SentencePieces(pieces)
    torch.manual_seed(seed)  # torch's initialisers have no generator of their own
    return XlnetTokenClassifier(replace(XlnetConfig(splitter.size), **(shape or {})), len(LABELS)), splitter


def new_reading_classifier(
    pack: Pack, shape: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[XlnetOverReadings, Splitter]:
    """An XLNet with random weights over the hidden states of the LSTM models of a pack."""
    readers, vocabulary = load_pair(pack)
    torch.manual_seed(seed)
    config = replace(XlnetConfig(len(vocabulary)), **(shape or {}))
    return XlnetOverReadings(config, len(LABELS), readers, vocabulary), WordIds(vocabulary)


def classifier_from(folder: Path, seed: int = 0) -> tuple[nn.Module, Splitter]:
    """A classifier that starts from the weights of a language model or of another classifier."""
    config = read_config(folder)
    if not (XlnetConfig.supports(config) and (folder / PIECES).exists()):
        return _from_hub(folder)
    network, splitter = new_classifier(folder / PIECES, asdict(XlnetConfig.read(config)), seed)
    if splitter.size != config["vocab_size"]:
        raise InputError(f"{folder / PIECES} has {splitter.size} pieces, the model {config['vocab_size']}")
    own = network.state_dict()
    # The output layer of a language model, or of a classifier with other labels, is not used.
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


def base_sha256(base: ClassifierBase) -> str:
    """Hash of the pieces or of the LSTM models that a classifier was trained with."""
    if base is None:
        return ""
    return readers_sha256(base) if isinstance(base, Pack) else sha256(base)


def save_classifier(network: nn.Module, folder: Path, base: ClassifierBase = None) -> None:
    """Save a classifier in the format of transformers; a compact XLNet in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, HubNetwork):
        network.save(folder)
        return
    if isinstance(network, XlnetOverReadings) and isinstance(base, Pack):
        about: dict[str, Any] = {"model_type": OVER_READINGS, READERS: base_sha256(base)}
    elif isinstance(network, XlnetTokenClassifier) and isinstance(base, Path):
        about = {"model_type": "xlnet", "architectures": ["XLNetForTokenClassification"], "dropout": 0.0}
        about[PIECES_SHA256] = base_sha256(base)
        if base.resolve() != (folder / PIECES).resolve():
            with replacing(folder / PIECES) as partial:
                shutil.copyfile(base, partial)
    else:
        raise ValueError("an XLNet is saved with its pieces or with the pack of its LSTM models")
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
