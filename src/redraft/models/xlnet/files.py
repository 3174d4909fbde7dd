"""Save XLNet language models to folders and load them. The layout is that of ``xlnet-base-cased``."""

import json
import pickle
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from redraft.errors import PackError
from redraft.files import replacing, sha256
from redraft.models.checkpoints import local_path
from redraft.models.pieces import PIECES, SentencePieces
from redraft.models.quantise import dequantise
from redraft.models.xlnet.network import ReadingOrder, XlnetConfig, XlnetLM

CONFIG, WEIGHTS, OLD_WEIGHTS = "config.json", "model.safetensors", "pytorch_model.bin"
CARD = "card.json"
PIECES_SHA256 = "redraft_pieces_sha256"  # the key in config.json
_PROBE_SECONDS = 10.0
_HEAD = "lm_loss.weight"  # a copy of the embeddings
_LFS = b"version https://git-lfs"


def save_xlnet(folder: Path, network: XlnetLM, pieces: Path) -> None:
    """Write a model in half precision, with its pieces. ``transformers.XLNetLMHeadModel`` can load it."""
    folder.mkdir(parents=True, exist_ok=True)
    if pieces.resolve() != (folder / PIECES).resolve():
        with replacing(folder / PIECES) as partial:
            shutil.copyfile(pieces, partial)
    config = {
        "architectures": ["XLNetLMHeadModel"],
        "model_type": "xlnet",
        **asdict(network.config),
        "dropout": 0.0,
        "tie_word_embeddings": True,
        PIECES_SHA256: sha256(pieces),
    }
    with replacing(folder / CONFIG) as partial:
        partial.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    with replacing(folder / WEIGHTS) as partial:
        from safetensors.torch import save_file

        halves = {name: value.half() for name, value in network.state_dict().items()}
        save_file(halves, partial, metadata={"format": "pt"})


def load_xlnet(name: str | Path, pieces: Path | None = None) -> tuple[XlnetLM, SentencePieces, Path]:
    """Load and check a language model from a folder or by the name of a hub model. Returns its pieces and folder, too.

    ``pieces`` is the path of the vocabulary, if it is not in the folder.
    """
    path = local_path(str(name))
    folder = path if path.is_dir() else _fetch(str(name))
    config = _read_config(folder)
    pieces = pieces or folder / PIECES
    if not pieces.is_file():
        raise PackError(f"{folder} lacks {PIECES}, the SentencePiece model; copy it from where the model came from")
    splitter = SentencePieces(pieces)
    wanted = config.get(PIECES_SHA256)
    if wanted is not None and wanted != sha256(pieces):
        raise PackError(f"{pieces} is not the vocabulary that the model was trained with; restore the file")
    if splitter.size != config["vocab_size"]:
        raise PackError(
            f"{pieces} has {splitter.size:,} pieces, the model {config['vocab_size']:,}; copy the model's own {PIECES}"
        )
    network = XlnetLM(XlnetConfig.read(config))
    _load_weights(network, folder)
    return network.eval(), splitter, folder


def _fetch(name: str) -> Path:
    """The folder of a hub model in the local cache. The model is downloaded if needed."""
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    wanted = [CONFIG, PIECES, WEIGHTS, OLD_WEIGHTS]
    try:
        kept = Path(huggingface_hub.snapshot_download(name, allow_patterns=wanted, local_files_only=True))
        if all((kept / file).exists() for file in (CONFIG, PIECES)) and weights_file(kept).exists():
            return kept
    except HFValidationError as error:
        raise PackError(f"{name} is neither a folder nor the name of a hub model") from error
    except OSError:
        pass
    try:
        # Check first: a download would retry a dead connection again and again.
        huggingface_hub.HfApi().model_info(name, timeout=_PROBE_SECONDS)
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=wanted))
    except Exception as error:  # whatever went wrong, the advice is the same
        raise PackError(
            f"{name} is not on this machine and cannot be fetched ({type(error).__name__}); on a machine with internet "
            f"run `hf download {name} --local-dir DIR`, copy DIR here and give its path"
        ) from error


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kind = config.get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise PackError(f"{folder} holds no model: {CONFIG} is not readable ({error})") from error
    if kind != "xlnet":
        raise PackError(f"{folder} holds a model of type {kind}, not an XLNet; choose the folder or name of an XLNet")
    other = XlnetConfig.unsupported(config)
    if config.get("tie_word_embeddings") is False:
        other.append("tie_word_embeddings: false")
    if other:
        raise PackError(
            f"{folder} is an XLNet that redraft does not support ({', '.join(other)}); choose one like xlnet-base-cased"
        )
    return config


def _load_weights(network: XlnetLM, folder: Path) -> None:
    try:
        given = read_weights(folder)
        given.pop(_HEAD, None)
        network.load_state_dict(given)
    except RuntimeError as error:  # its last line names the weights
        reason = str(error).strip().split("\n")[-1].strip()
        raise PackError(f"{folder} does not hold the weights that its {CONFIG} describes: {reason}") from error


def weights_file(folder: Path) -> Path:
    """The file with the weights of a checkpoint. Older checkpoints are pickled."""
    old = folder / OLD_WEIGHTS
    return old if old.exists() and not (folder / WEIGHTS).exists() else folder / WEIGHTS


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint by name, dequantised."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = weights_file(folder)
    try:
        with path.open("rb") as file:
            if file.read(len(_LFS)) == _LFS:
                raise PackError(f"{path} is only a Git LFS pointer; fetch the weights with: git lfs pull")
        # With weights_only, torch unpickles tensors and runs no code.
        given = load_file(path) if path.name == WEIGHTS else torch.load(path, weights_only=True)
        return dequantise({name: value for name, value in given.items() if isinstance(value, Tensor)})
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, AttributeError) as error:
        raise PackError(f"{path} holds no readable weights: {_first_line(error)}") from error
    except (SafetensorError, pickle.UnpicklingError) as error:
        raise PackError(f"{path} is damaged: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0].strip()


def read_card(folder: Path) -> dict[str, Any]:
    """The card that says how a model was trained. It is empty for a model that redraft did not train."""
    path = folder / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if not isinstance(card, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError) as error:
        raise PackError(f"{path} is not the card of a model ({error}); remove it") from error
    return card


def orders_of(folder: Path) -> list[ReadingOrder]:
    """The orders that a model was trained to read in. An XLNet from elsewhere was trained on all of them."""
    names = read_card(folder).get("training", {}).get("orders") or [order.value for order in ReadingOrder]
    return [order for order in ReadingOrder if order.value in names]
