"""The token classifier: how each word of a draft should be revised, and whether words are missing before it.

It is stored in a folder as transformers saves it: ``config.json``, ``model.safetensors`` and the tokenizer's files. A
compact XLNet and a BERT that sees capitals run without transformers; any other token classifier runs with it.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from redraft.errors import InputError, PackError, reason
from redraft.files import sha256
from redraft.models.base import Words
from redraft.models.batching import BatchShape, Memo, groups, padded
from redraft.models.checkpoints import require_whole
from redraft.models.encoder import VOCABULARY, CasedPieces, EncoderConfig
from redraft.models.lstm.files import load_pair, readers_sha256
from redraft.models.pack import DEFAULT, Pack, open_pack, require
from redraft.models.quantise import dequantise
from redraft.models.xlnet.files import CONFIG, PIECES_SHA256, WEIGHTS
from redraft.numerics import Array
from redraft.predict.encoder import EncoderTokenClassifier
from redraft.predict.pieces import PIECES, Encoding, HubPieces, PieceEncoder, SentencePieces, Splitter, WordIds
from redraft.predict.readings import XlnetOverReadings
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier
from redraft.synthesis.labels import Label

LABELS = tuple(label.name.lower() for label in Label)  # the columns of every result
CLASSIFIER = "classifier"  # the part of a pack
OVER_READINGS, READERS = "redraft-xlnet-over-lstm", "readers_sha256"  # in the configuration of redraft.predict.readings
CASED = "redraft-cased-bert"  # in the configuration of redraft.predict.encoder
_KEPT = 8192  # sentences in the cache
_BATCH_PIECES = 4096
_MIN_FILL = 0.8  # shortest over longest sentence of a call: limits the cost of padding


class Classifier:
    """Label probabilities of each word. The first sub-token represents the word, as in the paper."""

    def __init__(self, network: nn.Module, splitter: Splitter):
        self.network, self.splitter = network.eval(), splitter
        self._encoder = PieceEncoder(splitter)
        self._memo: Memo[Words, Array] = Memo()

    def log_probs(self, sentences: Sequence[Words]) -> list[Array]:
        """For each sentence [words + 1, labels]: one row per word, the last one for the end of the sentence.

        Results are cached: a recent sentence is not computed again.
        """
        known = {words: self._memo.get(words) for words in sentences}
        unknown = [words for words, log_probs in known.items() if log_probs is None]
        found = {words: log_probs for words, log_probs in known.items() if log_probs is not None}
        for words, log_probs in zip(unknown, self._compute(unknown), strict=True):
            found[words] = log_probs
            self._memo.put(words, log_probs)
        self._memo.trim(_KEPT)
        return [found[words] for words in sentences]

    @torch.inference_mode()
    def _compute(self, sentences: Sequence[Words]) -> list[Array]:
        encodings = [self._encoder.encode(words) for words in sentences]
        results: list[Array] = [np.empty(0)] * len(sentences)
        for group in sentence_groups([len(encoding.ids) for encoding in encodings]):
            ids, real = padded([encodings[i].ids for i in group], self.splitter.padding)
            log_probs = torch.log_softmax(self.network(ids, real), -1).double().numpy()
            for row, i in enumerate(group):
                results[i] = log_probs[row, encodings[i].firsts]
        return results

    def encode(self, words: Words) -> Encoding:
        """The pieces that the network sees."""
        return self._encoder.encode(words)


def sentence_groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of sentences to compute together: of similar length, and not too many pieces."""
    return groups([[length] for length in lengths], _fits)


def _fits(shape: BatchShape) -> bool:
    return shape.shortest >= _MIN_FILL * shape.longest and shape.num_rows * shape.longest <= _BATCH_PIECES


class HubNetwork(nn.Module):
    """A token classifier of transformers behind the interface of ours."""

    def __init__(self, model: Any, tokenizer: Any):
        super().__init__()
        self.model, self.tokenizer = model, tokenizer

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids=ids, attention_mask=real.long()).logits
        return logits

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def pack_classifier(pack: Pack) -> Classifier:
    """The classifier of a pack."""
    folder, pieces = pack.part_folder(CLASSIFIER), pack.parts[CLASSIFIER].get("pieces")
    return load_classifier(folder, pieces and pack.path(pieces), pack)


