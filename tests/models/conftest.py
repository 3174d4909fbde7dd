"""Tiny models with random weights, and readers of them."""

import copy
import shutil
from pathlib import Path

import pytest
import torch
from tests.models.making import make_model, make_tokenizer
from tests.xlnets import TINY, make_network, make_pieces, readers

from redraft.models.causal.network import TransformersNetwork
from redraft.models.pieces import SentencePieces
from redraft.models.xlnet.files import PIECES
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import XlnetLM
from redraft.models.xlnet.reader import XlnetReader

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def pieces(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pieces(made_corpus, tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="session")
def hub_folder(pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint as transformers saves it, in the layout of xlnet-base-cased."""
    folder = tmp_path_factory.mktemp("hub")
    torch.manual_seed(1)
    config = transformers.XLNetConfig(vocab_size=SentencePieces(pieces).size, **TINY)
    model = transformers.XLNetLMHeadModel(config)
    for parameter in model.parameters():  # transformers starts many of them at zero, which would hide mistakes
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    shutil.copyfile(pieces, folder / PIECES)
    return folder


@pytest.fixture(scope="session", params=[1, 2], ids=["one stream", "two streams"])
def network(pieces: Path, request: pytest.FixtureRequest) -> XlnetLM:
    return make_network(pieces).with_streams(request.param).eval()


@pytest.fixture(scope="session")
def three(network: XlnetLM, pieces: Path) -> tuple[XlnetReader, XlnetReader, XlnetMaskedReader]:
    return readers("tiny", network, SentencePieces(pieces))


@pytest.fixture(scope="session")
def forward(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetReader:
    return three[0]


@pytest.fixture(scope="session")
def backward(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetReader:
    return three[1]


@pytest.fixture(scope="session")
def masked(three: tuple[XlnetReader, XlnetReader, XlnetMaskedReader]) -> XlnetMaskedReader:
    return three[2]


@pytest.fixture(scope="session")
def rounded(network: XlnetLM, pieces: Path) -> list[XlnetReader | XlnetMaskedReader]:
    """The three readers with the same weights in bfloat16."""
    return readers("rounded", copy.deepcopy(network).bfloat16(), SentencePieces(pieces))


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="module")
def llama(tokenizer):
    return TransformersNetwork(make_model("llama", len(tokenizer)))
