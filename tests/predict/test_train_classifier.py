import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from redraft.app.train_classifier import train_classifier as command
from redraft.errors import InputError
from redraft.predict.classifier import LABELS, load_classifier
from redraft.predict.pieces import SentencePieces
from redraft.predict.xlnet import XlnetTokenClassifier
from redraft.synthesis.shards import CARD, read_card, read_shard, shard_paths, write_card
from redraft.training.classifier import ClassifierTraining, train_classifier
from redraft.training.classifier_data import IGNORED, LabelledPieces, read_labelled
from redraft.training.classifier_task import ClassifierTask, score_sets
from redraft.training.label_scores import LabelScores, markdown
from tests.predict.conftest import TINY


def test_first_pieces_carry_the_labels(data: Path, pieces: Path) -> None:
    tagged = read_labelled(data, "train", SentencePieces(pieces))
    rows = [row for path in shard_paths(data, "train") for row in read_shard(path)]
    assert len(tagged) == len(rows) == 600
    assert tagged.num_words == sum(len(row.labels) - 1 for row in rows)  # BOS has none
    for at in (0, 7, 599):
        labels = tagged.labels[tagged.pieces.starts[at] : tagged.pieces.starts[at + 1]]
        assert [label for label in labels if label != IGNORED] == rows[at].labels[1:]


def test_a_tiny_classifier_overfits_a_batch(data: Path, pieces: Path, network: XlnetTokenClassifier) -> None:
    splitter = SentencePieces(pieces)
    tagged = read_labelled(data, "train", splitter)
    task = ClassifierTask(network, splitter, tagged, tagged, batch_pieces=256)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(150):
        loss, num = task.loss(0)
        optimizer.zero_grad()
        (loss / num).backward()
        optimizer.step()
    assert float(loss.detach()) / num < 0.02
    rows = task._batches.rows(0)
    ids, real, labels = tagged.batch(rows, splitter.padding)
    known = labels != IGNORED
    assert (network(ids, real).argmax(-1)[known] == labels[known]).float().mean() > 0.99


def test_training_leaves_a_classifier_with_a_card(data: Path, pieces: Path, tmp_path: Path) -> None:
    scores = train_classifier(
        ClassifierTraining(data, pieces=pieces, shape=TINY, epochs=0.5, batch_pieces=512), tmp_path, quiet=True
    )
    assert set(scores) == {"random", "whole"}
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["scores"]["whole"]["macro-average"]["f1"] == pytest.approx(scores["whole"].macro_f1, abs=1e-4)
    assert card["data"]["methods"] == ["random"]
    assert load_classifier(tmp_path).log_probs([("the", "dog")])[0].shape == (3, len(LABELS))


def test_another_network_does_not_resume(data: Path, pieces: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"pieces": pieces, "epochs": 0.1, "batch_pieces": 512}
    train_classifier(ClassifierTraining(data, shape=TINY, **options), tmp_path, quiet=True)
    with pytest.raises(InputError, match=r"holds a run with other settings \(network\)"):
        train_classifier(ClassifierTraining(data, shape={**TINY, "n_layer": 3}, **options), tmp_path, quiet=True)


def test_the_command_prints_the_papers_table(data: Path, pieces: Path, tmp_path: Path) -> None:
    first = ["--data", str(data), "--out", str(tmp_path / "a"), "--pieces", str(pieces), "--epochs", "0.1"]
    result = CliRunner().invoke(command, first)
    assert result.exit_code == 0, result.output
    assert "| Macro-average |" in result.output
    again = ["--data", str(data), "--out", str(tmp_path / "b"), "--init", str(tmp_path / "a"), "--epochs", "0.1"]
    result = CliRunner().invoke(command, again)
    assert result.exit_code == 0, result.output
    assert load_classifier(tmp_path / "b").log_probs([("the", "dog")])[0].shape == (3, len(LABELS))


