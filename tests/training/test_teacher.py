"""What an LSTM teaches an XLNet: right places, right distributions, and a loss that mixes both."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from redraft.app.train_xlnet import xlnet_lm
from redraft.evaluation.xlnet_nll import Predictor
from redraft.models import output_layer
from redraft.models.lstm.files import load_network
from redraft.models.output_layer import Columns, sample_columns
from redraft.models.pack import Pack
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import END, START
from redraft.models.xlnet.network import ReadingOrder
from redraft.training.piece_data import PieceData
from redraft.training.teacher import SHARE, Teacher, TeacherBatch
from redraft.training.xlnet import new_xlnet
from redraft.training.xlnet_task import XlnetTask
from tests.xlnets import make_network

_SHAPE = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}
_READ = [ReadingOrder.FORWARD, ReadingOrder.BACKWARD]


@pytest.fixture
def teacher(tiny_pack: Pack, pieces: Path) -> Teacher:
    return Teacher(tiny_pack, SentencePieces(pieces))


def _all_columns(size: int) -> Columns:
    return Columns(torch.arange(size), torch.zeros(size))


def _told(teacher: Teacher, sentences: list[np.ndarray], order: ReadingOrder, columns: Columns) -> torch.Tensor:  # type: ignore[type-arg]
    return teacher.soft_targets([TeacherBatch(order, sentences, sum(len(one) + 1 for one in sentences))], columns)(
        slice(None)
    )


def _spoken(soft: torch.Tensor) -> list[int]:
    rows: list[int] = soft.sum(1).nonzero().squeeze(1).tolist()
    return rows


@pytest.mark.parametrize("order", _READ)
def test_it_speaks_where_a_word_begins_and_says_what_the_lstm_says(
    tiny_pack: Pack, teacher: Teacher, pieces: Path, order: ReadingOrder
) -> None:
    splitter = SentencePieces(pieces)
    network, vocabulary = load_network(tiny_pack, order.value)
    words = ["The", "old", "man", "sees", "a", "red", "house", "."]
    own = [splitter.split(word) for word in words]
    sentence = np.array([i for ids in own for i in ids], dtype=np.uint16)
    soft = _told(teacher, [sentence, sentence], order, _all_columns(splitter.size))
    heard = vocabulary.ids(words if order is ReadingOrder.FORWARD else words[::-1])
    hidden, _ = network(torch.tensor([START, *heard])[:, None])
    probabilities = network.softmax.log_prob(hidden[:, 0]).exp()
    lengths = [len(ids) for ids in (own if order is ReadingOrder.FORWARD else own[::-1])]
    starts = [sum(lengths[:at]) for at in range(len(words) + 1)]
    assert _spoken(soft) == [*starts, *(start + len(sentence) + 1 for start in starts)]
    first, end = (0, splitter.end) if order is ReadingOrder.FORWARD else (-1, splitter.begin)
    for row in _spoken(soft):
        expected = torch.zeros(splitter.size)
        by_word = probabilities[starts.index(row % (len(sentence) + 1))]
        for i, word in enumerate(vocabulary.words):
            if i > START or i == END:
                expected[end if i == END else splitter.split(word)[first]] += by_word[i]
        torch.testing.assert_close(soft[row], SHARE * expected / expected.sum(), rtol=1e-4, atol=1e-6)


def test_what_it_says_is_spread_over_the_columns(teacher: Teacher, data: PieceData, pieces: Path) -> None:
    size = SentencePieces(pieces).size
    sentences = [data.train.sentence(row) for row in range(4)]
    whole = _told(teacher, sentences, ReadingOrder.FORWARD, _all_columns(size))
    every = torch.arange(size)
    many = [sample_columns(every[:1], size, 30, 60, torch.Generator().manual_seed(seed)) for seed in range(400)]
    mean = torch.zeros_like(whole)
    for columns in many:
        soft = _told(teacher, sentences, ReadingOrder.FORWARD, columns)
        assert _spoken(soft) == _spoken(whole)
        torch.testing.assert_close(soft.sum(1), whole.sum(1))
        mean[:, columns.ids] += soft / len(many)
    assert (mean - whole).abs().max() < 0.05 * SHARE


def test_odd_sentences_and_unknown_words_are_passed_over(teacher: Teacher, pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    man, unknown = splitter.split("man"), splitter.split("tuning")
    odd = np.array([*man, splitter.end, *man], dtype=np.uint16)  # no text has an end in its middle
    plain = np.array([*unknown, *man], dtype=np.uint16)
    columns = _all_columns(splitter.size)
    assert _spoken(_told(teacher, [odd], ReadingOrder.FORWARD, columns)) == []
    first = len(odd) + 1
    man_and_end = [first + len(unknown), first + len(plain)]
    assert _spoken(_told(teacher, [odd, plain], ReadingOrder.FORWARD, columns)) == man_and_end


def test_the_loss_is_a_mixture_and_its_gradient_is_right(pieces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = make_network(pieces)
    size = SentencePieces(pieces).size
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(5, 16, generator=generator, requires_grad=True)
    target = torch.tensor([3, 1, 4, 1, 5])
    columns = sample_columns(target, size, 10, 20, generator)
    told = torch.rand(2, len(columns.ids), generator=generator).softmax(1)
    soft = torch.zeros(5, len(columns.ids))
    soft[[3, 0]] = 0.3 * told
    monkeypatch.setattr(output_layer, "_TRAINED_ROWS", 2)  # of five
    loss = network.loss(hidden, target, columns, soft.__getitem__)
    loss.backward()
    weight, bias = network.transformer.word_embedding.weight.detach(), network.lm_loss.bias.detach()
    again = hidden.detach().clone().requires_grad_()
    logits = torch.log_softmax(again @ weight[columns.ids].T + bias[columns.ids] + columns.log_weights, 1)
    wanted = torch.nn.functional.one_hot(torch.searchsorted(columns.ids, target), len(columns.ids)).float()
    wanted[[3, 0]] = 0.7 * wanted[[3, 0]] + 0.3 * told
    plain = -(wanted * logits).sum()
    plain.backward()
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(hidden.grad, again.grad, rtol=1e-4, atol=1e-5)


def test_words_begin_with_the_embeddings_of_the_lstm(tiny_pack: Pack, teacher: Teacher, pieces: Path) -> None:
    student, (network, vocabulary) = new_xlnet(pieces, _SHAPE), load_network(tiny_pack, "forward")
    teacher.initialise(student)
    (piece,) = SentencePieces(pieces).split("house")
    own = student.transformer.word_embedding.weight[piece, :16].detach()
    given = network.embedding.weight[vocabulary.id("house")].detach()
    assert torch.cosine_similarity(own, given, dim=0) == pytest.approx(1, abs=1e-5)


def test_a_task_mixes_in_what_its_teacher_says(teacher: Teacher, data: PieceData, pieces: Path) -> None:
    """Each order of a batch at its own place: told apart from what the task computes by the plain parts of it."""
    splitter = SentencePieces(pieces)
    network = make_network(pieces)
    orders = [ReadingOrder.FORWARD, ReadingOrder.MASKED, ReadingOrder.BACKWARD]
    task = XlnetTask(network, splitter, data, orders, batch_pieces=200, teacher=teacher)
    step = 1  # another order begins
    with torch.no_grad():
        loss, num = task.loss(step)
        plain, _ = XlnetTask(network, splitter, data, orders, batch_pieces=200).loss(step)
        rows, predict = task._batches.rows(step), Predictor(network, splitter)
        rng = np.random.default_rng((0, step))
        parts = [task._part(rows[(at + step) % 3 :: 3], order, rng) for at, order in enumerate(orders)]
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        in_batch = torch.from_numpy(np.concatenate([part.targets(splitter) for part in parts]))
        columns = sample_columns(in_batch, splitter.size, 2000, 1500, generator)
        expected = 0.0
        for part in parts:
            hidden, target = predict(part.sentences, part.order, part.masked)
            soft = None if part.order is ReadingOrder.MASKED else _told(teacher, part.sentences, part.order, columns)
            expected += float(network.loss(hidden, target, columns, None if soft is None else soft.__getitem__))
            num -= len(target)
    assert num == 0
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert float(loss) != pytest.approx(float(plain), rel=1e-3)


def test_a_model_is_trained_with_a_teacher_in_bfloat16_and_says_so(
    tiny_pack: Pack, made_corpus: Path, pieces: Path, tmp_path: Path
) -> None:
    options = ["--corpus", str(made_corpus), "--out", str(tmp_path), "--pieces", str(pieces), "--batch", "512"]
    shape = ["--layers", "1", "--inner", "32", "--tokens", "2000"]
    taught = ["--teacher", str(tiny_pack.folder), "--precision", "bfloat16"]
    result = CliRunner().invoke(xlnet_lm, [*options, *shape, *taught])
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "card.json").read_text())["training"]
    assert told["teacher"]
    assert told["precision"] == "bfloat16"
    again = CliRunner().invoke(xlnet_lm, [*options, *shape])
    assert "other settings (precision, teacher)" in str(again.exception)
