"""Training start states: from a random word of each sentence to its end, and to its beginning, by frozen LSTMs."""

import copy
import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from redraft import corpus as texts
from redraft.errors import CorpusError
from redraft.evaluation.half_nll import half_loss, half_nll, padded_halves, random_words
from redraft.evaluation.lstm_nll import DIRECTIONS, Direction
from redraft.files import replacing
from redraft.models.lstm.files import load_network, readers_sha256
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.lstm.start_states import WEIGHTS_FILE, ordinary_start, save_start_states
from redraft.models.pack import Pack
from redraft.models.vocabulary import Vocabulary
from redraft.training.batches import Batches
from redraft.training.loop import BEST, Schedule, train
from redraft.training.processes import WHOLE, Share
from redraft.training.progress import counted
from redraft.training.word_data import WordData, encode_words

_ONE_IN = 10  # sentences of the corpus; two thousand numbers need no more
CARD = "card.json"
HalfScores = dict[str, dict[str, float]]  # by direction: held-out NLL before and after


@dataclass(frozen=True)
class StartTraining:
    """How start states are trained. ``num_tokens`` counts the predicted words of each direction."""

    num_tokens: int
    learning_rate: float = 0.02
    batch_tokens: int = 4096
    seed: int = 0


class StartState(nn.Module):
    """The parameters: hidden and cell of every layer. At first they are those of the beginning of a sentence."""

    def __init__(self, network: LstmLM):
        super().__init__()
        hidden, cell = ordinary_start(network)
        self.hidden, self.cell = nn.Parameter(hidden.clone()), nn.Parameter(cell.clone())

    @property
    def state(self) -> LstmState:
        return self.hidden, self.cell


class StartTask:
    """A start state as a task of redraft.training.loop. The LSTM is frozen and reads without dropout."""

    def __init__(self, network: LstmLM, data: WordData, direction: Direction, config: StartTraining):
        self._network = copy.deepcopy(network).eval().requires_grad_(False)  # others share the network that was given
        self._data, self._direction, self._config = data, direction, config
        self.module = StartState(self._network)
        self.optimizers: list[torch.optim.Optimizer] = [torch.optim.Adam(self.module.parameters())]
        self._batches = Batches(data.train, config.batch_tokens, config.seed)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "direction": self._direction,
            "batch_tokens": self._config.batch_tokens,
            "vocabulary": self._data.vocabulary.sha256,
            "sentences": len(self._data.train),
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        rows = self._batches.rows(step)
        rng = np.random.default_rng((self._config.seed, step))
        positions = random_words(self._data.vocabulary, self._data.train, rows, rng)
        mine = share.of(np.arange(len(rows)))
        if not len(mine):
            return torch.zeros(()), 0
        inputs, targets, real = padded_halves(self._data.train, rows[mine], positions[mine], self._direction)
        return half_loss(self._network, self.module.state, inputs, targets, real), int(real.sum())

    def validate(self) -> dict[str, float]:
        found = half_nll(self._network, self.module.state, self._data.vocabulary, self._data.held_out, self._direction)
        return {"nll": found}


def train_start_states(
    pack: Pack, corpus: Path, out: Path, config: StartTraining, *, quiet: bool = False
) -> HalfScores:
    """Train the start states of both LSTMs of a pack, or resume; returns the held-out NLL before and after."""
    networks = {direction: load_network(pack, direction) for direction in DIRECTIONS}
    data = _encoded(corpus, networks["forward"][1], quiet=quiet)
    schedule = Schedule(
        config.num_tokens, config.learning_rate, validate_every=max(1, config.num_tokens // 8), seed=config.seed
    )
    scores: HalfScores = {}
    for direction, (network, vocabulary) in networks.items():
        before = half_nll(network, ordinary_start(network), vocabulary, data.held_out, direction)
        after = train(StartTask(network, data, direction, config), schedule, out / direction, quiet=quiet)
        scores[direction] = {"before": round(before, 4), "after": round(after, 4)}
    best = {direction: load_file(out / direction / BEST) for direction in DIRECTIONS}
    save_start_states(out / WEIGHTS_FILE, {d: (found["hidden"], found["cell"]) for d, found in best.items()})
    card = {
        "lstms_sha256": readers_sha256(pack),
        "trained_on": [path.name for path in texts.text_files(corpus)],
        "training": {**asdict(config), "sentences": len(data.train)},
        "held_out_nll": scores,
    }
    with replacing(out / CARD) as path:
        path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return scores


def _encoded(folder: Path, vocabulary: Vocabulary, *, quiet: bool) -> WordData:
    """One in ten sentences of the corpus to train on, and its held-out sentences, in the words of the pack."""
    lines = counted(texts.sentences(folder), "reading:", quiet=quiet)
    kept = (line for line in itertools.islice(lines, 0, None, _ONE_IN) if not texts.is_held_out(line))
    train_data = encode_words(vocabulary, kept)
    held_out = encode_words(vocabulary, (line for line in texts.sentences(folder) if texts.is_held_out(line)))
    if not len(train_data) or not len(held_out):
        raise CorpusError(f"{folder} is too small: {len(train_data)} training sentences, {len(held_out)} held out")
    return WordData(vocabulary, train_data, held_out)
