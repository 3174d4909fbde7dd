"""Training XLNet as a language model that reads forward, backward and from both sides."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from redraft import corpus
from redraft.errors import InputError
from redraft.files import replacing, sha256
from redraft.models.pack import Pack
from redraft.models.pieces import PIECES, SentencePieces
from redraft.models.precision import compute_dtype
from redraft.models.xlnet.files import load_xlnet, save_xlnet
from redraft.models.xlnet.network import ReadingOrder, XlnetConfig, XlnetLM
from redraft.training.loop import BEST, Schedule, train
from redraft.training.piece_data import prepare_pieces
from redraft.training.pieces import train_pieces
from redraft.training.processes import join
from redraft.training.teacher import Teacher
from redraft.training.xlnet_task import BATCH_PIECES, XlnetTask

LEARNING_RATE = 1.2e-3  # from scratch
FINE_TUNING_RATE = 1e-4
SCRATCH = "scratch"
_SHAPE = {"n_layer": 4, "d_inner": 768, "one_stream": True}  # small: a few hours of training see few tokens


@dataclass(frozen=True)
class XlnetTraining:
    """How an XLNet language model is trained.

    corpus          folder of text files
    orders          orders to read; one that is listed twice gets twice the sentences
    num_tokens      pieces to predict
    init            folder or hub name of the weights to start from, or "scratch"
    pieces          SentencePiece vocabulary for scratch; by default one is trained on the corpus
    shape           fields of the network's configuration, for scratch
    num_streams     2 as in the XLNet paper, where a second stream predicts, or 1, which is faster; None: 1 for
                    scratch, otherwise as in ``init``
    learning_rate   None: LEARNING_RATE from scratch, else FINE_TUNING_RATE
    teacher         pack whose LSTM models give soft targets and initial embeddings
    precision       of matrix products; None: the fastest of the processor
    """

    corpus: Path
    orders: tuple[ReadingOrder, ...]
    num_tokens: int
    init: str = SCRATCH
    pieces: Path | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    num_streams: int | None = None
    learning_rate: float | None = None
    batch_pieces: int = BATCH_PIECES
    validate_every: int = 2_000_000
    seed: int = 0
    teacher: Pack | None = None
    precision: torch.dtype | None = None

    def __post_init__(self) -> None:
        if not self.orders:
            raise InputError("give at least one order: forward, backward or masked")

    @property
    def schedule(self) -> Schedule:
        rate = self.learning_rate or (LEARNING_RATE if self.init == SCRATCH else FINE_TUNING_RATE)
        return Schedule(self.num_tokens, rate, warmup=0.03, validate_every=self.validate_every, seed=self.seed)


def new_xlnet(pieces: Path, shape: Mapping[str, Any] | None = None, seed: int = 0) -> XlnetLM:
    """A compact XLNet with random weights over a SentencePiece vocabulary; ``shape`` sets fields of its config."""
    torch.manual_seed(seed)  # torch's initialisers have no generator of their own
    return XlnetLM(XlnetConfig(SentencePieces(pieces).size, **{**_SHAPE, **(shape or {})}))


def train_xlnet(config: XlnetTraining, out: Path, *, quiet: bool = False) -> dict[str, float]:
    """Train on a corpus, or resume training; returns the NLL of held-out sentences by order.

    The best weights are saved in ``out`` in the format of transformers, with a card that states their scores.
    """
    with join().first_before_others():
        network, spiece = _start(config, out)
        if config.num_streams:
            network = network.with_streams(config.num_streams)
        data = prepare_pieces(config.corpus, spiece, out / "pieces.npz")
    splitter = SentencePieces(spiece)
    teacher = None if config.teacher is None else Teacher(config.teacher, splitter)
    if teacher and config.init == SCRATCH:
        teacher.initialise(network)
    task = XlnetTask(
        network,
        splitter,
        data,
        config.orders,
        batch_pieces=config.batch_pieces,
        seed=config.seed,
        identity=f"{config.init} {sha256(spiece)} {network.config}",
        teacher=teacher,
        precision=config.precision or compute_dtype(),
    )
    train(task, config.schedule, out, quiet=quiet)
    network.load_state_dict(load_file(out / BEST))
    scores = task.scores()
    save_xlnet(out, network.eval(), spiece)
    _write_card(out, config, task, scores)
    return scores


def _start(config: XlnetTraining, out: Path) -> tuple[XlnetLM, Path]:
    """The network before training, and its vocabulary of pieces."""
    if config.init != SCRATCH:
        if config.pieces is not None:
            raise InputError("a pretrained model has its own pieces; leave --pieces out")
        network, _, source = load_xlnet(config.init)
        return network, source / PIECES
    pieces = config.pieces or out / PIECES
    if config.pieces is None and not pieces.exists():
        train_pieces(config.corpus, pieces)
    return new_xlnet(pieces, config.shape, config.seed), pieces


def _write_card(out: Path, config: XlnetTraining, task: XlnetTask, scores: dict[str, float]) -> None:
    schedule = config.schedule
    content = {
        "trained_on": [path.name for path in corpus.text_files(config.corpus)],
        "training": {
            "pieces_predicted": schedule.num_tokens,
            "learning_rate": schedule.learning_rate,
            "seed": schedule.seed,
            "orders": task.settings["orders"],
            "batch_pieces": task.settings["batch_pieces"],
            "streams": 1 if task.module.config.one_stream else 2,
            "teacher": task.settings["teacher"],
            "precision": task.settings["precision"],
        },
        "nll": scores,
        "nll_note": "Nats per word and sentence end on held-out sentences; masked: per piece, given all other pieces.",
    }
    with replacing(out / "card.json") as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