def test_bad_data_is_refused(data: Path, pieces: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"no readable {CARD}"):
        train_classifier(ClassifierTraining(tmp_path, pieces=pieces), tmp_path / "out")
    with pytest.raises(InputError, match="name one of them"):
        train_classifier(ClassifierTraining(data), tmp_path / "out")
    with pytest.raises(InputError, match="name one of them"):
        train_classifier(ClassifierTraining(data, pieces=pieces, init=tmp_path), tmp_path / "out")
    copy = shutil.copytree(data, tmp_path / "copy")
    first, *_ = sorted(copy.glob("train-*.parquet"))
    first.rename(tmp_path / "lost")
    with pytest.raises(InputError, match=rf"has lost {first.name}; run redraft synthesize again"):
        train_classifier(ClassifierTraining(copy, pieces=pieces), tmp_path / "out")
    shutil.copyfile(next(copy.glob("valid-*.parquet")), first)
    with pytest.raises(InputError, match=rf"{first.name} is not the shard of the {CARD}"):
        train_classifier(ClassifierTraining(copy, pieces=pieces), tmp_path / "out")
    with pytest.raises(InputError, match="multiple of its 4 heads, not 10"):
        train_classifier(ClassifierTraining(data, pieces=pieces, shape={"d_model": 10, "n_head": 4}), tmp_path / "out")
    for path in shutil.copytree(data, tmp_path / "unvalidated").glob("valid-*"):
        path.unlink()
    known = {name: value for name, value in read_card(data)["shards"].items() if name.startswith("train")}
    write_card(tmp_path / "unvalidated", read_card(data) | {"shards": known})
    with pytest.raises(InputError, match=r"no valid shard.* --num-valid above 0"):
        train_classifier(ClassifierTraining(tmp_path / "unvalidated", pieces=pieces), tmp_path / "out")
    write_card(tmp_path, read_card(data) | {"complete": False})
    with pytest.raises(InputError, match="not complete"):
        train_classifier(ClassifierTraining(tmp_path, pieces=pieces), tmp_path / "out")
    (tmp_path / CARD).write_text("{}")
    with pytest.raises(InputError, match="is not a card"):
        train_classifier(ClassifierTraining(tmp_path, pieces=pieces), tmp_path / "out")


@pytest.mark.parametrize(
    ("option", "value"), [("--epochs", "inf"), ("--epochs", "nan"), ("--learning-rate", "0"), ("--seed", str(1 << 64))]
)
def test_numbers_that_cannot_be_used(data: Path, tmp_path: Path, option: str, value: str) -> None:
    result = CliRunner().invoke(command, ["--data", str(data), "--out", str(tmp_path), option, value])
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


def test_the_shortest_training_is_one_step(data: Path, pieces: Path, tmp_path: Path) -> None:
    train_classifier(
        ClassifierTraining(data, pieces=pieces, shape=TINY, epochs=1e-9, batch_pieces=512), tmp_path, quiet=True
    )
    assert load_classifier(tmp_path).log_probs([("the",)])[0].shape == (2, len(LABELS))


def test_scores_by_hand() -> None:
    counts = np.zeros((4, 4), dtype=np.int64)
    counts[0, 0], counts[0, 1], counts[1, 1], counts[2, 0] = 6, 2, 2, 2
    table = LabelScores(counts).table
    assert table[0] == pytest.approx([6 / 8, 6 / 8, 0.75])
    assert table[1] == pytest.approx([0.5, 1, 2 / 3])
    assert table[2] == pytest.approx([0, 0, 0])
    assert table[4] == pytest.approx(table[:4].mean(0))


def test_the_layout_of_the_table() -> None:
    scores = LabelScores(np.eye(4, dtype=np.int64))
    lines = markdown({"whole": scores, "random": scores, "masked-lm": scores}).split("\n")
    assert lines[0] == "| | Masked LM P | R | F1 | Random P | R | F1 | Whole P | R | F1 |"
    assert lines[3].startswith("| Replacement | 1.000 |")
    assert len({line.count("|") for line in lines}) == 1


def test_sets_add_up(data: Path, pieces: Path, network: XlnetTokenClassifier) -> None:
    splitter = SentencePieces(pieces)
    tagged = read_labelled(data, "valid", splitter)
    half = np.where(np.arange(len(tagged)) % 2, "random", "masked-lm")
    mixed = LabelledPieces(tagged.pieces, tagged.labels, half)
    scores = score_sets(network, mixed, splitter.padding)
    assert scores["whole"].counts.sum() == tagged.num_words
    assert (scores["random"].counts + scores["masked-lm"].counts == scores["whole"].counts).all()
