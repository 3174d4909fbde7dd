"""The classifier over readings: its inputs are what the readers say, it trains, and it fits no other readers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import redraft
from redraft import text
from redraft.app.explain import explain
from redraft.errors import PackError
from redraft.models.base import Slot
from redraft.models.batching import padded
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import Pack
from redraft.models.vocabulary import Vocabulary
from redraft.predict.classifier import LABELS, load_classifier, pack_classifier
from redraft.predict.pieces import PieceEncoder
from redraft.synthesis.dataset import SynthesisConfig, synthesise
from redraft.synthesis.words import Method
from redraft.training.classifier import ClassifierTraining, train_classifier
from redraft.training.classifier_files import new_reading_classifier, save_classifier
from redraft.training.parts import Additions, add_parts

_SHAPE = {"n_layer": 1, "d_model": 16, "n_head": 2, "d_inner": 16}
_SENTENCES = [
    ("the", "dog", "sees", "the", "ball", "."),
    ('"', "my", "friend", "likes", "an", "apple", '"'),
    ("unheard-of",),
    ("dog", "Unheard-of", "river"),
]


def _plain(words: tuple[str, ...], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words with the opening one in the form that the network takes a capital for: in the tiny corpus "The" is more
    frequent than "the"."""
    shown = text.surface(words)
    at = text.opening(words)
    if at is None or shown[at] not in vocabulary:
        return words
    return (*words[:at], vocabulary.words[vocabulary.plain_ids[vocabulary.id(shown[at])]], *words[at + 1 :])


@pytest.fixture(scope="module")
def saved(tiny_pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    network, _ = new_reading_classifier(tiny_pack, _SHAPE, seed=1)
    save_classifier(network, folder, tiny_pack)
    return folder


def test_inputs_are_what_the_readers_say(tiny_pack: Pack) -> None:
    network, splitter = new_reading_classifier(tiny_pack, _SHAPE)
    forward, backward = (load_lstm(tiny_pack, part) for part in ("forward", "backward"))
    encoder, size = PieceEncoder(splitter), network._readers[0].config.size
    sentences = [_plain(words, splitter.vocabulary) for words in _SENTENCES]
    ids, real = padded([encoder.encode(words).ids for words in sentences], splitter.padding)
    found = network.features(ids, real.sum(1) - 2)
    assert not found[:, 0].any()
    assert not found[~real].any()
    for row, words in enumerate(sentences):
        (ahead,), (behind,) = (reader.read([words], [None]) for reader in (forward, backward))
        num = len(words)
        assert torch.allclose(found[row, 1 : num + 2, :size], ahead.state[0][-1], atol=1e-5)
        assert torch.allclose(found[row, 1 : num + 2, size : 2 * size], behind.state[0][-1].flip(0), atol=1e-5)
        scores = found[row, 1 : num + 2, 2 * size :].double() / 0.2
        assert torch.allclose(scores[:, 0], ahead.log_probs, atol=1e-4)
        following = [*splitter.vocabulary.ids(words)[1:], 0]
        for place in range(num):
            here = [Slot(words, place, place + 1)]
            log_dist = backward.log_dist(here, [behind])[0]
            if place > 0:  # a reader's distribution at the opening is of capitals
                assert scores[place, 2] == pytest.approx(log_dist[splitter.vocabulary.id(words[place])], abs=1e-4)
                skipping = forward.log_dist(here, [ahead])[0][following[place]]
                assert scores[place, 1] == pytest.approx(skipping, abs=1e-4)
        assert not scores[num, 1:4].any()
        assert scores[0, 4] < 0
        assert not scores[1:, 4].any()


def test_frequent_words_fit_a_place_or_a_gap(tiny_pack: Pack) -> None:
    network, splitter = new_reading_classifier(tiny_pack, _SHAPE)
    forward, backward = (load_lstm(tiny_pack, part) for part in ("forward", "backward"))
    words = _plain(_SENTENCES[0], splitter.vocabulary)
    ids, real = padded([PieceEncoder(splitter).encode(words).ids], splitter.padding)
    found = network.features(ids, real.sum(1) - 2)[0, :, -2:] / 0.2
    frequent = network._readers[0].softmax.edges[0]
    for place in range(1, len(words)):
        for column, end in enumerate((place + 1, place)):
            slot = [Slot(words, place, end)]
            both = sum(r.log_dist(slot, r.read([words], [None]))[0][:frequent] for r in (forward, backward))
            assert found[place + 1, column] == pytest.approx(float(np.logaddexp.reduce(both)), abs=1e-3)


def test_batches_do_not_matter(saved: Path, tiny_pack: Pack) -> None:
    classifier = load_classifier(saved, pack=tiny_pack)
    together = classifier.log_probs(_SENTENCES)
    for words, rows in zip(_SENTENCES, together, strict=True):
        alone = load_classifier(saved, pack=tiny_pack).log_probs([words])[0]
        assert rows.shape == (len(words) + 1, len(LABELS))
        assert np.allclose(rows, alone, atol=1e-5)


def test_it_trains_and_guides_from_a_pack(made_corpus: Path, tiny_pack: Pack, tmp_path: Path) -> None:
    synthesise(SynthesisConfig(made_corpus, 1, 600, 120, (Method.RANDOM,), sources_per_shard=64), tmp_path / "data")
    config = ClassifierTraining(tmp_path / "data", readers=tiny_pack, learning_rate=1e-2, batch_pieces=256)
    scores = train_classifier(replace(config, shape=_SHAPE, epochs=8), tmp_path / "out", quiet=True)
    assert scores["whole"].macro_f1 > 0.4  # always "copy" has 0.23
    pack = add_parts(tiny_pack, tmp_path / "pack", Additions(classifier=tmp_path / "out"), {"some": ["The dog sees."]})
    assert pack.parts["classifier"] == {"kind": "redraft-xlnet-over-lstm", "folder": "classifier"}
    assert pack.card["classifier"]["scores"]["whole"]["macro-average"]["f1"] == pytest.approx(
        scores["whole"].macro_f1, abs=1e-4
    )
    near = load_classifier(tmp_path / "out", pack=tiny_pack).log_probs(_SENTENCES[:1])[0]
    assert np.abs(np.exp(pack_classifier(pack).log_probs(_SENTENCES[:1])[0]) - np.exp(near)).max() < 0.05
    train_classifier(replace(config, init=tmp_path / "out", epochs=0.1), tmp_path / "more", quiet=True)
    for arguments in (
        ["--classifier", str(tmp_path / "more"), "--pack", str(tiny_pack.folder)],
        ["--pack", str(pack.folder)],
    ):
        shown = CliRunner().invoke(explain, ["the dog", *arguments])
        assert shown.exit_code == 0, shown.output
    writer = redraft.load(str(pack.folder), candidates=3, recipe="l-mcmc-c")
    assert writer.generate("dog", settings=redraft.Settings(steps=5, seed=1)).constraints_met


def test_it_fits_no_other_readers(saved: Path, tiny_pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(PackError, match="trained over other LSTM models than those of pack english"):
        load_classifier(saved)
    config = json.loads((saved / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(PackError, match="does not hold the weights"):
        load_classifier(tmp_path, pack=tiny_pack)
