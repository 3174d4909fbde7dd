"""Training text: folders of ``.txt`` and ``.txt.xz`` files, one sentence per line."""

import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from redraft.errors import CorpusError
from redraft.files import sha256

# One sentence in 400 is held out. The choice depends only on the sentence, so every model that is trained on a corpus
# holds out the same ones, whatever the order of files and lines.
_HELD_OUT_ONE_IN = 400


def is_held_out(line: str) -> bool:
    return zlib.crc32(line.encode()) % _HELD_OUT_ONE_IN == 0


def text_files(folder: Path) -> list[Path]:
    """The text files of a corpus folder, by name."""
    if not folder.is_dir():
        raise CorpusError(f"{folder} is not a folder; give a folder with .txt or .txt.xz files, one sentence per line")
    found = sorted(path for path in folder.iterdir() if path.name.endswith((".txt", ".txt.xz")))
    if not found:
        raise CorpusError(f"{folder} has no .txt or .txt.xz file; write one sentence per line into such files")
    if odd := [path for path in found if not path.is_file()]:
        raise CorpusError(f"{odd[0]} is not a file that can be read; remove it or give it another name")
    return found


def file_hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each text file of a corpus folder, by name."""
    try:
        return {path.name: sha256(path) for path in text_files(folder)}
    except OSError as error:
        raise CorpusError(f"cannot read {error.filename}: {error.strerror or error}") from error


def _open(path: Path) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file that are not empty."""
    try:
        with _open(path) as file:
            yield from (stripped for line in file if (stripped := line.strip()))
    except OSError as error:
        raise CorpusError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, lzma.LZMAError, EOFError) as error:
        raise CorpusError(f"{path} is not readable text: {error}") from error


def sentences(folder: Path) -> Iterator[str]:
    """All sentences of a folder, file by file."""
    for path in text_files(folder):
        yield from lines(path)


@dataclass(frozen=True)
class Encoded:
    """Sentences as one flat array of ids; sentence i is ``ids[starts[i]:starts[i + 1]]``."""

    ids: NDArray[np.uint16]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def sentence(self, index: int) -> NDArray[np.uint16]:
        return self.ids[self.starts[index] : self.starts[index + 1]]
