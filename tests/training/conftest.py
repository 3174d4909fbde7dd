"""Pieces of the made corpus, the corpus in pieces, and untrained models over them."""

import json
from pathlib import Path

import pytest
import torch

from redraft.models.pieces import SentencePieces
from redraft.models.xlnet.files import save_xlnet
from redraft.predict.classifier import LABELS
from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier
from redraft.training.classifier_files import save_classifier
from redraft.training.piece_data import PieceData, prepare_pieces
from tests.xlnets import TINY, make_network, make_pieces


@pytest.fixture(scope="package")
def pieces(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pieces(made_corpus, tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="package")
def data(made_corpus: Path, pieces: Path) -> PieceData:
    return prepare_pieces(made_corpus, pieces)


@pytest.fixture(scope="package")
def xlnet(pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("xlnet")
    save_xlnet(folder, make_network(pieces), pieces)
    (folder / "card.json").write_text(json.dumps({"training": {"orders": ["forward", "backward", "masked"]}}))
    return folder


@pytest.fixture(scope="package")
def classifier(pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    torch.manual_seed(3)
    network = XlnetTokenClassifier(XlnetConfig(SentencePieces(pieces).size, **TINY), len(LABELS))
    save_classifier(network, folder, pieces)
    (folder / "card.json").write_text(json.dumps({"scores": {"whole": 0.5}}))
    return folder
