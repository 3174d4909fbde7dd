"""Load causal language models with transformers: by hub name, from a folder, or from a ``.gguf`` file.

Only safetensors and GGUF weights are loaded. A pickled file could run arbitrary code.
"""

import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft.errors import InputError, reason
from redraft.models.checkpoints import local_path, require_whole
from redraft.models.precision import compute_dtype

if TYPE_CHECKING:
    import torch

_PROBE_SECONDS = 10.0


def load(location: str, dtype: "torch.dtype | None" = None) -> tuple[Any, Any]:
    """Load the tokenizer and model of a folder, a ``.gguf`` file or a hub name.

    Without a ``dtype`` the model computes in the fastest precision.
    """
    dtype = dtype or compute_dtype()
    path = local_path(location)
    if location.endswith(".gguf"):
        if not path.is_file():
            raise InputError(f"there is no file {location}; give a .gguf file, a folder or the name of a model")
        return read_gguf(path, dtype)
    if path.is_dir():
        return _from_folder(path, dtype)
    if location.startswith((".", "/", "~")) or location.count("/") > 1:
        raise InputError(f"there is no folder {location}; give a folder, a .gguf file or the name of a model")
    return _from_hub(location, dtype)


def read_gguf(path: Path, dtype: "torch.dtype") -> tuple[Any, Any]:
    """Load the tokenizer and the dequantised model of a GGUF file."""
    from transformers import GgufConfig

    options = {"gguf_file": path.name, "quantization_config": GgufConfig(dequantize=True), "local_files_only": True}
    try:
        tokenizer = _tokenizer(str(path.parent), gguf_file=path.name, local_files_only=True)
        with contextlib.redirect_stderr(io.StringIO()):  # hides a progress bar that has no switch
            return tokenizer, _model(str(path.parent), dtype=dtype, **options)
    except ImportError as error:
        raise InputError(f"to read {path.name}, run: pip install gguf accelerate") from error
    except Exception as error:  # a damaged file can raise almost any type
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system: a full disk, or no permission
        raise InputError(f"{path.name} is not a GGUF file of a causal language model: {reason(error)}") from error


def _from_folder(folder: Path, dtype: "torch.dtype") -> tuple[Any, Any]:
    try:
        tokenizer = _tokenizer(str(folder), local_files_only=True)
    except Exception as error:
        raise InputError(
            f"{folder} has no readable tokenizer ({reason(error)}); put tokenizer.json beside the model"
        ) from error
    try:
        return tokenizer, _model(str(folder), dtype=dtype, use_safetensors=True, local_files_only=True)
    except Exception as error:
        raise InputError(f"{folder} holds no causal language model in safetensors: {reason(error)}") from error


def _from_hub(name: str, dtype: "torch.dtype") -> tuple[Any, Any]:
    weights = {"dtype": dtype, "use_safetensors": True}
    try:
        try:
            return _tokenizer(name, local_files_only=True), _model(name, local_files_only=True, **weights)
        except OSError:
            _require_hub(name)
            return _tokenizer(name), _model(name, **weights)
    except Exception as error:
        raise InputError(
            f"the model {name} cannot be loaded: {reason(error)}; check the name and the network, or give a folder"
        ) from error


def _require_hub(name: str) -> None:
    """Check once that the hub has the model. Loading at once would retry a dead connection for a minute."""
    from huggingface_hub import HfApi

    HfApi().model_info(name, timeout=_PROBE_SECONDS)


def _tokenizer(location: str, **options: Any) -> Any:
    from transformers import AutoTokenizer

    silence()
    tokenizer = AutoTokenizer.from_pretrained(location, trust_remote_code=False, **options)
    if not isinstance(tokenizer.get_vocab(), dict) or len(tokenizer) == 0:
        raise InputError("its vocabulary is empty")
    return tokenizer


def _model(location: str, **options: Any) -> Any:
    from transformers import AutoModelForCausalLM

    silence()
    options |= {"trust_remote_code": False, "output_loading_info": True}
    loaded: Any = AutoModelForCausalLM.from_pretrained(location, **options)
    model, loading_info = loaded
    require_whole(loading_info)
    model.train(False)
    return model


def silence() -> None:
    """Turn off the progress bars and log messages of transformers."""
    from transformers.utils.logging import disable_progress_bar, set_verbosity_error

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    set_verbosity_error()  # type: ignore[no-untyped-call]
    disable_progress_bar()  # type: ignore[no-untyped-call]
