"""Training XLNet: what is predicted, that it learns, that it can be stopped, and that its folder serves others."""

import csv
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from redraft.app.train_xlnet import xlnet_lm
from redraft.errors import InputError, PackError
from redraft.evaluation.lstm_nll import known_words, mean_over
from redraft.evaluation.xlnet_nll import Predictor, draw_masked, nll_by_order, piece_nll, sum_by_words
from redraft.models.pieces import PIECES, SentencePieces
from redraft.models.vocabulary import SPECIALS, Vocabulary
from redraft.models.xlnet.files import load_xlnet
from redraft.models.xlnet.network import ReadingOrder
from redraft.training import piece_data
from redraft.training.classifier_files import classifier_from
from redraft.training.loop import BEST, LOG, Schedule, train
from redraft.training.muon import orthogonal
from redraft.training.piece_data import PieceData, prepare_pieces
from redraft.training.processes import Share
from redraft.training.xlnet import XlnetTraining, new_xlnet, train_xlnet
from redraft.training.xlnet_task import XlnetTask
from tests.xlnets import make_network, readers

_SHAPE = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}
_ALL = tuple(ReadingOrder)


@pytest.fixture(scope="module")
def trained(made_corpus: Path, pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    config = XlnetTraining(made_corpus, _ALL, 45_000, pieces=pieces, shape=_SHAPE, learning_rate=1e-2)
    train_xlnet(replace(config, batch_pieces=512, validate_every=15_000), out, quiet=True)
    return out


def _task(data: PieceData, pieces: Path, orders: tuple[ReadingOrder, ...] = _ALL) -> XlnetTask:
    return XlnetTask(new_xlnet(pieces, _SHAPE), SentencePieces(pieces), data, orders, batch_pieces=256)


def test_what_each_order_predicts(data: PieceData, pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    predict = Predictor(new_xlnet(pieces, _SHAPE), splitter)
    sentences = [data.train.sentence(0), data.train.sentence(1)]
    one, two = (sentence.tolist() for sentence in sentences)
    _, forward = predict(sentences, ReadingOrder.FORWARD)
    assert forward.tolist() == [*one, splitter.end, *two, splitter.end]
    _, backward = predict(sentences, ReadingOrder.BACKWARD)
    assert backward.tolist() == [*one[::-1], splitter.begin, *two[::-1], splitter.begin]
    hidden, asked = predict(sentences, ReadingOrder.MASKED, [np.array([1, 3]), np.array([0])])
    assert asked.tolist() == [one[1], one[3], two[0]]
    assert hidden.shape == (3, 32)


def test_padding_and_neighbours_change_no_prediction(data: PieceData, pieces: Path) -> None:
    predict = Predictor(new_xlnet(pieces, _SHAPE).eval(), SentencePieces(pieces))
    sentences = [data.train.sentence(i)[: 4 + 2 * i] for i in range(3)]
    places = [np.array([i]) for i in range(3)]
    with torch.inference_mode():
        for order in ReadingOrder:
            together, _ = predict(sentences, order, places)
            alone = [predict([s], order, [p])[0] for s, p in zip(sentences, places, strict=True)]
            torch.testing.assert_close(together, torch.cat(alone), rtol=1e-4, atol=1e-5)


def test_places_to_ask_for() -> None:
    found = draw_masked([1, 5, 20], 0.2, np.random.default_rng(0))
    assert [len(places) for places in found] == [1, 1, 4]
    assert all(len(set(places.tolist())) == len(places) for places in found)


@pytest.mark.parametrize("order", ReadingOrder)
def test_a_network_overfits_a_batch(data: PieceData, pieces: Path, order: ReadingOrder) -> None:
    few = replace(data, held_out=data.train, held_out_words=data.train.lengths)
    task = XlnetTask(new_xlnet(pieces, _SHAPE), SentencePieces(pieces), few, [order], batch_pieces=100)
    rows = task._batches.rows(0)
    untrained = task.scores(rows)[order.value]
    for step in range(80):
        loss, num = task.loss(0)
        (loss / num).backward()
        for optimizer in task.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = 3e-2 * min(1, (step + 1) / 10) * (1 - step / 81)
            optimizer.step()
            optimizer.zero_grad()
    assert untrained > 4
    if order is ReadingOrder.MASKED:  # what it is asked for in training and in scoring are not the same pieces
        assert loss.item() / num < 0.5
    else:
        assert task.scores(rows)[order.value] < 0.4


@pytest.mark.parametrize("order", [ReadingOrder.FORWARD, ReadingOrder.BACKWARD])
def test_pieces_one_by_one(data: PieceData, pieces: Path, order: ReadingOrder) -> None:
    """In text order, whichever way they were read; together what all sentences cost."""
    network, splitter = make_network(pieces), SentencePieces(pieces)
    found = piece_nll(network, splitter, data.held_out, order)
    with torch.inference_mode():
        for row in (0, 1):
            nll, sentence = found[row], data.held_out.sentence(row)
            for at in range(len(sentence)):
                seen = sentence[:at] if order is ReadingOrder.FORWARD else sentence[at + 1 :]
                hidden, _ = Predictor(network, splitter)([seen], order)
                wanted = torch.tensor([int(sentence[at])])
                assert nll[at] == pytest.approx(-network.log_prob_of(hidden[-1:], wanted).item(), rel=1e-4)
    whole = nll_by_order(network, splitter, data.held_out, data.held_out_words, [order])[order.value]
    num = data.held_out_words.sum() + len(data.held_out)
    assert sum(nll.sum() for nll in found) / num == pytest.approx(whole, rel=1e-3)


def test_words_are_summed_over_their_pieces_and_known_ones_kept(pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    words = ["The", "fine-tuning", "dog", "tuns", "."]
    lengths = [len(splitter.split(word)) for word in words]
    assert lengths[1] > 1
    by_piece = np.arange(1.0, sum(lengths) + 2)
    (by_word,) = sum_by_words(splitter, [words], [by_piece])
    firsts = np.cumsum([0, *lengths])
    expected = [sum(by_piece[a:b]) for a, b in itertools.pairwise(firsts)]
    assert by_word.tolist() == [*expected, by_piece[-1]]
    (known,) = known_words(Vocabulary([*SPECIALS, "The", "dog", "."]), [words])
    assert known.tolist() == [True, False, True, False, True, True]
    kept = [expected[0], expected[2], expected[4], by_piece[-1]]
    assert mean_over([by_word], [known]) == pytest.approx(np.mean(kept))


def test_bfloat16_takes_nearly_the_same_step(data: PieceData, pieces: Path) -> None:
    found = []
    for precision in (torch.float32, torch.bfloat16):
        network = new_xlnet(pieces, _SHAPE)
        task = XlnetTask(network, SentencePieces(pieces), data, _ALL, batch_pieces=500, precision=precision)
        loss, num = task.loss(0)
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
        before = torch.cat([p.detach().flatten() for p in network.parameters()])
        for optimizer in task.optimizers:
            optimizer.step()
        moved = torch.cat([p.detach().flatten() for p in network.parameters()]) - before
        assert gradient.dtype == moved.dtype == torch.float32
        found.append((loss.item() / num, gradient, moved))
    (loss, gradient, moved), (low_loss, low_gradient, low_moved) = found
    assert low_loss == pytest.approx(loss, rel=1e-2)
    assert torch.cosine_similarity(gradient, low_gradient, dim=0) > 0.99
    assert torch.cosine_similarity(moved, low_moved, dim=0) > 0.9
    assert not torch.equal(gradient, low_gradient)  # it does compute in the other precision


def test_a_run_that_was_cut_off_ends_with_the_same_weights(
    data: PieceData, pieces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Schedule(3000, learning_rate=1e-2, validate_every=1500)
    whole = train(_task(data, pieces), plan, tmp_path / "whole", quiet=True)
    task = _task(data, pieces)
    plain = task.loss

    def cut(step: int, share: Share):  # type: ignore[no-untyped-def]
        if step == 9:
            raise KeyboardInterrupt
        return plain(step, share)

    monkeypatch.setattr(task, "loss", cut)
    with pytest.raises(KeyboardInterrupt):
        train(task, plan, tmp_path / "cut", quiet=True)
    assert train(_task(data, pieces), plan, tmp_path / "cut", quiet=True) == whole
    a, b = (load_file(tmp_path / name / BEST) for name in ("whole", "cut"))
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_training_leaves_a_model_with_a_card(trained: Path) -> None:
    card = json.loads((trained / "card.json").read_text())
    assert set(card["nll"]) == {"forward", "backward", "masked"}
    assert card["nll"]["forward"] < 2.2
    curve = [_by_order(row) for row in csv.DictReader((trained / LOG).read_text().splitlines())]
    assert set(curve[0]) == {"forward", "backward", "masked"}
    assert curve[-1]["forward"] < curve[0]["forward"] - 1
    forward, *_ = readers("trained", *load_xlnet(trained)[:2])
    good, bad = (tuple(s.split()) for s in ("the old man sees a red house .", "house the a sees man red old ."))
    scores = [forward.log_prob(reading) for reading in forward.read([good, bad], [None, None])]
    assert scores[0] > scores[1] + 5


def _by_order(row: dict[str, str]) -> dict[str, float]:
    pairs = (part.split("=") for part in row["valid_parts"].split())
    return {name: float(value) for name, value in pairs}


def test_every_order_has_its_turn_in_small_batches(data: PieceData, pieces: Path) -> None:
    task = XlnetTask(new_xlnet(pieces, _SHAPE), SentencePieces(pieces), data, _ALL, batch_pieces=8)
    seen: set[ReadingOrder] = set()
    predict = task._predict

    def watched(sentences, order, asked):  # type: ignore[no-untyped-def]
        seen.add(order)
        return predict(sentences, order, asked)

    task._predict = watched  # type: ignore[assignment]
    for step in range(6):
        assert len(task._batches.rows(step)) < 3
        task.loss(step)
    assert seen == set(ReadingOrder)


def test_a_classifier_starts_from_its_weights(trained: Path) -> None:
    network, splitter = classifier_from(trained)
    kept, given = network.state_dict(), load_xlnet(trained)[0].state_dict()
    assert splitter.size == len(given["lm_loss.bias"])
    assert all(torch.equal(kept[name], given[name]) for name in given if name.startswith("transformer."))


def test_training_goes_on_from_another_model(made_corpus: Path, trained: Path, tmp_path: Path) -> None:
    options = ["--orders", "forward", "--corpus", str(made_corpus), "--out", str(tmp_path), "--batch", "512"]
    result = CliRunner().invoke(xlnet_lm, [*options, "--init", str(trained), "--tokens", "2000"])
    assert result.exit_code == 0, result.output
    assert "forward:" in result.output
    assert "masked" not in result.output
    before = json.loads((trained / "card.json").read_text())["nll"]["forward"]
    assert json.loads((tmp_path / "card.json").read_text())["nll"]["forward"] < before + 0.1
    assert (tmp_path / PIECES).read_bytes() == (trained / PIECES).read_bytes()


@pytest.mark.parametrize(("streams", "expected"), [([], 1), (["--streams", "2"], 2)])
def test_the_number_of_streams_stays_unless_another_is_wanted(
    made_corpus: Path, trained: Path, tmp_path: Path, streams: list[str], expected: int
) -> None:
    options = ["--corpus", str(made_corpus), "--out", str(tmp_path), "--init", str(trained), "--batch", "512"]
    result = CliRunner().invoke(xlnet_lm, [*options, *streams, "--tokens", "1000"])
    assert result.exit_code == 0, result.output
    assert load_xlnet(tmp_path)[0].config.one_stream is (expected == 1)
    assert json.loads((tmp_path / "card.json").read_text())["training"]["streams"] == expected


def test_what_cannot_be_is_refused(made_corpus: Path, pieces: Path, trained: Path, tmp_path: Path) -> None:
    options = ["--corpus", str(made_corpus), "--out", str(tmp_path)]
    result = CliRunner().invoke(xlnet_lm, [*options, "--orders", "forward,sideways"])
    assert isinstance(result.exception, InputError)
    assert "sideways" in str(result.exception)
    with pytest.raises(InputError, match="has its own pieces"):
        train_xlnet(XlnetTraining(made_corpus, _ALL, 10, init=str(trained), pieces=pieces), tmp_path)
    with pytest.raises(InputError, match="at least one order"):
        train_xlnet(XlnetTraining(made_corpus, (), 10, pieces=pieces), tmp_path)
    bare = tmp_path / "bare.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog sees the sea"] * 50), model_prefix=str(bare.with_suffix("")), vocab_size=15
    )
    with pytest.raises(PackError, match=r"bare\.model lacks <s>, </s> or <pad>"):
        train_xlnet(XlnetTraining(made_corpus, _ALL, 10, pieces=bare), tmp_path / "out")
    with pytest.raises(PackError, match="holds no model"):
        train_xlnet(XlnetTraining(made_corpus, _ALL, 10, init=str(made_corpus)), tmp_path)


def test_prepared_data_is_kept(
    made_corpus: Path, pieces: Path, data: PieceData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare_pieces(made_corpus, pieces, tmp_path / "pieces.npz")
    monkeypatch.setattr(piece_data, "encode_pieces", None)  # what is kept is not split again
    again = prepare_pieces(made_corpus, pieces, tmp_path / "pieces.npz")
    for kept in (first, again):
        assert np.array_equal(kept.train.ids, data.train.ids)
        assert np.array_equal(kept.held_out_words, data.held_out_words)


def test_orthogonal_matrices_have_singular_values_near_one() -> None:
    matrices = torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(0))
    for given in (matrices, matrices.transpose(1, 2)):
        values = torch.linalg.svdvals(orthogonal(given))
        assert values.min() > 0.5
        assert values.max() < 1.4
