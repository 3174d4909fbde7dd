import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from redraft.errors import PackError
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import MANIFEST, Pack, available, find, home, open_pack


@pytest.fixture
def copy(tiny_pack: Pack, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_pack.folder, tmp_path / "copy"))


def _change(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, **changes}))


def test_a_whole_pack_opens(copy: Path, tiny_pack: Pack) -> None:
    pack = open_pack(str(copy))
    assert pack.fingerprint == tiny_pack.fingerprint
    assert pack.num_bytes == sum(f.stat().st_size for f in copy.iterdir() if f.name != MANIFEST)
    assert set(pack.card["nll_per_word"]) == {"forward", "backward"}


def test_a_changed_file_is_refused(copy: Path) -> None:
    with (copy / "words.txt").open("a") as file:
        file.write("more\n")
    with pytest.raises(PackError, match=r"words.txt of pack copy is not the file it was made with"):
        open_pack(str(copy))


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "forward.safetensors").unlink()
    with pytest.raises(PackError, match=r"lacks its file forward.safetensors"):
        open_pack(str(copy))


def test_a_newer_format_asks_for_a_newer_redraft(copy: Path) -> None:
    _change(copy, format=99)
    with pytest.raises(PackError, match="install a newer redraft"):
        open_pack(str(copy))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": "x"}',
        "\x00",
        '{"format": 1, "files": 3}',
        '{"format": 1, "files": {}}',
        '{"format": 1, "name": "a", "parts": {"forward": 3}, "files": {}}',
        '{"format": 1, "name": "a", "parts": {}, "files": {"x": {"bytes": 3}}}',
        '{"format": 1, "name": "a", "parts": {}, "files": {"x": {"sha256": "3"}}}',
        '{"format": 1, "name": "a", "parts": {"forward": {}}, "files": {}}',
        '{"format": 1, "name": "a", "parts": {}, "files": {}, "card": [1]}',
    ],
)
def test_a_damaged_manifest_is_refused(copy: Path, content: str) -> None:
    (copy / MANIFEST).write_text(content)
    with pytest.raises(PackError, match="not a pack's manifest"):
        open_pack(str(copy))


@pytest.mark.parametrize("change", [{"weights": "words.txt"}, {"config": {"odd": 1}}, {"size": 3}])
def test_an_lstm_that_is_not_what_the_manifest_tells(copy: Path, change: dict[str, Any]) -> None:
    manifest = json.loads((copy / MANIFEST).read_text())
    entry = manifest["parts"]["forward"]
    entry |= {"config": {**entry["config"], **change}} if "size" in change else change
    (copy / MANIFEST).write_text(json.dumps({**manifest, "parts": {**manifest["parts"], "forward": entry}}))
    with pytest.raises(PackError, match="does not hold the forward model that its manifest describes") as caught:
        load_lstm(open_pack(str(copy)), "forward")
    assert "\n" not in str(caught.value)


def test_a_name_too_long_for_a_file_is_no_pack() -> None:
    with pytest.raises(PackError, match="there is no pack"):
        find("x" * 300)


def test_packs_are_found_by_name_in_the_users_folder(copy: Path) -> None:
    shutil.move(copy, home() / "packs" / "mine")
    assert find("mine") == home() / "packs" / "mine"
    assert find("mine") in available()
    with pytest.raises(PackError, match=r"there is no pack 'yours'.*mine"):
        find("yours")


def test_a_folder_here_replaces_a_known_pack_only_when_given_as_a_path(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(copy, home() / "packs" / "mine")
    shutil.copytree(copy, tmp_path / "here" / "mine")
    shutil.copytree(copy, tmp_path / "here" / "other")
    monkeypatch.chdir(tmp_path / "here")
    assert find("mine") == home() / "packs" / "mine"
    assert find("./mine") == Path("mine")
    assert find("other") == Path("other")
