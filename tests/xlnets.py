"""Pieces and XLNets that are small enough to make in a test."""

from pathlib import Path

import torch
from hypothesis import strategies as st

from redraft.models.pieces import SentencePieces
from redraft.models.xlnet.network import ReadingOrder, XlnetConfig, XlnetLM
from redraft.models.xlnet.pack import make_reader
from redraft.models.xlnet.words import PieceWords
from redraft.training.pieces import train_pieces

WORDS = ["the", "dog", "sees", "a", "fine-tuning", "doctor", "house", ",", ".", "grained", "thing", "not", "man"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=0, max_size=7).map(tuple)
TINY = {"d_model": 16, "n_layer": 3, "n_head": 2, "d_inner": 24}


def make_pieces(corpus: Path, folder: Path) -> Path:
    """A SentencePiece model of the made corpus, to which words of several pieces are added."""
    made = "".join(path.read_text() for path in sorted(corpus.iterdir()))
    (folder / "text.txt").write_text(made + "The fine tuning of a fine-grained thing, tun by tun.\n" * 40)
    train_pieces(folder, folder / "spiece.model", num_pieces=140)
    (folder / "text.txt").unlink()
    return folder / "spiece.model"


def make_network(pieces: Path, seed: int = 0) -> XlnetLM:
    """An untrained network with large random weights, so that no mistake hides behind a zero."""
    network = XlnetLM(XlnetConfig(SentencePieces(pieces).size, **TINY)).eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    return network


def readers(name: str, network: XlnetLM, splitter: SentencePieces) -> list:  # type: ignore[type-arg]
    """One network as forward, backward and masked reader; their words are the same."""
    words = PieceWords(splitter)
    return [make_reader(name, network, words, order) for order in ReadingOrder]
