"""Save LSTM models to packs and load them."""

import hashlib
import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from redraft.errors import PackError, reason
from redraft.files import replacing
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.models.lstm.reader import LstmReader
from redraft.models.pack import Pack, require
from redraft.models.quantise import dequantise, quantise
from redraft.models.vocabulary import Vocabulary

_WORDS = "words.txt"


def save_lstm(folder: Path, part: str, network: LstmLM, vocabulary: Vocabulary) -> dict[str, Any]:
    """Write a model in 8 bits and its word list. Returns its entry in the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"{part}.safetensors") as partial:
        save_file(quantise(network.state_dict()), partial)
    with replacing(folder / _WORDS) as partial:
        partial.write_text("\n".join(vocabulary.words) + "\n", encoding="utf-8")
    config = asdict(network.config)
    return {
        "kind": "lstm",
        "weights": f"{part}.safetensors",
        "words": _WORDS,
        "words_sha256": vocabulary.sha256,
        "config": config,
    }


def load_lstm(pack: Pack, part: str) -> LstmReader:
    """Load an LSTM of a pack as a reader. The part "backward" reads from the end."""
    network, vocabulary = load_network(pack, part)
    return LstmReader(f"{pack.name}/{part}", network, vocabulary, backward=part == "backward")


def load_network(pack: Pack, part: str) -> tuple[LstmLM, Vocabulary]:
    """Load an LSTM of a pack and its vocabulary."""
    require(pack, [part])
    entry = pack.parts[part]
    try:
        vocabulary = _read_words(pack.path(entry["words"]), pack.fingerprint)
        if vocabulary.sha256 != entry["words_sha256"]:
            raise PackError(f"pack {pack.name}: {entry['words']} is not the word list that {part} was trained with")
        return _read_network(pack.path(entry["weights"]), pack.fingerprint, json.dumps(entry["config"])), vocabulary
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise PackError(
            f"pack {pack.name} does not hold the {part} model that its manifest describes ({reason(error)})"
        ) from error


def load_pair(pack: Pack) -> tuple[tuple[LstmLM, LstmLM], Vocabulary]:
    """Load the forward and the backward LSTM of a pack, and the vocabulary that they share."""
    forward, vocabulary = load_network(pack, "forward")
    backward, others = load_network(pack, "backward")
    if others.sha256 != vocabulary.sha256:
        raise PackError(f"the LSTM models of pack {pack.name} do not share their words")
    return (forward, backward), vocabulary


def readers_sha256(pack: Pack) -> str:
    """SHA-256 of the LSTM weights of a pack. A classifier that was trained on them fits no others."""
    hashes = [pack.files[pack.parts[part]["weights"]]["sha256"] for part in ("forward", "backward")]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


@lru_cache(maxsize=2)
def _read_network(path: Path, fingerprint: str, config: str) -> LstmLM:
    """Load a network once for the sampler, the search and the classifier. Its weights must not be changed."""
    network = LstmLM(LstmConfig.from_json(json.loads(config)))
    network.load_state_dict(dequantise(load_file(path)))
    return network.eval()


def load_words(pack: Pack, part: str) -> tuple[str, ...]:
    """Load the words of an LSTM of a pack, the most frequent first."""
    return _read_words(pack.path(pack.parts[part]["words"]), pack.fingerprint).words


@lru_cache(maxsize=2)
def _read_words(path: Path, fingerprint: str) -> Vocabulary:
    """Load a vocabulary once for both directions."""
    return Vocabulary(path.read_text(encoding="utf-8").split("\n")[:-1])
