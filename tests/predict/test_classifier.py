import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from redraft.errors import InputError, PackError
from redraft.predict import classifier as module
from redraft.predict.classifier import LABELS, Classifier, load_classifier
from redraft.predict.pieces import SentencePieces
from redraft.predict.xlnet import XlnetTokenClassifier
from redraft.training.classifier_files import classifier_from, save_classifier
from tests.predict.conftest import TINY

_SENTENCES = [
    ("the", "dog", "sees", "the", "ball", "."),
    ("fine-tuning",),
    ("a", "singer", "likes", "fine-tuning", "the", "old", "man", "every", "day", "at", "home", "."),
    ("person",),
]


class _PieceNumbers(nn.Module):
    """Scores the label "insert" by the number of the piece, so that a result tells which piece it is of."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        self.calls.append(len(ids))
        logits = torch.zeros(*ids.shape, len(LABELS))
        logits[..., 2] = ids / 100
        return logits


def _piece_of(row: np.ndarray) -> int:
    return round(100 * float(row[2] - row[0]))


def test_a_row_for_each_word_and_the_end(classifier: Classifier) -> None:
    for words, found in zip(_SENTENCES, classifier.log_probs(_SENTENCES), strict=True):
        assert found.shape == (len(words) + 1, len(LABELS))
        assert np.exp(found).sum(1) == pytest.approx(1, abs=1e-5)


def test_the_row_of_a_word_is_that_of_its_first_piece(pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    found = Classifier(_PieceNumbers(), splitter).log_probs([("a", "fine-tuning", "sees")])[0]
    assert _piece_of(found[1]) == splitter.split("fine-tuning")[0]
    assert _piece_of(found[2]) == splitter.split("sees")[0]
    assert _piece_of(found[3]) == splitter.end


def test_the_batch_changes_nothing(network: XlnetTokenClassifier, pieces: Path) -> None:
    together = Classifier(network, SentencePieces(pieces)).log_probs(_SENTENCES)
    for words, expected in zip(_SENTENCES, together, strict=True):
        alone = Classifier(network, SentencePieces(pieces)).log_probs([words])[0]
        assert alone == pytest.approx(expected, abs=1e-5)


def test_a_sentence_is_not_classified_twice(pieces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = _PieceNumbers()
    classifier = Classifier(network, SentencePieces(pieces))
    classifier.log_probs([("a", "b"), ("a", "b"), ("c", "d")])
    assert sum(network.calls) == 2
    classifier.log_probs([("c", "d"), ("a", "c")])
    assert sum(network.calls) == 3
    assert classifier.log_probs([]) == []
    monkeypatch.setattr(module, "_KEPT", 2)
    classifier.log_probs([("c", "d")])  # the two used last are kept: this one and ("a", "c")
    classifier.log_probs([("a", "c"), ("c", "d")])
    assert sum(network.calls) == 3
    classifier.log_probs([("a", "b")])
    assert sum(network.calls) == 4


def test_groups_hold_each_sentence_once() -> None:
    lengths = [5, 30, 6, 5, 29, 4000, 5000, 1]
    found = list(module.sentence_groups(lengths))
    assert sorted(i for group in found for i in group) == list(range(len(lengths)))
    assert [1, 4] in found


@pytest.fixture
def saved(network: XlnetTokenClassifier, pieces: Path, tmp_path: Path) -> Path:
    save_classifier(network, tmp_path / "saved", pieces)
    return tmp_path / "saved"


def test_saved_and_loaded_it_says_the_same(saved: Path, classifier: Classifier) -> None:
    for found, expected in zip(
        load_classifier(saved).log_probs(_SENTENCES), classifier.log_probs(_SENTENCES), strict=True
    ):
        assert found == pytest.approx(expected, abs=1e-2)  # weights are kept in half precision


def test_transformers_loads_the_folder(saved: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.XLNetForTokenClassification.from_pretrained(saved, dtype=torch.float32).eval()
    ours = load_classifier(saved)
    ids = torch.tensor([ours.encode(_SENTENCES[0]).ids])
    with torch.inference_mode():
        expected = torch.log_softmax(model(ids).logits, -1)[0, ours.encode(_SENTENCES[0]).firsts]
    assert ours.log_probs(_SENTENCES[:1])[0] == pytest.approx(expected.double().numpy(), abs=1e-4)
    assert model.config.id2label == dict(enumerate(LABELS))


def test_any_encoder_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "see", "##s", "the", "ball", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizer(str(tmp_path / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        id2label=dict(enumerate(LABELS)),
    )
    folder = tmp_path / "bert"
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    found = load_classifier(folder).log_probs([("the", "dog", "sees", "the", "ball", ".")])[0]
    assert found.shape == (7, 4)


def _change(saved: Path, **changes: object) -> None:
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | changes))


def test_another_vocabulary_is_refused(saved: Path) -> None:
    _change(saved, redraft_pieces_sha256="0" * 64)
    with pytest.raises(PackError, match="not the vocabulary that the classifier was trained with"):
        load_classifier(saved)
    _change(saved, redraft_pieces_sha256=None, vocab_size=99)
    with pytest.raises(PackError, match="pieces, the classifier 99"):
        load_classifier(saved)


def test_what_is_no_classifier_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="holds no classifier"):
        load_classifier(tmp_path)
    weights = load_file(saved / "model.safetensors")
    weights.pop("classifier.weight")
    save_file(weights, saved / "model.safetensors")
    with pytest.raises(PackError, match="does not hold the weights"):
        load_classifier(saved)
    _change(saved, id2label={"0": "person", "1": "place"})
    with pytest.raises(PackError, match="classifier of person, place; redraft needs copy"):
        load_classifier(saved)


@pytest.mark.parametrize("config", ["[]", '{"id2label": ["copy"]}'])
def test_an_odd_configuration_is_refused(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(PackError):
        load_classifier(tmp_path)


def test_it_can_start_from_a_classifier_of_other_labels(saved: Path, network: XlnetTokenClassifier) -> None:
    weights = load_file(saved / "model.safetensors")
    weights |= {"classifier.weight": torch.ones(9, TINY["d_model"]), "classifier.bias": torch.ones(9)}
    save_file(weights, saved / "model.safetensors")
    _change(saved, id2label={str(i): f"label {i}" for i in range(9)})
    started, _ = classifier_from(saved, seed=1)
    assert started.state_dict()["classifier.bias"].shape == (len(LABELS),)
    given = weights["transformer.layer.0.ff.layer_1.weight"].float()
    torch.testing.assert_close(started.state_dict()["transformer.layer.0.ff.layer_1.weight"], given)
    _change(saved, d_inner=8)
    with pytest.raises(InputError, match=r"does not hold what config.json describes"):
        classifier_from(saved)


def test_it_can_start_from_a_language_model(saved: Path, network: XlnetTokenClassifier) -> None:
    weights = load_file(saved / "model.safetensors")
    head = {"lm_loss.weight": weights.pop("classifier.weight"), "lm_loss.bias": weights.pop("classifier.bias")}
    save_file(weights | head, saved / "model.safetensors")
    started, _ = classifier_from(saved, seed=1)
    for name, value in started.state_dict().items():
        if name.startswith("transformer."):
            torch.testing.assert_close(value, network.state_dict()[name], rtol=0, atol=1e-3)