def load_classifier(folder: Path, pieces: Path | None = None, pack: Pack | None = None) -> Classifier:
    """Load and check a classifier from a folder. ``pieces`` is its vocabulary, if that is not in the folder.

    ``pack`` has the LSTM models of a classifier that is built over some; the default pack if none is given.
    """
    config = read_config(folder)
    check_labels(folder, config)
    pieces = pieces or folder / PIECES
    network: nn.Module
    splitter: Splitter
    if config.get("model_type") == OVER_READINGS:
        network, splitter = _over_readings(folder, config, pack or open_pack(DEFAULT))
    elif config.get("model_type") == CASED:
        splitter = CasedPieces.read(folder / VOCABULARY)
        network = EncoderTokenClassifier(EncoderConfig.read(config), len(LABELS))
        _load_weights(network, folder / WEIGHTS)
    elif XlnetConfig.supports(config) and pieces.exists():
        splitter = SentencePieces(pieces)
        _check_pieces(pieces, config, splitter)
        network = XlnetTokenClassifier(XlnetConfig.read(config), len(LABELS))
        _load_weights(network, folder / WEIGHTS)
    else:
        network, splitter = _from_hub(folder)
    return Classifier(network, splitter)


def _over_readings(folder: Path, config: dict[str, Any], pack: Pack) -> tuple[nn.Module, Splitter]:
    require(pack, ["forward", "backward"])
    if config.get(READERS) != readers_sha256(pack):
        raise PackError(
            f"the classifier in {folder} was trained over other LSTM models than those of pack {pack.name}; "
            "name the pack that it was trained over"
        )
    readers, vocabulary = load_pair(pack)
    network = XlnetOverReadings(XlnetConfig.read(config), len(LABELS), readers, vocabulary)
    _load_weights(network, folder / WEIGHTS)
    return network, WordIds(vocabulary)


def read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PackError(f"{folder} holds no classifier: {CONFIG} is not readable ({error})") from error
    if not isinstance(config, dict):
        raise PackError(f"{folder} holds no classifier: {CONFIG} is not a JSON object")
    return config


def labels_of(config: dict[str, Any]) -> tuple[str, ...]:
    """The names of the labels of a token classifier, in lower case."""
    given = config.get("id2label")
    return tuple(str(given.get(str(i), "")).lower() for i in range(len(given))) if isinstance(given, dict) else ()


def check_labels(folder: Path, config: dict[str, Any]) -> None:
    """Refuse a classifier with other labels."""
    names = labels_of(config)
    if names != LABELS:
        raise PackError(
            f"{folder} is a classifier of {', '.join(names) or 'nothing'}; redraft needs {', '.join(LABELS)}"
        )


def _check_pieces(pieces: Path, config: dict[str, Any], splitter: Splitter) -> None:
    wanted = config.get(PIECES_SHA256)
    if wanted is not None and wanted != sha256(pieces):
        raise PackError(f"{pieces} is not the vocabulary that the classifier was trained with")
    if splitter.size != config["vocab_size"]:
        raise PackError(f"{pieces} has {splitter.size} pieces, the classifier {config['vocab_size']}")


def _load_weights(network: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        network.load_state_dict(dequantise(load_file(path)))
    except (OSError, SafetensorError, RuntimeError, KeyError) as error:
        raise PackError(f"{path} does not hold the weights that {CONFIG} describes: {reason(error)}") from error


def _from_hub(folder: Path) -> tuple[nn.Module, Splitter]:
    try:
        from transformers import AutoModelForTokenClassification, AutoTokenizer
    except ImportError as error:
        raise PackError(f"{folder} needs the transformers package: pip install transformers sentencepiece") from error
    try:
        model, found = AutoModelForTokenClassification.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        require_whole(found)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, InputError) as error:
        raise PackError(f"{folder} cannot be loaded as a token classifier: {reason(error)}") from error
    return HubNetwork(model, tokenizer), HubPieces(tokenizer)
