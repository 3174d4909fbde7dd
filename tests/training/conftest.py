"""Pieces of the made corpus, and the corpus in pieces."""

from pathlib import Path

import pytest

from redraft.training.piece_data import PieceData, prepare_pieces
from tests.xlnets import make_pieces


@pytest.fixture(scope="package")
def pieces(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pieces(made_corpus, tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="package")
def data(made_corpus: Path, pieces: Path) -> PieceData:
    return prepare_pieces(made_corpus, pieces)
