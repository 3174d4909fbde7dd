"""Sub-tokens and a classifier that are small enough to make in a test."""

from pathlib import Path

import pytest
import torch

from redraft.predict.classifier import LABELS, Classifier
from redraft.predict.pieces import SentencePieces
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier
from redraft.synthesis.dataset import SynthesisConfig, synthesise
from redraft.synthesis.words import Method
from redraft.training.pieces import train_pieces

TINY = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}


@pytest.fixture(scope="session")
def pieces(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model of the made corpus, to which some words are added."""
    folder = tmp_path_factory.mktemp("pieces")
    made = "".join(path.read_text() for path in sorted(made_corpus.iterdir()))
    (folder / "text.txt").write_text(made + "The fine tuning of a fine-grained thing, tun by tun.\n" * 40)
    train_pieces(folder, folder / "spiece.model", num_pieces=140)
    return folder / "spiece.model"


@pytest.fixture(scope="session")
def data(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic data of the made corpus."""
    folder = tmp_path_factory.mktemp("data")
    settings = SynthesisConfig(made_corpus, 1, 600, 120, (Method.RANDOM,), sources_per_shard=64)
    synthesise(settings, folder)
    return folder


@pytest.fixture
def network(pieces: Path) -> XlnetTokenClassifier:
    torch.manual_seed(0)
    return XlnetTokenClassifier(XlnetConfig(SentencePieces(pieces).size, **TINY), len(LABELS))


@pytest.fixture
def classifier(network: XlnetTokenClassifier, pieces: Path) -> Classifier:
    return Classifier(network, SentencePieces(pieces))
