"""The encoder that sees capitals: BERT's values, the pieces of its words, a pruned vocabulary, training and packs."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from redraft import text
from redraft.errors import InputError, PackError
from redraft.models.encoder import Case, CasedPieces, Encoder, EncoderConfig, kept_pieces, pruned, read_vocabulary
from redraft.models.pack import Pack, open_pack
from redraft.predict.classifier import LABELS, load_classifier, pack_classifier
from redraft.predict.encoder import EncoderTokenClassifier
from redraft.predict.pieces import PieceEncoder
from redraft.training.classifier import ClassifierTraining, train_classifier
from redraft.training.parts import Additions, add_parts

_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
_SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WHOLE = ["the", "dog", "sees", "river", "apple", "old", "friend", "likes", "ball", "turkey", "rivers"]
_PARTS = ["##s", "##er", "##ing", "ca", "##fe"]
_LETTERS = [mark + letter for letter in "abcdefghijklmnopqrstuvwxyz.,'\"" for mark in ("", "##")]
_NAMES = [*_SPECIAL, *_WHOLE, *_PARTS, *_LETTERS, "é"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT without capitals, as transformers saves it."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("".join(f"{name}\n" for name in _NAMES), encoding="utf-8")
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(_NAMES), max_position_embeddings=32, **_SIZES)).save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    )
    assert BertTokenizer.from_pretrained(folder).tokenize("Dogs") == ["dog", "##s"]
    return folder


def _encoder(folder: Path) -> Encoder:
    encoder = Encoder(EncoderConfig.read(json.loads((folder / "config.json").read_text()))).eval()
    given = pruned(load_file(folder / "model.safetensors"), range(len(_NAMES)))
    encoder.load_state_dict(given, strict=False)
    return encoder


def test_states_are_those_of_transformers(bert: Path) -> None:
    from transformers import BertModel

    reference, encoder = BertModel.from_pretrained(bert).eval(), _encoder(bert)
    ids = torch.randint(0, len(_NAMES), (3, 7), generator=torch.Generator().manual_seed(1))
    real = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]
    with torch.inference_mode():
        expected = reference(input_ids=ids, attention_mask=real.long()).last_hidden_state
        assert (encoder(ids, real) - expected)[real].abs().max() < 1e-5
        whole = torch.ones_like(real)
        assert (encoder(ids, whole) - reference(input_ids=ids).last_hidden_state).abs().max() < 1e-5


def test_capitals_change_nothing_before_training_and_something_after(bert: Path) -> None:
    encoder, splitter = _encoder(bert), CasedPieces.read(bert / "vocab.txt")
    small, capital = (
        torch.tensor([[splitter.begin, *splitter.split(word), splitter.end]]) for word in ("turkey", "Turkey")
    )
    real = torch.ones_like(small, dtype=torch.bool)
    assert not torch.equal(small, capital)
    with torch.no_grad():
        assert torch.equal(encoder(small, real), encoder(capital, real))
        encoder.embeddings.case_embeddings.weight[Case.FIRST] += 1
        assert not torch.allclose(encoder(small, real), encoder(capital, real))


def test_sentences_longer_than_the_window_are_read(bert: Path) -> None:
    encoder = _encoder(bert)
    ids = torch.full((1, 40), 7)
    assert encoder(ids, ids > 0).shape == (1, 40, 16)


@pytest.mark.parametrize(
    ("word", "case"),
    [("dog", 0), ("Dog", 1), ("I", 1), ("NATO", 2), ("McCain", 3), ("iPod", 3), ("12", 0), ("'S", 1), ("U.S.", 2)],
)
def test_cases(word: str, case: int) -> None:
    assert Case.of(word) == case


@given(st.text(min_size=1, max_size=12))
def test_every_word_has_pieces_of_its_case(word: str) -> None:
    splitter = CasedPieces(_NAMES)
    found = splitter.split(word)
    assert found
    assert {one // len(_NAMES) for one in found} == {int(Case.of(word))}
    assert max(found) < splitter.size


def test_sentences_are_split_as_by_transformers(bert: Path) -> None:
    from transformers import BertTokenizer

    tokenizer, splitter = BertTokenizer.from_pretrained(bert), CasedPieces.read(bert / "vocab.txt")
    for sentence in ("The dog sees rivers.", 'Old café dogger, likes 漢 "turkey"'):
        encoding = PieceEncoder(splitter).encode(text.tokenise(sentence))
        assert [one % len(_NAMES) for one in encoding.ids] == tokenizer(sentence)["input_ids"]


def test_words_whose_pieces_are_kept_are_read_as_before(bert: Path) -> None:
    """A pruned vocabulary equals the whole one on its words; other words are spelled by what is left."""
    whole = CasedPieces.read(bert / "vocab.txt")
    kept = kept_pieces(whole.names, Counter({i: 20 for word in ("the", "dogs", "sees") for i in whole.pieces(word)}))
    few = whole.only(kept)
    assert few.names == tuple(name for i, name in enumerate(_NAMES) if i in kept)
    assert set(_SPECIAL) - {"[unused0]"} <= set(few.names)
    assert "river" not in few.names
    weights = load_file(bert / "model.safetensors")
    config = EncoderConfig.read(json.loads((bert / "config.json").read_text()))
    small = Encoder(EncoderConfig(**{**vars(config), "vocab_size": len(kept)})).eval()
    small.load_state_dict(pruned(weights, kept), strict=False)
    words = ("the", "Dogs", "sees", "the", "dog")
    states = [
        encoder(torch.tensor([PieceEncoder(splitter).encode(words).ids]), torch.ones(1, 8, dtype=torch.bool))
        for encoder, splitter in ((_encoder(bert), whole), (small, few))
    ]
    assert torch.equal(*states)
    assert [few.names[i] for i in few.pieces("River")] == ["r", "##i", "##v", "##e", "##r"]


def test_rare_characters_do_not_fill_the_vocabulary() -> None:
    names = [*_SPECIAL, "a", "##a", "漢", "##漢"]
    assert kept_pieces(names, Counter()) == [0, 2, 3, 4, 5, 6, 7]
    assert kept_pieces(names, Counter({8: 20, 9: 19})) == [0, 2, 3, 4, 5, 6, 7, 8]


def test_a_classifier_is_trained_from_it_and_stored(bert: Path, data: Path, tiny_pack: Pack, tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    train_classifier(ClassifierTraining(data, init=bert, epochs=0.2, batch_pieces=512), trained, quiet=True)
    found = load_classifier(trained)
    assert isinstance(found.network, EncoderTokenClassifier)
    assert isinstance(found.splitter, CasedPieces)
    assert len(found.splitter.names) < len(_NAMES)
    sentences = [("the", "dog", "sees", "Turkey", "."), ("rivers",)]
    assert [one.shape for one in found.log_probs(sentences)] == [(6, len(LABELS)), (2, len(LABELS))]
    add_parts(tiny_pack, tmp_path / "pack", Additions(classifier=trained), {"few": ["The dog sees a ball ."] * 3})
    stored = pack_classifier(open_pack(str(tmp_path / "pack")))
    for old, new in zip(found.log_probs(sentences), stored.log_probs(sentences), strict=True):
        assert np.abs(np.exp(old) - np.exp(new)).max() < 0.03  # 8 bits instead of 32
    again = tmp_path / "again"
    train_classifier(ClassifierTraining(data, init=trained, epochs=0.1, batch_pieces=512), again, quiet=True)
    assert load_classifier(again).splitter.names == found.splitter.names  # type: ignore[attr-defined]


def test_what_is_no_bert_is_refused(bert: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(PackError, match=r"not the vocabulary of a BERT: it lacks \[CLS\]"):
        read_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(PackError, match=r"vocab\.txt is not the vocabulary"):
        read_vocabulary(tmp_path / "missing" / "vocab.txt")
    with pytest.raises(PackError, match="hidden_act 'relu' is not supported"):
        EncoderConfig.read({**vars(EncoderConfig(9)), "hidden_act": "relu"})
    with pytest.raises(PackError, match="has no vocab_size"):
        EncoderConfig.read({"hidden_size": 4})
    for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((bert / name).read_bytes())
    from safetensors.torch import save_file

    weights = load_file(bert / "model.safetensors")
    lacking = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
    save_file({name: one for name, one in weights.items() if name != lacking}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"lacks encoder\.layer\.1\.output\.dense\.weight"):
        train_classifier(ClassifierTraining(data, init=tmp_path), tmp_path / "out", quiet=True)
