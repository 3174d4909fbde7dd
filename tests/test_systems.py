"""The registry: every system is listed with what it needs, and packs are hashed once."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import redraft
from redraft import assemble, recipes
from redraft.app.cli import cli
from redraft.errors import InputError, PackError
from redraft.models import pack as packs
from redraft.models.pack import Pack
from redraft.systems import SYSTEMS, absence, system


def test_every_recipe_is_a_system() -> None:
    assert list(SYSTEMS) == list(recipes.RECIPES)
    assert all(SYSTEMS[name].recipe is recipe for name, recipe in recipes.RECIPES.items())
    with pytest.raises(InputError, match="there is no recipe 'none'; choose one of: l-mcmc"):
        system("none")


def test_defaults_are_chosen_by_what_there_is(tiny_pack: Pack) -> None:
    def pack(*parts: str) -> Pack:
        return Pack(tiny_pack.folder, {**tiny_pack.manifest, "parts": {part: {"kind": "x"} for part in parts}})

    names = {
        ("forward", "backward"): ("l-mcmc", "smollm2-mcmc"),
        ("forward", "backward", "classifier"): ("l-mcmc-c", "smollm2-mcmc-c"),
        ("xlnet",): ("x-mcmc", "x-mcmc"),
        ("xlnet", "classifier"): ("x-mcmc-c", "x-mcmc-c"),
        ("forward", "backward", "classifier", "infiller"): ("l-mcmc-c", "infiller"),
    }
    for parts, expected in names.items():
        found = [recipes.default(pack(*parts), has_target=pulled).name for pulled in (False, True)]
        assert tuple(found) == expected
        assert recipes.gains_from_pulling(pack(*parts)) == (expected[0] != expected[1])
    assert recipes.unguided(pack("forward", "backward", "classifier")).name == "l-mcmc"


def test_absence_says_what_is_missing(tiny_pack: Pack) -> None:
    assert absence(system("l-mcmc"), tiny_pack) is None
    assert absence(system("gbs"), tiny_pack) is None
    assert absence(system("l-mcmc-c"), tiny_pack) == "pack tiny has no classifier"
    assert absence(system("smollm2-mcmc"), tiny_pack) == "smollm2 was not pulled"
    assert "XLNet that reads backward" in str(absence(system("x-mcmc"), tiny_pack))


def test_the_command_lists_them(tiny_pack: Pack) -> None:
    shown = CliRunner().invoke(cli, ["recipes", "--pack", str(tiny_pack.folder)], catch_exceptions=False).output
    assert "* l-mcmc  " in shown
    assert "unavailable: smollm2 was not pulled" in shown
    lines = CliRunner().invoke(cli, ["recipes", "--pack", str(tiny_pack.folder), "--json"]).output.splitlines()
    found = {given["name"]: given for given in map(json.loads, lines)}
    assert list(found) == list(SYSTEMS)
    assert found["gbs"]["available"]
    assert found["l-mcmc-c"]["needs"] == ["forward and backward LSTM models", "a classifier"]


def test_a_search_has_no_steps(tiny_pack: Pack) -> None:
    writer = redraft.load(tiny_pack, "gbs")
    with pytest.raises(InputError, match="gbs revises nothing"):
        writer.generate("dog", steps=3)
    draft = writer.generate("dog", seed=1)
    assert "beam:10|target:tiny/forward|chains:1|seed:1" in draft.signature
    assert writer.matches_signature(draft.signature, redraft.Settings(seed=1))


def test_a_pack_is_hashed_once_and_again_once_it_changed(
    tiny_pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    folder = tmp_path / "pack"
    shutil.copytree(tiny_pack.folder, folder)
    hashed: list[Path] = []
    plain = packs._sha256
    monkeypatch.setattr(packs, "_sha256", lambda path: hashed.append(path) or plain(path))
    first = assemble.opened(str(folder))
    count = len(hashed)
    assert count == len(first.manifest["files"])
    assert assemble.opened(str(folder)) is first
    assert len(hashed) == count
    (folder / "words.txt").write_text("other\n")
    with pytest.raises(PackError, match="not the file it was made with"):
        assemble.opened(str(folder))
