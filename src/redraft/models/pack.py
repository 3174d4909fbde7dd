"""Packs: folders with models, vocabularies and ``pack.json``.

The manifest ``pack.json`` says what is in the pack, how it was made, and the SHA-256 of every file. Nothing is ever
unpickled, and no file is loaded whose hash is wrong.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from redraft.errors import PackError
from redraft.files import replacing, sha256

FORMAT = 1
MANIFEST = "pack.json"
DEFAULT = "english"
_SHIPPED = Path(__file__).parent.parent / "packs"


def home() -> Path:
    """The folder for downloaded models and user packs: ``REDRAFT_HOME``, or else the user's cache folder."""
    if own := os.environ.get("REDRAFT_HOME"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redraft"


def _folders() -> list[Path]:
    return [home() / "packs", _SHIPPED]


def available() -> list[Path]:
    """Folders of all packs that can be opened by name. A user's pack hides a shipped one of the same name."""
    found: dict[str, Path] = {}
    for folder in _folders():
        for manifest in sorted(folder.glob(f"*/{MANIFEST}")):
            found.setdefault(manifest.parent.name, manifest.parent)
    return sorted(found.values(), key=lambda path: path.name)


def find(name: str) -> Path:
    """The folder of a pack, given its name or path. A bare name is looked up among known packs first."""
    known = [base / name for base in _folders()] if Path(name).name == name else []
    for folder in [*known, Path(name)]:
        with suppress(OSError):  # the name is too long for a file
            if (folder / MANIFEST).is_file():
                return folder
    names = ", ".join(path.name for path in available()) or "none"
    raise PackError(f"there is no pack {name!r}; give a folder with a {MANIFEST}, or one of: {names}")


@dataclass(frozen=True)
class Pack:
    """A pack whose manifest was read and whose files were checked."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def card(self) -> Mapping[str, Any]:
        """How the pack was made and how good it is."""
        card: Mapping[str, Any] = self.manifest.get("card", {})
        return card

    @property
    def parts(self) -> Mapping[str, Mapping[str, Any]]:
        parts: Mapping[str, Mapping[str, Any]] = self.manifest["parts"]
        return parts

    def path(self, file: str) -> Path:
        """The path of a file that was checked. Other files are refused."""
        if file not in self.manifest["files"]:
            raise PackError(f"pack {self.name} does not vouch for {file}: install the pack again")
        return self.folder / file

    def part_folder(self, part: str) -> Path:
        """The folder of a part. It is refused if it holds a file that was not checked."""
        require(self, [part])
        folder = self.folder / str(self.parts[part].get("folder", ""))
        for file in _files(folder):
            self.path(file.relative_to(self.folder).as_posix())
        return folder

    @property
    def num_bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    @cached_property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that change with any file of the pack."""
        hashes = sorted((name, entry["sha256"]) for name, entry in self.manifest["files"].items())
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()[:8]


def open_pack(name: str = DEFAULT) -> Pack:
    """Find a pack, read its manifest and check the hash of every file."""
    folder = find(name)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = int(manifest["format"])
        hashes = _hashes(manifest) if version <= FORMAT else {}
    except OSError as error:
        raise PackError(f"cannot read {folder / MANIFEST}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackError(f"{folder / MANIFEST} is not a pack's manifest ({error})") from error
    if version > FORMAT:
        raise PackError(
            f"pack {folder.name} has format {version}, this redraft reads {FORMAT}: install a newer redraft"
        )
    for file, expected in hashes.items():
        if not (folder / file).is_file():
            raise PackError(f"pack {folder.name} lacks its file {file}: install the pack again")
        if _sha256(folder / file) != expected:
            raise PackError(f"{file} of pack {folder.name} is not the file it was made with: install the pack again")
    return Pack(folder, manifest)


def _sha256(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        raise PackError(f"cannot read {path}: {error.strerror}") from error


def _hashes(manifest: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 by file. Raises some error if the manifest is incomplete."""
    if not isinstance(manifest["name"], str) or not isinstance(manifest.get("card", {}), dict):
        raise TypeError("name or card has the wrong type")
    if not all(isinstance(part["kind"], str) for part in manifest["parts"].values()):
        raise TypeError("a part has no kind")
    if not all(isinstance(entry["bytes"], int) for entry in manifest["files"].values()):
        raise TypeError("a file has no size")
    return {file: str(entry["sha256"]) for file, entry in manifest["files"].items()}


def _files(folder: Path) -> list[Path]:
    """All files in a folder and its subfolders, except the manifest and hidden files."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(path for path in found if path.name != MANIFEST)


def write_manifest(folder: Path, name: str, parts: Mapping[str, Any], card: Mapping[str, Any]) -> Pack:
    """Write the manifest of all files in a folder, which makes it a pack."""
    entries = {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in _files(folder)
    }
    manifest = {"format": FORMAT, "name": name, "parts": dict(parts), "files": entries, "card": dict(card)}
    with replacing(folder / MANIFEST) as partial:
        partial.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return open_pack(str(folder))


def require(pack: Pack, names: Iterable[str]) -> None:
    """Refuse a pack that lacks a model."""
    if missing := [name for name in names if name not in pack.parts]:
        raise PackError(f"pack {pack.name} has no {' and no '.join(missing)} model; choose another pack or recipe")
