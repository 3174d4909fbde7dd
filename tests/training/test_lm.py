"""Scores of single sentences are those of all sentences together."""

import pytest
import torch

from redraft.models.lstm import LstmConfig, LstmLM
from redraft.models.vocabulary import SPECIALS, Vocabulary
from redraft.training.lm import DIRECTIONS, Direction, encode, nll_per_word, sentence_nll

_LINES = ["A dog sees the sea .", "The dog .", "Sea ?", "the dog sees a dog , but not the sea ."]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sentences_one_by_one(direction: Direction) -> None:
    words = sorted({word for line in _LINES for word in line.split()})
    vocabulary = Vocabulary([*SPECIALS, *words])
    torch.manual_seed(0)
    network = LstmLM(LstmConfig.small(len(vocabulary))).eval()
    data = encode(vocabulary, _LINES)
    found = sentence_nll(network, data, direction, batch=3)
    alone = [sentence_nll(network, encode(vocabulary, [line]), direction)[0] for line in _LINES]
    assert found == pytest.approx(alone, rel=1e-5)
    with torch.inference_mode():
        mean = nll_per_word(network, data, direction)
    assert found.sum() / (data.lengths + 1).sum() == pytest.approx(mean, rel=1e-5)
