"""Writing files atomically: a file is either complete or absent."""

import glob
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

from redraft.errors import OutputError, reason

_LEFTOVER_SECONDS = 3600


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to. The file replaces ``path`` only if the block succeeds.

    After a kill or an error, such as a full disk, the old file is unchanged. The process id keeps concurrent writers
    apart. The file gets the mode of an ordinary new file: safetensors, for example, makes files that only their owner
    can read.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(path)
        mode = _new_mode(partial)
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror}") from error
    try:
        yield partial
        partial.chmod(mode)
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:  # safetensors reports a full disk in its own way
        told = (isinstance(error, OSError) and error.strerror) or reason(error)
        raise OutputError(f"cannot write {path}: {told}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _clear_leftovers(path: Path) -> None:
    """Remove old partial files of writers that were killed. They are older than any write can take."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _LEFTOVER_SECONDS:
                old.unlink()


def sha256(path: Path) -> str:
    """What identifies the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ordinary_modes(folder: Path) -> None:
    """Set the files of a folder, which another library wrote, to the mode of an ordinary new file."""
    mode = _new_mode(folder / f".{os.getpid()}.mode")
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(mode)


def _new_mode(path: Path) -> int:
    """The mode of a new file, found by creating one: the umask cannot be read without setting it."""
    path.touch()
    mode = path.stat().st_mode
    path.unlink()
    return mode
