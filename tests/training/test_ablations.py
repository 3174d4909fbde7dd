"""The classifiers of the ablations: trained as that of the pack was, on less; resumable; packs of one part."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import InputError, PackError
from redraft.models.pack import MANIFEST, Pack, open_pack, write_manifest
from redraft.predict.classifier import pack_classifier
from redraft.synthesis.dataset import SynthesisConfig, synthesise
from redraft.synthesis.masked_lstm import PackMaskedLm
from redraft.synthesis.masked_xlnet import PackMaskedXlnet
from redraft.synthesis.recipes import RECIPES
from redraft.synthesis.shards import read_card, read_shard, shard_paths
from redraft.synthesis.words import Method
from redraft.training import ablations
from redraft.training.ablations import ABLATIONS, train_ablations
from redraft.training.classifier import ClassifierTraining, train_classifier
from redraft.training.parts import Additions, add_parts

_SHAPE = {"n_layer": 1, "d_model": 16, "n_head": 2, "d_inner": 16}


@pytest.fixture(scope="module")
def base(tiny_pack: Pack, made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """A pack whose classifier was trained by the commands."""
    folder = tmp_path_factory.mktemp("base")
    recipes = (*RECIPES["paper"], *RECIPES["mixed"])
    methods = (Method.RANDOM, Method.MASKED_LM)
    config = SynthesisConfig(made_corpus, 5, 240, 60, methods, recipes, 20, sources_per_shard=16)
    synthesise(config, folder / "data", load_masked_lm=PackMaskedLm(str(tiny_pack.folder)))
    training = ClassifierTraining(folder / "data", readers=tiny_pack, shape=_SHAPE, epochs=0.5, learning_rate=1e-2)
    train_classifier(training, folder / "classifier", quiet=True)
    return add_parts(tiny_pack, folder / "tiny", Additions(classifier=folder / "classifier"), {})


@pytest.fixture
def pack(base: Pack, tmp_path: Path) -> Pack:
    """A copy in the folder where its overlays will be."""
    return open_pack(str(shutil.copytree(base.folder, tmp_path / "out" / "packs" / "tiny")))


def test_each_classifier_is_trained_as_that_of_the_pack_was(
    pack: Pack, made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    said: list[str] = []
    packs = train_ablations(pack, made_corpus, out, batch_pieces=128, say=said.append, quiet=True)
    assert [one.name for one in packs] == ["tiny-third", "tiny-third-masked", "tiny-third-random"]
    assert len(said) == 9
    original = pack.card["classifier"]
    for ablation, made in zip(ABLATIONS, packs, strict=True):
        card = made.card["classifier"]
        data = card["data"]
        assert data["num"] == original["data"]["num"] // 3
        assert data["methods"] == [method.value for method in ablation.methods]
        assert data["max_words"] == original["data"]["max_words"]
        for key in ("seed", "recipes", "num_valid", "corpus"):
            assert data[key] == original["data"][key], key
        found = {row.method for path in shard_paths(out / ablation.name / "data", "train") for row in read_shard(path)}
        assert found == set(data["methods"])
        training = card["training"]
        assert (training["learning_rate"], training["seed"]) == (1e-2, 0)
        labels = data["counts"]["train"]["label"].values()
        assert training["words"] == pytest.approx((sum(labels) - data["counts"]["train"]["sentences"]) * 0.5, abs=2)
        # All are scored on the same sentences, whatever they were trained on.
        assert set(card["scores"]) == {"random", "masked-lm", "whole"}
        assert card["scores"]["whole"]["words"] == packs[0].card["classifier"]["scores"]["whole"]["words"]
        assert ablation.about in made.card["description"]
        assert set(made.manifest["parts"]) == {"classifier"}
        assert set(made.parts) == {"forward", "backward", "classifier"}
        assert redraft.load(str(made.folder), "l-mcmc-c", candidates=3).generate("dog", steps=3, seed=1)
    sentence = [("the", "dog", "sees", ".")]
    first, second, third = (pack_classifier(one).log_probs(sentence)[0] for one in packs)
    assert not np.allclose(first, second)
    assert not np.allclose(second, third)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(ablations, "synthesise", fail)
    again = train_ablations(pack, made_corpus, out, quiet=True)
    assert [one.fingerprint for one in again] == [one.fingerprint for one in packs]


def test_a_killed_run_ends_as_a_whole_one(
    pack: Pack, made_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(pack.folder, whole / "packs" / "tiny")
    (expected,) = train_ablations(open_pack(str(whole / "packs" / "tiny")), made_corpus, whole, ["third"], quiet=True)
    out = tmp_path / "out"

    def killed(*_: object, **__: object) -> None:
        (out / "packs" / "tiny-third").mkdir()
        (out / "packs" / "tiny-third" / "torn").write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ablations, "add_over", killed)
        with pytest.raises(KeyboardInterrupt):
            train_ablations(pack, made_corpus, out, ["third"], quiet=True)
    shards = {path: path.stat().st_mtime_ns for path in (out / "third" / "data").glob("*.parquet")}
    # Another infiller in the base, say: data and training do not depend on it.
    write_manifest(pack.folder, "tiny", pack.parts, {**pack.card, "more": 1})
    (made,) = train_ablations(open_pack(str(pack.folder)), made_corpus, out, ["third"], quiet=True)
    assert {path: path.stat().st_mtime_ns for path in shards} == shards
    assert made.fingerprint == expected.fingerprint


def test_the_command(pack: Pack, made_corpus: Path, tmp_path: Path) -> None:
    arguments = ["train", "ablations", "--pack", str(pack.folder), "--corpus", str(made_corpus), "--num", "30"]
    arguments += ["--out", str(tmp_path / "out"), "--only", "third-random", "--batch", "256"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert f"{tmp_path / 'out' / 'packs' / 'tiny-third-random'}: macro-F1 0." in result.stdout
    assert read_card(tmp_path / "out" / "third-random" / "data")["num"] == 30
    assert not (tmp_path / "out" / "third").exists()


def test_what_cannot_be_trained_is_refused_before_any_work(
    pack: Pack, tiny_pack: Pack, made_corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new"
    with pytest.raises(InputError, match="there is no ablation 'half'; choose some of: third, third-masked"):
        train_ablations(pack, made_corpus, out, ["half"])
    with pytest.raises(PackError, match="stands over pack tiny, which is not there: put it beside"):
        train_ablations(pack, made_corpus, out)
    for card in ({}, {"classifier": {"data": {"num": 3}}}):
        write_manifest(pack.folder, "tiny", pack.parts, card)
        with pytest.raises(InputError, match="does not say how its classifier was trained"):
            train_ablations(open_pack(str(pack.folder)), made_corpus, tmp_path / "out")
    assert not out.exists()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["packs"]


def test_the_data_have_the_words_of_the_model_that_the_card_names(pack: Pack) -> None:
    card = json.loads((pack.folder / MANIFEST).read_text())["card"]
    assert isinstance(ablations._Original(pack).masked_lm, PackMaskedLm)
    card["classifier"]["data"]["masked_lm"]["kind"] = "masked XLNet"
    changed = write_manifest(pack.folder, "tiny", pack.parts, card)
    assert isinstance(ablations._Original(changed).masked_lm, PackMaskedXlnet)
