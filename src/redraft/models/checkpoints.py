"""Model files on this machine: where they are, which model they are, and whether they are complete."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redraft.errors import InputError, reason

_PROBE_BYTES = 1 << 20


def local_path(location: str) -> Path:
    """Return the path of a folder or file of that name. It need not exist: the name may be that of a hub model."""
    try:
        path = Path(location).expanduser()
        path.exists()
    except (OSError, RuntimeError) as error:  # the name is too long, or names an unknown user's home
        raise InputError(f"{location[:60]!r} is not the name of a model or a folder ({reason(error)})") from error
    return path


def fingerprint(path: Path) -> str:
    """Return eight hexadecimal digits that identify the model in a file or folder.

    Only the first and last megabyte of each file are hashed, because weights are large.
    """
    digest = hashlib.sha256()
    for file in sorted(path.glob("*")) if path.is_dir() else [path]:
        if file.suffix in (".json", ".safetensors", ".gguf", ".model"):
            digest.update(f"{file.name} {file.stat().st_size} ".encode())
            with file.open("rb") as content:
                digest.update(content.read(_PROBE_BYTES))
                content.seek(max(0, file.stat().st_size - _PROBE_BYTES))
                digest.update(content.read())
    return digest.hexdigest()[:8]


def require_whole(loading_info: Mapping[str, Sequence[Any]]) -> None:
    """Refuse a model whose files lack weights: transformers would silently initialise them at random.

    ``loading_info`` is what ``from_pretrained(..., output_loading_info=True)`` reports.
    """
    missing = [*loading_info["missing_keys"], *(entry[0] for entry in loading_info["mismatched_keys"])]
    if missing:
        raise InputError(f"its weights do not match its config.json ({sorted(missing)[0]})")
