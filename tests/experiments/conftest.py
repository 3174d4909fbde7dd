"""A folder of made test sentences, a pack with a classifier, and reruns over them, made once."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from redraft.experiments.config import ReproduceConfig
from redraft.experiments.reproduce import Reproduction, reproduce
from redraft.models.pack import Pack, write_manifest
from redraft.predict.classifier import LABELS
from redraft.predict.pieces import SentencePieces
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier
from redraft.training.classifier_files import save_classifier
from tests.conftest import made_sentence
from tests.evaluation.making import make_judge
from tests.xlnets import make_pieces


class Quiet:
    """Follows a rerun: counts what it is told, and stops it when there were so many units of work."""

    def __init__(self, stop_after: float = float("inf")):
        self.stop_after, self.total, self.units = stop_after, 0, 0
        self.said: list[str] = []

    def begin(self, units: int) -> None:
        self.total = units

    def say(self, what: str) -> None:
        self.said.append(what)

    def advance(self, units: int) -> None:
        self.units += units

    def stopped(self) -> bool:
        return self.units >= self.stop_after


def texts_of(folder: Path) -> dict[str, list[tuple[Any, str]]]:
    found = {}
    for path in sorted(folder.glob("outputs/*/*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[str(path.relative_to(folder))] = [(line["id"], line["text"]) for line in lines]
    return found


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "one-billion-word").mkdir()
    for seed, name in enumerate(("test.txt", "dev.txt"), 7):
        rng = np.random.default_rng(seed)
        (folder / "one-billion-word" / name).write_text("".join(made_sentence(rng) + "\n" for _ in range(60)))
    return folder


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judge(tmp_path_factory.mktemp("judges") / "tiny-judge", "gpt2")


@pytest.fixture(scope="session")
def guided_pack(tiny_pack: Pack, made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """The tiny pack with a classifier of random weights, and with scores in its card."""
    folder = tmp_path_factory.mktemp("packs") / "guided"
    shutil.copytree(tiny_pack.folder, folder)
    pieces = make_pieces(made_corpus, tmp_path_factory.mktemp("pieces"))
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
    save_classifier(
        XlnetTokenClassifier(XlnetConfig(SentencePieces(pieces).size, **sizes), len(LABELS)), folder, pieces
    )
    rows = {name: {"precision": 0.5, "recall": 0.25, "f1": 0.75} for name in [*LABELS, "macro-average"]}
    card = {**tiny_pack.card, "classifier": {"scores": {"masked-lm": rows, "whole": rows}}}
    return write_manifest(folder, "guided", {**tiny_pack.parts, "classifier": {"kind": "xlnet"}}, card)


@pytest.fixture(scope="session")
def finished(
    data: Path, guided_pack: Pack, judge: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ReproduceConfig, Reproduction]:
    """All tables and figures, with a judge and a classifier."""
    out = tmp_path_factory.mktemp("results") / "all"
    run = ReproduceConfig(data, out, num=3, steps=4, judge=str(judge), pack=str(guided_pack.folder))
    done = reproduce(run, ["all"], Quiet())
    assert done is not None
    return run, done


@pytest.fixture
def run(data: Path, tiny_pack: Pack, tmp_path: Path) -> ReproduceConfig:
    return ReproduceConfig(data, tmp_path / "out", num=2, steps=3, pack=str(tiny_pack.folder), systems=("l-mcmc",))
