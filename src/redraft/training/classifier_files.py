"""Creating untrained token classifiers, loading weights to start from, and saving trained ones."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from redraft.errors import InputError, reason
from redraft.files import replacing, sha256
from redraft.models.encoder import CASES, VOCABULARY, CasedPieces, EncoderConfig, kept_pieces, pruned
from redraft.models.lstm.files import load_pair, readers_sha256
from redraft.models.pack import Pack
from redraft.models.xlnet.files import CONFIG, PIECES_SHA256, WEIGHTS, read_weights, weights_file
from redraft.predict.classifier import (
    CASED,
    LABELS,
    OVER_READINGS,
    READERS,
    HubNetwork,
    labels_of,
    load_classifier,
    read_config,
)
from redraft.predict.encoder import EncoderTokenClassifier
from redraft.predict.pieces import PIECES, HubPieces, SentencePieces, Splitter, WordIds
from redraft.predict.readings import XlnetOverReadings
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier

# What turns words into inputs: pieces, the LSTM models of a pack, or nothing besides the model's folder.
ClassifierBase = Path | CasedPieces | Pack | None


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


def classifier_from(folder: Path, words: Iterable[str] = (), seed: int = 0) -> tuple[nn.Module, Splitter]:
    """A classifier that starts from the weights of a language model or of another classifier.

    Of a BERT without capitals only the pieces of ``words`` are kept, and it gets to see capitals.
    """
    config = read_config(folder)
    if config.get("model_type") == CASED:
        loaded = load_classifier(folder)
        return loaded.network, loaded.splitter
    if _is_uncased_bert(folder, config):
        return _seeing_capitals(folder, config, words, seed)
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


def _is_uncased_bert(folder: Path, config: Mapping[str, Any]) -> bool:
    if config.get("model_type") != "bert" or not (folder / VOCABULARY).exists():
        return False
    about = folder / "tokenizer_config.json"
    try:
        return bool(json.loads(about.read_text(encoding="utf-8")).get("do_lower_case"))
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{about} does not say whether the model sees capitals ({error})") from error


def _seeing_capitals(
    folder: Path, config: Mapping[str, Any], words: Iterable[str], seed: int
) -> tuple[EncoderTokenClassifier, CasedPieces]:
    splitter = CasedPieces.read(folder / VOCABULARY)
    kept = kept_pieces(splitter.names, _counts(splitter, words))
    torch.manual_seed(seed)
    network = EncoderTokenClassifier(replace(EncoderConfig.read(config), vocab_size=len(kept)), len(LABELS))
    own, given = network.bert.state_dict(), pruned(read_weights(folder), kept)
    if missing := [name for name in own if name not in given and name != CASES]:
        raise InputError(f"{weights_file(folder)} lacks {missing[0]}; it is not a BERT to start from")
    try:
        network.bert.load_state_dict({**own, **{name: given[name] for name in own if name in given}})
    except RuntimeError as error:
        raise InputError(f"{weights_file(folder)} does not hold what {CONFIG} describes: {reason(error)}") from error
    return network, splitter.only(kept)


def _counts(splitter: CasedPieces, words: Iterable[str]) -> Counter[int]:
    """How often each piece occurs."""
    counts: Counter[int] = Counter()
    for word, number in Counter(words).items():
        for piece in splitter.pieces(word):
            counts[piece] += number
    return counts


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
    if isinstance(base, CasedPieces):
        return hashlib.sha256("\n".join(base.names).encode()).hexdigest()
    return readers_sha256(base) if isinstance(base, Pack) else sha256(base)


def save_classifier(network: nn.Module, folder: Path, base: ClassifierBase = None) -> None:
    """Save a classifier in the format of transformers; our own networks in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(network, HubNetwork):
        network.save(folder)
        return
    if isinstance(network, EncoderTokenClassifier) and isinstance(base, CasedPieces):
        about: dict[str, Any] = {"model_type": CASED}
        with replacing(folder / VOCABULARY) as partial:
            base.save(partial)
    elif isinstance(network, XlnetOverReadings) and isinstance(base, Pack):
        about = {"model_type": OVER_READINGS, READERS: base_sha256(base)}
    elif isinstance(network, XlnetTokenClassifier) and isinstance(base, Path):
        about = {"model_type": "xlnet", "architectures": ["XLNetForTokenClassification"], "dropout": 0.0}
        about[PIECES_SHA256] = base_sha256(base)
        if base.resolve() != (folder / PIECES).resolve():
            with replacing(folder / PIECES) as partial:
                shutil.copyfile(base, partial)
    else:
        raise ValueError("a network is saved with its pieces or with the pack of its LSTM models")
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
