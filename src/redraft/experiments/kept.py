"""Outputs of a run that are kept: compressed, without traces, small enough for a repository.

Later metrics can be computed from them, without the models that wrote them. A folder ``kept`` has the inputs of each
test set once, and a file for each system and test set with the text and the signature of every draft.
"""

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from redraft.batch import key_of
from redraft.errors import InputError
from redraft.experiments.config import outputs_path
from redraft.experiments.inputs import TestSets
from redraft.experiments.run_systems import Job, OutputRecord
from redraft.files import replacing

KEPT = "kept"
_INPUTS = "inputs"  # no system has this name
_FIELDS = ("id", "text", "nll", "steps", "constraints_met", "signature", "earlier")


def keep(out: Path, records: Mapping[Job, Sequence[OutputRecord]], sets: TestSets) -> None:
    """Keep complete outputs of a run in its folder. A file that has them, or those of more inputs, is left alone."""
    folder = out / KEPT
    for job, found in records.items():
        kept = ({key: record[key] for key in _FIELDS if key in record} for record in found)
        _write(_path(folder, job.system, job.set), kept)
    for name in dict.fromkeys(job.set for job in records):
        _write(_path(folder, _INPUTS, name), (item.given for item in sets[name]))


def unpack(folder: Path, out: Path) -> list[Path]:
    """Write kept outputs as files for ``redraft evaluate`` to ``out / "outputs"``. Existing files are left alone."""
    if not (folder / _INPUTS).is_dir():
        raise InputError(f"{folder} has no outputs that redraft reproduce has kept; give its folder {KEPT}")
    inputs: dict[str, dict[str, Any]] = {}
    written = []
    for path in sorted(folder.glob("*/*.jsonl.xz")):
        system, name = path.parent.name, path.name.removesuffix(".jsonl.xz")
        target = outputs_path(out, system, name)
        if system == _INPUTS or target.exists():
            continue
        if name not in inputs:
            inputs[name] = {key_of(given["id"]): given for given in _read(_path(folder, _INPUTS, name))}
        try:
            lines = [{**record, "input": inputs[name][key_of(record["id"])]} for record in _read(path)]
        except KeyError as error:
            raise InputError(f"{path} has the output of an input that is not kept ({error})") from error
        with replacing(target) as partial:
            partial.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
        written.append(target)
    return written


def _path(folder: Path, system: str, test_set: str) -> Path:
    return folder / system / f"{test_set}.jsonl.xz"


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    with suppress(OSError, lzma.LZMAError):
        if lzma.decompress(path.read_bytes()).startswith(lines):
            return
    with replacing(path) as partial:
        partial.write_bytes(lzma.compress(lines, preset=9))


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in lzma.decompress(path.read_bytes()).decode().split("\n") if line]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (lzma.LZMAError, ValueError) as error:
        raise InputError(f"{path} does not hold outputs that redraft reproduce has kept ({error})") from error
