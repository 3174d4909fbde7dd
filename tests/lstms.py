"""Small LSTMs with random weights, over words of the test's own."""

import torch
from torch import Tensor

from redraft.models.lstm.half_reader import HalfReader
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.models.lstm.reader import LstmReader
from redraft.models.lstm.start_states import ordinary_start
from redraft.models.vocabulary import END, SPECIALS, START, Vocabulary


def vocabulary_of(words: str) -> Vocabulary:
    return Vocabulary([*SPECIALS, *words.split()])


def make_lstm(size: int, seed: int) -> LstmLM:
    """Weights large enough for steep distributions, as those of a trained model are."""
    torch.manual_seed(seed)
    network = LstmLM(LstmConfig(size, size=8, num_layers=2, dropout=0.0, cutoffs=(size // 2,), tail_sizes=(4,)))
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn_like(weight))
    return network.eval()


def half_reader(network: LstmLM, vocabulary: Vocabulary, *, backward: bool) -> HalfReader:
    return HalfReader(network, vocabulary, ordinary_start(network), backward=backward)


def reader(network: LstmLM, vocabulary: Vocabulary, *, backward: bool = False) -> LstmReader:
    return LstmReader("toy", network, vocabulary, backward=backward)


@torch.no_grad()
def log_prob_of_ids(network: LstmLM, ids: list[int]) -> float:
    """Word by word, with nothing cached."""
    hidden, _ = network(torch.tensor([START, *ids])[:, None])
    dists: Tensor = network.softmax.log_prob(hidden[:, 0])
    return float(dists[torch.arange(len(ids) + 1), torch.tensor([*ids, END])].double().sum())
