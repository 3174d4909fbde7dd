"""A pack with LSTM models, an XLNet and a classifier: no clash of names, one vocabulary, 8 bits, every recipe."""

import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.app.synthesize import find_masked_lm
from redraft.errors import InputError, PackError, RedraftError
from redraft.models.base import Slot
from redraft.models.pack import MANIFEST, Pack, open_pack
from redraft.models.precision import PRECISION
from redraft.models.quantise import dequantise, quantise
from redraft.models.xlnet.files import WEIGHTS, save_xlnet
from redraft.models.xlnet.network import ReadingOrder
from redraft.models.xlnet.pack import load_readers, part_for
from redraft.models.xlnet.reader import XlnetReader
from redraft.predict.classifier import LABELS, load_classifier, pack_classifier
from redraft.training.pack import PackTraining, train_pack
from redraft.training.parts import Additions, add_parts
from redraft.writer import Settings
from tests.xlnets import make_network

transformers = pytest.importorskip("transformers")

_SETS = {"some": ["The dog sees the sea.", "A child likes fine-tuning, but not today!"]}


@pytest.fixture(scope="module")
def whole(tiny_pack: Pack, xlnet: Path, classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """A pack with everything in it."""
    out = tmp_path_factory.mktemp("whole") / "tiny"
    return add_parts(tiny_pack, out, Additions([str(xlnet)], classifier), _SETS)


def test_parts_live_together(whole: Pack, tiny_pack: Pack) -> None:
    assert set(whole.parts) == {"forward", "backward", "xlnet", "classifier"}
    assert whole.parts["xlnet"]["pieces"] == whole.parts["classifier"]["pieces"]
    assert len(list(whole.folder.rglob("*.model"))) == 1
    listed = set(whole.manifest["files"])
    assert {"xlnet/model.safetensors", "classifier/model.safetensors", "forward.safetensors"} <= listed
    assert listed == {p.relative_to(whole.folder).as_posix() for p in whole.folder.rglob("*") if p.is_file()} - {
        MANIFEST
    }
    assert whole.card["nll_per_word"] == tiny_pack.card["nll_per_word"]


def test_the_card_tells_what_8_bits_cost(whole: Pack, xlnet: Path) -> None:
    for order in ("forward", "backward", "masked"):
        scores = whole.card["xlnet"]["nll"]["some"][order]
        assert scores["cost_of_int8"] == pytest.approx(scores["int8"] - scores["before"], abs=1e-3)
        assert abs(scores["cost_of_int8"]) < 0.2
        if order != "masked":  # every word of these sentences is spelt out, some the LSTM models do not know
            of_known = whole.card["xlnet"]["nll_of_known_words"]["some"][order]
            assert 0 < of_known["lstm"] < of_known["xlnet"] < scores["before"]
    assert whole.card["classifier"]["scores"] == {"whole": 0.5}
    assert 0 <= whole.card["classifier"]["cost_of_int8"]["some"]["labels_changed"] < 0.3
    sizes = [(folder / WEIGHTS).stat().st_size for folder in (whole.folder / "xlnet", xlnet)]
    assert sizes[0] < sizes[1]


def test_8_bits_keep_every_shape_and_are_near() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = {
        "matrix": torch.randn(6, 8, generator=generator),
        "heads": torch.randn(6, 2, 4, generator=generator),
        "bias": torch.randn(5, generator=generator),
    }
    packed = quantise(weights)
    assert packed["heads"].dtype == torch.int8
    for name, value in dequantise(packed).items():
        torch.testing.assert_close(value, weights[name], atol=0.02, rtol=0)


def test_everybody_may_read_what_is_saved(whole: Pack, xlnet: Path, classifier: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    for folder in (whole.folder, xlnet, classifier):
        for path in folder.rglob("*"):
            if path.is_file():
                assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask, path


def test_readers_take_the_precision_that_was_asked_for(whole: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    for precision in ("float32", "bfloat16"):
        monkeypatch.setenv(PRECISION, precision)
        reader = load_readers(whole, [ReadingOrder.FORWARD])[ReadingOrder.FORWARD]
        assert isinstance(reader, XlnetReader)
        assert reader.network.lm_loss.bias.dtype == getattr(torch, precision)
        writer = redraft.load(str(whole.folder), "x-mcmc-c", candidates=5)
        draft = writer.generate("dog", settings=Settings(steps=5))
        assert draft.constraints_met
        assert ("|precision:bfloat16|" in draft.signature) == (precision == "bfloat16")
    exact = redraft.load(str(whole.folder), "x-mcmc", candidates=5, kernel="exact")
    assert exact.sampler.target.scorer.precision == "float32"  # its scores must not hang on the batch
    monkeypatch.setenv(PRECISION, "half")
    with pytest.raises(InputError, match="REDRAFT_PRECISION=half is no precision"):
        load_readers(whole, [ReadingOrder.FORWARD])


@pytest.mark.parametrize("recipe", ["x-mcmc", "x-mcmc-c", "l-mcmc-c"])
def test_every_recipe_works_from_the_pack(whole: Pack, recipe: str) -> None:
    writer = redraft.load(str(whole.folder), recipe, candidates=5)
    draft = writer.generate("dog", "fine-tuning", settings=Settings(steps=12, seed=1))
    assert draft.constraints_met
    assert draft.text == writer.generate("dog", "fine-tuning", settings=Settings(steps=12, seed=1)).text


@pytest.mark.parametrize("generator", ["forward", "backward", "both", "masked"])
def test_every_generator_on_the_command_line(whole: Pack, generator: str) -> None:
    arguments = ["generate", "dog", "sea", "--pack", str(whole.folder), "--recipe", "x-mcmc-c", "--steps", "6"]
    result = CliRunner().invoke(
        cli, [*arguments, "--generator", generator, "--candidates", "4", "--json", "--seed", "2"]
    )
    assert result.exit_code == 0, result.output
    (draft,) = json.loads(result.output)["drafts"]
    assert f"generator:{generator}|" in draft["signature"]
    assert draft["constraints_met"]


def test_the_exact_kernel_takes_the_masked_generator(whole: Pack) -> None:
    writer = redraft.load(str(whole.folder), "x-mcmc-c", candidates=4, kernel="exact", generator="masked")
    assert writer.generate("dog", settings=Settings(steps=12, seed=4)).constraints_met


def test_generators_propose_what_their_models_say(whole: Pack) -> None:
    from redraft import assemble, recipes
    from redraft.revise.candidates import slot_of
    from redraft.sentence import Action, Constraints

    constraints = Constraints(("dog", "sea"))
    sentence = constraints.start(np.random.default_rng(0))
    slot = slot_of(sentence, Action.INSERT, 1)
    readers = load_readers(whole, list(ReadingOrder))
    dists = {}
    for order, reader in readers.items():
        dists[order.value] = reader.log_dist([slot], reader.read([slot.words], [None]))[0]
    dists["both"] = dists["forward"] + dists["backward"]
    words = readers[ReadingOrder.FORWARD].words
    for name, dist in dists.items():
        sampler = assemble.build(recipes.recipe("x-mcmc", generator=name, num_candidates=3), whole)
        generator = sampler._candidates
        readings = [proposer.read([slot.words], [None]) for proposer in generator.readers]
        found = generator.candidates([sentence], [slot], [constraints], readings)[0].words
        assert found == tuple(words[i] for i in np.argsort(-dist, kind="stable")[:3])


def test_an_lstm_has_no_masked_generator(whole: Pack) -> None:
    with pytest.raises(InputError, match=r"recipe l-mcmc has no masked generator; try x-mcmc"):
        redraft.load(str(whole.folder), "l-mcmc", generator="masked")
    with pytest.raises(InputError, match="there is no generator 'sideways'"):
        redraft.load(str(whole.folder), "x-mcmc", generator="sideways")


def test_a_pack_without_an_xlnet_says_so(tiny_pack: Pack) -> None:
    with pytest.raises(PackError, match="pack tiny has no XLNet that reads forward"):
        redraft.load(str(tiny_pack.folder), "x-mcmc")


def test_models_of_one_order_each(tiny_pack: Pack, pieces: Path, tmp_path: Path) -> None:
    """As in the paper: a checkpoint for each order. Proposers that are multiplied share the words."""
    for seed, order in enumerate(("forward", "backward")):
        save_xlnet(tmp_path / order, make_network(pieces, seed), pieces)
        (tmp_path / order / "card.json").write_text(json.dumps({"training": {"orders": [order]}}))
    added = Additions([str(tmp_path / order) for order in ("forward", "backward")])
    pack = add_parts(tiny_pack, tmp_path / "pack", added, _SETS)
    assert {"xlnet-forward", "xlnet-backward"} <= set(pack.parts)
    assert set(pack.card["xlnet-forward"]["nll"]["some"]) == {"forward"}
    writer = redraft.load(str(pack.folder), "x-mcmc", candidates=4)
    assert writer.generate("dog", settings=Settings(steps=8, seed=1)).constraints_met
    with pytest.raises(PackError, match="no XLNet that reads masked"):
        redraft.load(str(pack.folder), "x-mcmc", generator="masked")


def _one_order(folder: Path, pieces: Path, *orders: str, seed: int = 0) -> str:
    save_xlnet(folder, make_network(pieces, seed), pieces)
    if orders:
        (folder / "card.json").write_text(json.dumps({"training": {"orders": orders}}))
    return str(folder)


def test_two_models_for_one_order_are_refused_unless_it_is_said_which(
    tiny_pack: Pack, pieces: Path, tmp_path: Path
) -> None:
    """Checkpoints from elsewhere do not tell what they read."""
    one, two = (_one_order(tmp_path / name, pieces, seed=seed) for seed, name in enumerate("ab"))
    with pytest.raises(InputError, match="two of the XLNets would read forward; choose one"):
        add_parts(tiny_pack, tmp_path / "pack", Additions([one, two]), _SETS)
    assert not (tmp_path / "pack").exists()
    pack = add_parts(tiny_pack, tmp_path / "pack", Additions([f"forward={one}", f"backward={two}"]), _SETS)
    assert pack.parts["xlnet-forward"]["orders"] == ["forward"]
    assert redraft.load(str(pack.folder), "x-mcmc", candidates=3)


def test_a_new_model_takes_over_what_it_reads(whole: Pack, pieces: Path, tmp_path: Path) -> None:
    forward = _one_order(tmp_path / "forward", pieces, "forward", seed=5)
    pack = add_parts(whole, tmp_path / "one", Additions([forward]), {})
    assert (part_for(pack, ReadingOrder.FORWARD), part_for(pack, ReadingOrder.BACKWARD)) == ("xlnet-forward", "xlnet")
    rest = _one_order(tmp_path / "rest", pieces, "backward", "masked", seed=6)
    pack = add_parts(pack, tmp_path / "two", Additions([rest]), {})
    assert {part_for(pack, order) for order in ReadingOrder} == {"xlnet-forward", "xlnet-backward-masked"}
    assert not (pack.folder / "xlnet").exists()
    assert "xlnet" not in pack.card
    every = _one_order(tmp_path / "every", pieces, seed=7)
    pack = add_parts(pack, tmp_path / "three", Additions([every]), {})
    assert [part for part, entry in pack.parts.items() if entry["kind"] == "xlnet-lm"] == ["xlnet"]


def test_what_fails_leaves_no_folder(tiny_pack: Pack, xlnet: Path, tmp_path: Path) -> None:
    out = tmp_path / "pack"
    for added, match in (
        (Additions([str(tmp_path / "nowhere" / "at" / "all")]), "neither a folder nor the name"),
        (Additions([str(xlnet)], tmp_path), "config.json"),
    ):
        with pytest.raises(RedraftError, match=match):
            add_parts(tiny_pack, out, added, _SETS)
        assert not out.exists()
    with pytest.raises(InputError, match="no sentence to measure on: other is empty"):
        add_parts(tiny_pack, out, Additions([str(xlnet)]), {**_SETS, "other": []})
    assert add_parts(tiny_pack, out, Additions([str(xlnet)]), {}).folder == out


def test_a_damaged_card_is_named(tiny_pack: Pack, pieces: Path, tmp_path: Path) -> None:
    folder = _one_order(tmp_path / "xlnet", pieces)
    (tmp_path / "xlnet" / "card.json").write_text("{")
    with pytest.raises(PackError, match=r"card\.json is not the card of a model"):
        add_parts(tiny_pack, tmp_path / "pack", Additions([folder]), {})


def test_models_of_two_vocabularies_are_not_multiplied(
    tiny_pack: Pack, pieces: Path, made_corpus: Path, tmp_path: Path
) -> None:
    from redraft.training.pieces import train_pieces

    train_pieces(made_corpus, tmp_path / "spiece.model", num_pieces=100)
    one = _one_order(tmp_path / "one", pieces, "forward")
    two = _one_order(tmp_path / "two", tmp_path / "spiece.model", "backward")
    pack = add_parts(tiny_pack, tmp_path / "pack", Additions([one, two]), {})
    with pytest.raises(PackError, match="do not share their words"):
        redraft.load(str(pack.folder), "x-mcmc")
    assert redraft.load(str(pack.folder), "x-mcmc", generator="forward")


def test_wrong_words_do_not_come_from_a_model_that_never_read_both_sides(pieces: Path, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="was not trained on masked words"):
        find_masked_lm(None, _one_order(tmp_path / "forward", pieces, "forward"))()


def test_another_vocabulary_has_a_file_of_its_own(whole: Pack, xlnet: Path, made_corpus: Path, tmp_path: Path) -> None:
    """And replacing a part takes the files of the old one away, not those that another part uses."""
    from redraft.training.pieces import train_pieces

    train_pieces(made_corpus, tmp_path / "spiece.model", num_pieces=100)
    save_xlnet(tmp_path / "other", make_network(tmp_path / "spiece.model"), tmp_path / "spiece.model")
    pack = add_parts(whole, tmp_path / "pack", Additions([str(tmp_path / "other")]), {})
    assert pack.parts["xlnet"]["pieces"] != pack.parts["classifier"]["pieces"]
    assert len(list(pack.folder.glob("*.model"))) == 2
    assert redraft.load(str(pack.folder), "x-mcmc-c", candidates=3)
    back = add_parts(pack, tmp_path / "back", Additions([str(xlnet)]), {})
    assert len(list(back.folder.glob("*.model"))) == 1
    assert back.fingerprint == whole.fingerprint


def _bert(folder: Path) -> Path:
    """Another encoder, with a tokenizer of its own."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "dog", "sea", "a", "##s", "."]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), **sizes, **labels)
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    return folder


def test_any_encoder_guides_any_language_model(whole: Pack, tmp_path: Path) -> None:
    pack = add_parts(whole, tmp_path / "pack", Additions(classifier=_bert(tmp_path / "bert")), _SETS)
    assert pack.parts["classifier"] == {"kind": "bert", "folder": "classifier"}
    assert pack.card["classifier"]["cost_of_half"]["some"]["labels_changed"] < 0.2
    expected = load_classifier(tmp_path / "bert").log_probs([("the", "dog", ".")])[0]
    assert np.allclose(pack_classifier(pack).log_probs([("the", "dog", ".")])[0], expected, atol=1e-2)
    for recipe in ("x-mcmc-c", "l-mcmc-c"):
        writer = redraft.load(str(pack.folder), recipe, candidates=3)
        assert writer.generate("dog", settings=Settings(steps=5, seed=1)).constraints_met


@pytest.mark.parametrize("file", ["xlnet/model.safetensors", "classifier/config.json"])
def test_a_changed_file_of_a_part_is_refused(whole: Pack, tmp_path: Path, file: str) -> None:
    pack = add_parts(whole, tmp_path / "pack", Additions(classifier=_bert(tmp_path / "bert")), {})
    with (pack.folder / file).open("ab") as changed:
        changed.write(b" ")
    with pytest.raises(PackError, match=f"{file} of pack pack is not the file it was made with"):
        open_pack(str(pack.folder))


def test_a_file_that_nobody_vouches_for_is_not_loaded(whole: Pack, tmp_path: Path) -> None:
    pack = add_parts(whole, tmp_path / "pack", Additions(classifier=_bert(tmp_path / "bert")), {})
    (pack.folder / "classifier" / "pytorch_model.bin").write_bytes(b"anything")
    with pytest.raises(PackError, match=r"does not vouch for classifier/pytorch_model\.bin"):
        redraft.load(str(pack.folder), "x-mcmc-c")


def test_wrong_words_come_from_the_xlnet_where_there_is_one(whole: Pack, tiny_pack: Pack, xlnet: Path) -> None:
    slots = [Slot(("the", "dog", "sees", "."), 1, 2)]
    of_pack, of_folder = find_masked_lm(str(whole.folder))(), find_masked_lm(None, str(xlnet))()
    assert of_pack.card["kind"] == of_folder.card["kind"] == "masked XLNet"
    assert of_pack.card["name"] == f"{whole.name}@{whole.fingerprint}"
    assert len(set(of_pack.likeliest(slots, 5)[0]) & set(of_folder.likeliest(slots, 5)[0])) >= 3  # 8 bits apart
    assert find_masked_lm(str(tiny_pack.folder))().card["kind"] == "forward x backward LSTM"


def test_nothing_to_add_is_refused(tiny_pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name what to add"):
        add_parts(tiny_pack, tmp_path / "pack", Additions(), {})
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder; choose a new one"):
        add_parts(tiny_pack, tmp_path, Additions(["some"]), {})
    with pytest.raises(InputError, match="not an empty folder"):
        add_parts(tiny_pack, tmp_path / "file", Additions(["some"]), {})


def test_what_cannot_be_added_in_place_changes_nothing(tiny_pack: Pack, xlnet: Path, tmp_path: Path) -> None:
    pack = open_pack(str(shutil.copytree(tiny_pack.folder, tmp_path / "pack")))
    with pytest.raises(RedraftError, match=r"config.json"):
        add_parts(pack, pack.folder, Additions([str(xlnet)], tmp_path), _SETS)
    assert open_pack(str(pack.folder)).fingerprint == tiny_pack.fingerprint
    assert not (pack.folder / "xlnet").exists()


def test_a_pack_is_trained_and_made_again(xlnet: Path, made_corpus: Path, tmp_path: Path) -> None:
    def make(added: Additions | None) -> Pack:
        return train_pack(PackTraining(made_corpus, "new", 2000, 50, additions=added), tmp_path)

    with pytest.raises(RedraftError, match=r"config.json"):
        make(Additions(classifier=tmp_path / "nowhere"))
    assert not list(tmp_path.iterdir())  # before any training
    pack = make(Additions([str(xlnet)]))
    assert "xlnet" in pack.parts
    again = make(None)
    assert sorted(again.parts) == ["backward", "forward"]
    assert not [name for name in again.manifest["files"] if "xlnet" in name or "pieces" in name]


def test_parts_are_added_on_the_command_line(
    tiny_pack: Pack, xlnet: Path, classifier: Path, made_corpus: Path, tmp_path: Path
) -> None:
    models = ["--xlnet", str(xlnet), "--classifier", str(classifier), "--corpus", str(made_corpus)]
    result = CliRunner().invoke(cli, ["train", "add", str(tiny_pack.folder), *models, "--out", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    pack = open_pack(str(tmp_path / "new"))
    assert "held-out part of the corpus" in pack.card["xlnet"]["nll"]
    assert pack.name == tiny_pack.name
