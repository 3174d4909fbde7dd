"""Packs that stand over another pack."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import InputError, PackError
from redraft.models.pack import Pack, open_pack
from redraft.training.parts import Additions, add_over, add_parts

_SETS = {"some": ["The dog sees the sea.", "A child likes fine-tuning, but not today!"]}


def test_an_overlay_writes_as_the_whole_pack_would(
    tiny_pack: Pack, classifier: Path, made_corpus: Path, tmp_path: Path
) -> None:
    base = open_pack(str(shutil.copytree(tiny_pack.folder, tmp_path / "tiny")))
    copy = add_parts(base, tmp_path / "copy", Additions(classifier=classifier), _SETS)
    over = add_over(base, tmp_path / "guided", Additions(classifier=classifier), _SETS)
    assert over.name == "guided"
    assert over.num_bytes == copy.num_bytes - base.num_bytes
    assert over.card["classifier"] == copy.card["classifier"]
    assert over.card["nll_per_word"] == copy.card["nll_per_word"]
    assert over.fingerprint == copy.fingerprint  # the same files, in two folders
    for recipe in ("l-mcmc-c", "l-mcmc"):
        ours, theirs = (
            redraft.load(str(pack.folder), recipe).generate("dog", steps=5, seed=1) for pack in (over, copy)
        )
        assert ours.words == theirs.words
    only = add_over(base, tmp_path / "only", Additions(classifier=classifier), _SETS, takes=["forward"])
    assert set(only.parts) == {"forward", "classifier"}
    arguments = ["train", "add", str(base.folder), "--classifier", str(classifier), "--corpus", str(made_corpus)]
    result = CliRunner().invoke(cli, [*arguments, "--overlay", "--out", str(tmp_path / "another")])
    assert result.exit_code == 0, result.output
    assert open_pack(str(tmp_path / "another")).fingerprint == over.fingerprint


def test_what_cannot_be_an_overlay_is_refused(tiny_pack: Pack, classifier: Path, xlnet: Path, tmp_path: Path) -> None:
    base = open_pack(str(shutil.copytree(tiny_pack.folder, tmp_path / "tiny")))
    over = add_over(base, tmp_path / "over", Additions(classifier=classifier), {})
    with pytest.raises(InputError, match="pack over stands over pack tiny; add models to that pack"):
        add_parts(over, tmp_path / "new", Additions(classifier=classifier), {})
    with pytest.raises(InputError, match="an XLNet takes orders from the models of a pack"):
        add_over(base, tmp_path / "new", Additions([str(xlnet)]), {})
    with pytest.raises(InputError, match="not an empty folder"):
        add_over(base, base.folder, Additions(classifier=classifier), {})
    with pytest.raises(PackError, match="stands over pack tiny, which is not there: put it beside"):
        add_over(base, tmp_path / "else" / "new", Additions(classifier=classifier), {})
    with pytest.raises(PackError, match=r"config.json"):
        add_over(base, tmp_path / "new", Additions(classifier=tmp_path), {})
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "else").exists()
