"""Packs: folders with models, vocabularies and ``pack.json``.

The manifest ``pack.json`` says what is in the pack, how it was made, and the SHA-256 of every file. Nothing is ever
unpickled, and no file is loaded whose hash is wrong.

An overlay is a pack that holds only some parts and takes others from another pack, its base. Its manifest has the name
of the base, the parts that it takes, and a hash of them, so that a changed base is refused.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from redraft.errors import PackError
from redraft.files import replacing, sha256

FORMAT = 2
_WITHOUT_BASE = 1  # the format of a pack that stands alone, which earlier versions read as well
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
    """A pack whose manifest was read and whose files were checked.

    ``base`` is what an overlay takes from the pack that it stands over: that pack, with only the parts that are taken.
    """

    folder: Path
    manifest: Mapping[str, Any]
    base: "Pack | None" = None

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def card(self) -> Mapping[str, Any]:
        """How the pack was made and how good it is."""
        return {**(self.base.card if self.base else {}), **self.manifest.get("card", {})}

    @property
    def parts(self) -> Mapping[str, Mapping[str, Any]]:
        """What the manifest says of each part, by name."""
        return {**(self.base.parts if self.base else {}), **self.manifest["parts"]}

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """SHA-256 and size of each file, by name."""
        return {**(self.base.files if self.base else {}), **self.manifest["files"]}

    def path(self, file: str) -> Path:
        """The path of a file that was checked. Other files are refused."""
        if file in self.manifest["files"]:
            return self.folder / file
        if self.base is None or file not in self.base.files:
            raise PackError(f"pack {self.name} does not vouch for {file}: install the pack again")
        return self.base.path(file)

    def part_folder(self, part: str) -> Path:
        """The folder of a part. It is refused if it holds a file that was not checked."""
        require(self, [part])
        if self.base is not None and part not in self.manifest["parts"]:
            return self.base.part_folder(part)
        folder = self.folder / str(self.parts[part].get("folder", ""))
        for file in _files(folder):
            self.path(file.relative_to(self.folder).as_posix())
        return folder

    @property
    def num_bytes(self) -> int:
        """Size of its own files, without those of its base."""
        return sum(entry["bytes"] for entry in self.manifest["files"].values())

    @cached_property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits that change with any file of the pack."""
        return hashlib.sha256(json.dumps(self._hashes).encode()).hexdigest()[:8]

    @property
    def sha256(self) -> str:
        """A hash of the parts and their files, for overlays that take them."""
        return hashlib.sha256(json.dumps([self.parts, self._hashes], sort_keys=True).encode()).hexdigest()

    @property
    def _hashes(self) -> list[tuple[str, str]]:
        return sorted((name, entry["sha256"]) for name, entry in self.files.items())

    def only(self, parts: Iterable[str]) -> "Pack":
        """The pack as if it had only these of its parts."""
        kept = {name: self.parts[name] for name in parts if name in self.parts}
        places = [str(value) for entry in kept.values() for key, value in entry.items() if key != "kind"]
        files = {
            name: entry
            for name, entry in self.files.items()
            if any(name == place or name.startswith(f"{place}/") for place in places)
        }
        dropped = self.parts.keys() - kept.keys()
        card = {key: value for key, value in self.card.items() if key not in dropped}
        return Pack(self.folder, {**self.manifest, "parts": kept, "files": files, "card": card})


class Base(NamedTuple):
    """What an overlay says of the pack that it stands over. ``name`` is that of its folder."""

    name: str
    sha256: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, taken: Pack) -> "Base":
        """The entry for the parts of a pack that an overlay takes."""
        return cls(taken.folder.resolve().name, taken.sha256, tuple(taken.parts))

    @classmethod
    def read(cls, manifest: Mapping[str, Any]) -> "Base | None":
        """The entry of a manifest; None if the pack stands alone. Raises some error if the entry is invalid."""
        given = manifest.get("base")
        if given is None:
            return None
        found = cls(given["name"], given["sha256"], tuple(given["parts"]))
        if not all(isinstance(text, str) for text in (found.name, found.sha256, *found.parts)):
            raise TypeError("base has the wrong type")
        if not found.name or Path(found.name).name != found.name:
            raise ValueError("the name of base is not that of a pack")
        return found

    def folders(self, overlay: Path) -> Iterator[Path]:
        """Where the pack may be: beside the overlay, or among the packs that have a name."""
        for folder in (overlay.parent / self.name, *(one / self.name for one in _folders())):
            if (folder / MANIFEST).is_file() and folder.resolve() != overlay:
                yield folder

    def open(self, overlay: Path) -> Pack:
        """The parts that an overlay takes, from the first pack of the name whose parts have the right hash."""
        found = list(self.folders(overlay.resolve()))
        if not found:
            raise PackError(
                f"pack {overlay.name} stands over pack {self.name}, which is not there: put it beside {overlay} or "
                f"into {home() / 'packs'}"
            )
        for folder in found:
            taken = _open(folder, may_have_base=False).only(self.parts)
            if taken.sha256 == self.sha256:
                return taken
        raise PackError(
            f"pack {overlay.name} stands over other {' and '.join(self.parts)} models than those of {found[0]}: get "
            f"the {self.name} that it was made with, or make {overlay.name} again"
        )


def base_folders(folder: Path) -> list[Path]:
    """The folders of packs that a pack may stand over; none if it stands alone or cannot be read."""
    try:
        base = Base.read(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [] if base is None else list(base.folders(folder.resolve()))


def open_pack(name: str = DEFAULT) -> Pack:
    """Find a pack, read its manifest and check the hash of every file; of an overlay, also those of its base."""
    return _open(find(name), may_have_base=True)


def _open(folder: Path, *, may_have_base: bool) -> Pack:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = int(manifest["format"])
        hashes, base = (_hashes(manifest), Base.read(manifest)) if version <= FORMAT else ({}, None)
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
    if base is None:
        return Pack(folder, manifest)
    if not may_have_base:
        raise PackError(f"pack {folder.name} stands over pack {base.name}, so no other pack can stand over it")
    return Pack(folder, manifest, base.open(folder))


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


def write_manifest(
    folder: Path, name: str, parts: Mapping[str, Any], card: Mapping[str, Any], base: Pack | None = None
) -> Pack:
    """Write the manifest of all files in a folder, which makes it a pack; with a base, an overlay."""
    entries = {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in _files(folder)
    }
    about: dict[str, Any] = {"format": _WITHOUT_BASE, "name": name}
    if base is not None:
        about = {"format": FORMAT, "name": name, "base": Base.of(base)._asdict()}
    manifest = {**about, "parts": dict(parts), "files": entries, "card": dict(card)}
    with replacing(folder / MANIFEST) as partial:
        partial.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return open_pack(str(folder))


def require(pack: Pack, names: Iterable[str]) -> None:
    """Refuse a pack that lacks a model."""
    if missing := [name for name in names if name not in pack.parts]:
        raise PackError(f"pack {pack.name} has no {' and no '.join(missing)} model; choose another pack or recipe")
