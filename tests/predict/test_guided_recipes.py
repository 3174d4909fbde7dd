"""A pack with a classifier: the learned prior at work in the sampler."""

import shutil
from pathlib import Path

import pytest

import redraft
from redraft.errors import PackError
from redraft.models.pack import Pack, write_manifest
from redraft.predict.xlnet import XlnetTokenClassifier
from redraft.training.classifier_files import save_classifier
from redraft.writer import Settings


@pytest.fixture
def guided(tiny_pack: Pack, network: XlnetTokenClassifier, pieces: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "guided"
    shutil.copytree(tiny_pack.folder, folder)
    save_classifier(network, folder, pieces)
    write_manifest(folder, "guided", {**tiny_pack.parts, "classifier": {"kind": "xlnet"}}, tiny_pack.card)
    return folder


@pytest.mark.parametrize("kernel", ["paper", "exact"])
@pytest.mark.parametrize("recipe", [None, "l-mcmc-c-positions", "l-mcmc-c-actions"])
def test_guided_drafts(guided: Path, recipe: str | None, kernel: str) -> None:
    writer = redraft.load(str(guided), recipe, candidates=5, kernel=kernel)
    assert writer.recipe.name == (recipe or "l-mcmc-c")
    draft = writer.generate("dog", "sea", settings=Settings(steps=15, seed=1))
    assert draft.constraints_met
    assert draft.text == writer.generate("dog", "sea", settings=Settings(steps=15, seed=1)).text


def test_a_pack_without_a_classifier_says_so(tiny_pack: Pack) -> None:
    with pytest.raises(PackError, match="pack tiny has no classifier model"):
        redraft.load(str(tiny_pack.folder), "l-mcmc-c")
