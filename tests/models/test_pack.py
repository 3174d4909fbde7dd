import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from redraft.app.cli import cli
from redraft.assemble import opened
from redraft.errors import PackError
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import MANIFEST, Pack, available, find, home, open_pack, write_manifest


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


def _over(base: Pack, folder: Path, parts: tuple[str, ...] = ("forward", "backward")) -> Path:
    """An overlay with a file of its own."""
    folder.mkdir(parents=True)
    (folder / "own.bin").write_bytes(b"own")
    write_manifest(folder, folder.name, {"extra": {"kind": "x", "weights": "own.bin"}}, {"own": 1}, base.only(parts))
    return folder


def test_an_overlay_takes_the_parts_of_its_base(copy: Path, tmp_path: Path) -> None:
    base = open_pack(str(copy))
    pack = open_pack(str(_over(base, tmp_path / "over")))
    assert set(pack.parts) == {"forward", "backward", "extra"}
    assert pack.num_bytes == 3
    assert pack.path("own.bin") == tmp_path / "over" / "own.bin"
    assert pack.path("words.txt") == copy / "words.txt"
    assert pack.card == {**base.card, "own": 1}
    assert pack.fingerprint not in (base.fingerprint, base.only(["forward"]).fingerprint)
    sentence = ("the", "dog", ".")
    for part in ("forward", "backward"):
        theirs, ours = (load_lstm(one, part) for one in (base, pack))
        assert ours.log_prob(ours.read([sentence], [None])[0]) == theirs.log_prob(theirs.read([sentence], [None])[0])
    with pytest.raises(PackError, match="does not vouch for other"):
        pack.path("other")
    shown = CliRunner().invoke(cli, ["packs", str(tmp_path / "over")]).stdout
    assert "MB over tiny  whole" in shown


def test_only_some_parts_of_a_pack(tiny_pack: Pack) -> None:
    some = tiny_pack.only(["forward"])
    assert set(some.parts) == {"forward"}
    assert set(some.files) == {"forward.safetensors", "words.txt"}
    assert tiny_pack.only(["forward", "backward"]).fingerprint == tiny_pack.fingerprint
    assert tiny_pack.only(["masked"]).parts == {}


def test_an_overlay_without_its_base_is_refused(copy: Path, tmp_path: Path) -> None:
    over = _over(open_pack(str(copy)), tmp_path / "over")
    copy.rename(tmp_path / "elsewhere")
    with pytest.raises(PackError, match="pack over stands over pack copy, which is not there: put it beside") as caught:
        open_pack(str(over))
    assert "\n" not in str(caught.value)


def test_an_overlay_over_another_pack_of_the_name_is_refused(copy: Path, tmp_path: Path) -> None:
    over = _over(open_pack(str(copy)), tmp_path / "over")
    words = copy / "words.txt"
    before = words.read_bytes()
    words.write_bytes(before + b"more\n")
    with pytest.raises(PackError, match=r"words.txt of pack copy is not the file it was made with"):
        open_pack(str(over))
    manifest = json.loads((copy / MANIFEST).read_text())
    changed = write_manifest(copy, "tiny", manifest["parts"], manifest["card"])
    message = "pack over stands over other forward and backward models than those of .*copy: get the copy that"
    with pytest.raises(PackError, match=message) as caught:
        open_pack(str(over))
    assert "\n" not in str(caught.value)
    words.write_bytes(before)
    write_manifest(copy, "tiny", changed.parts, changed.card)
    assert open_pack(str(over)).base is not None


def test_a_base_may_change_in_what_an_overlay_does_not_take(copy: Path, tmp_path: Path) -> None:
    over = _over(open_pack(str(copy)), tmp_path / "over", ("forward",))
    before = opened(str(over))
    (copy / "new.bin").write_bytes(b"new")
    parts = {**before.base.parts, "new": {"kind": "x", "weights": "new.bin"}}
    write_manifest(copy, "tiny", parts, {})
    assert opened(str(over)).fingerprint == before.fingerprint
    assert "new" not in opened(str(over)).parts
    parts = {"forward": {**parts["forward"], "config": {}}}
    write_manifest(copy, "tiny", parts, {})
    with pytest.raises(PackError, match="stands over other forward models"):  # although its own files are the same
        opened(str(over))


def test_the_base_with_the_right_hash_is_taken(copy: Path, tmp_path: Path) -> None:
    """A pack of the user may hide the shipped one of its name, but an overlay knows which one it stands over."""
    over = _over(open_pack(str(copy)), tmp_path / "over")
    for folder in (home() / "packs" / "copy", tmp_path / "else" / "copy"):
        folder.mkdir(parents=True)
        write_manifest(folder, "copy", {}, {})
    assert open_pack(str(over)).base.folder == copy
    over = Path(shutil.move(over, tmp_path / "else" / "over"))
    with pytest.raises(PackError, match="stands over other forward and backward models"):
        open_pack(str(over))
    shutil.rmtree(home() / "packs" / "copy")
    shutil.move(copy, home() / "packs" / "copy")
    assert open_pack(str(over)).base.folder == home() / "packs" / "copy"


def test_an_overlay_of_the_same_name_and_one_over_an_overlay(copy: Path, tmp_path: Path) -> None:
    shutil.copytree(copy, home() / "packs" / "copy")
    same = _over(open_pack("copy"), tmp_path / "mine" / "copy")
    assert open_pack(str(same)).base.folder == home() / "packs" / "copy"
    manifest = json.loads((same / MANIFEST).read_text())
    above = tmp_path / "mine" / "above"
    above.mkdir()
    (above / MANIFEST).write_text(json.dumps({**manifest, "name": "above", "files": {}, "parts": {}}))
    with pytest.raises(PackError, match="pack copy stands over pack copy, so no other pack can stand over it"):
        open_pack(str(above))


@pytest.mark.parametrize(
    "base",
    [
        3,
        "tiny",
        {"name": "tiny"},
        {"name": "../tiny", "sha256": "0", "parts": []},
        {"name": "", "sha256": "0", "parts": []},
        {"name": "tiny", "sha256": "0", "parts": [1]},
        {"name": "tiny", "sha256": 0, "parts": ["forward"]},
    ],
)
def test_a_damaged_entry_of_the_base_is_refused(copy: Path, base: object) -> None:
    _change(copy, base=base, format=2)
    with pytest.raises(PackError, match="not a pack's manifest"):
        open_pack(str(copy))
    with pytest.raises(PackError, match="not a pack's manifest"):
        opened(str(copy))
