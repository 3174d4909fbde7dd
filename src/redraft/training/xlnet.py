"""Training XLNet as a language model that reads in three orders with one set of weights."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from redraft import corpus, text
from redraft.corpus import Encoded
from redraft.errors import CorpusError, InputError
from redraft.files import replacing, sha256
from redraft.models.hub import compute_dtype, precision_name
from redraft.models.output_layer import Columns, sample_columns
from redraft.models.pack import Pack
from redraft.models.pieces import PIECES, SentencePieces
from redraft.models.xlnet import Order, XlnetConfig, XlnetLM
from redraft.models.xlnet_files import load_xlnet, save_xlnet
from redraft.training.lm import MAX_WORDS, Batches, in_text_order
from redraft.training.loop import BEST, Schedule, train
from redraft.training.muon import optimizers
from redraft.training.pieces import train_pieces
from redraft.training.processes import WHOLE, Share, join
from redraft.training.teacher import SoftTargets, Teacher, TeacherBatch
from redraft.version import VERSION

LEARNING_RATE = 1.2e-3  # from scratch
FINE_TUNING_RATE = 1e-4
BATCH_PIECES = 4096
SCRATCH = "scratch"
_SHAPE = {"n_layer": 4, "d_inner": 768, "one_stream": True}  # small: in hours of training tokens are short
_ASKED = 0.25  # share of the pieces that the masked order predicts
_FREQUENT, _SAMPLED = 2000, 1500  # columns of the output layer in a training step
_SELECTION = 1000  # held-out sentences that choose the best weights; the final scores are of all of them
_VALIDATION_SEED = 1
_READ_TOGETHER = 32  # sentences that are scored in one call
_MOST_PIECES = 1 << 16  # what 16 bits tell apart


@dataclass(frozen=True)
class PieceData:
    """A corpus in pieces, without BOS and EOS. ``held_out_words`` are the words of each held-out sentence."""

    train: Encoded
    held_out: Encoded
    held_out_words: NDArray[np.int64]


def prepare(folder: Path, pieces: Path, cache: Path | None = None) -> PieceData:
    """Split the sentences of a corpus into pieces. With ``cache`` the result is kept in that file."""
    fingerprint = json.dumps([VERSION, sha256(pieces), corpus.file_hashes(folder)])
    if cache and cache.exists():
        with np.load(cache) as kept:
            if str(kept["fingerprint"]) == fingerprint:
                train, held_out = (Encoded(kept[f"{s}_ids"], kept[f"{s}_starts"]) for s in ("train", "held"))
                return PieceData(train, held_out, kept["held_words"])
    splitter = SentencePieces(pieces)
    if splitter.size > _MOST_PIECES:
        raise InputError(f"{pieces} has {splitter.size:,} pieces; at most {_MOST_PIECES:,} can be trained with")
    train, _ = encode(splitter, (line for line in corpus.sentences(folder) if not corpus.is_held_out(line)))
    held_out, num_words = encode(splitter, (line for line in corpus.sentences(folder) if corpus.is_held_out(line)))
    if not len(train) or not len(held_out):
        raise CorpusError(f"{folder} is too small: {len(train)} sentences to train on, {len(held_out)} held out")
    data = PieceData(train, held_out, num_words)
    if cache:
        _keep(cache, fingerprint, data)
    return data


def _keep(cache: Path, fingerprint: str, data: PieceData) -> None:
    with replacing(cache) as path, path.open("wb") as file:
        np.savez(
            file,
            fingerprint=fingerprint,
            train_ids=data.train.ids,
            train_starts=data.train.starts,
            held_ids=data.held_out.ids,
            held_starts=data.held_out.starts,
            held_words=data.held_out_words,
        )


def encode(splitter: SentencePieces, lines: Iterable[str]) -> tuple[Encoded, NDArray[np.int64]]:
    """Sentences in pieces, and how many words each has."""
    known: dict[str, tuple[int, ...]] = {}
    rows: list[NDArray[np.uint16]] = []
    num_words: list[int] = []
    for line in lines:
        words = text.tokenise(line)[:MAX_WORDS]
        for word in words:
            if word not in known:
                known[word] = splitter.split(word)
        rows.append(np.array([i for word in words for i in known[word]], dtype=np.uint16))
        num_words.append(len(words))
    ids = np.concatenate(rows) if rows else np.empty(0, np.uint16)
    return Encoded(ids, np.cumsum([0, *map(len, rows)])), np.array(num_words)


class Predictor:
    """What one order predicts of a batch: the states that predict and the pieces that they should name."""

    def __init__(self, network: XlnetLM, splitter: SentencePieces):
        self._network, self._splitter = network, splitter

    def __call__(
        self, sentences: Sequence[NDArray[np.uint16]], order: Order, asked: Sequence[NDArray[np.int64]] = ()
    ) -> tuple[Tensor, Tensor]:
        """[n, d] and [n]. ``asked`` are the places in each sentence that the masked order predicts."""
        rows = [[self._splitter.begin, *sentence.tolist(), self._splitter.end] for sentence in sentences]
        if order is Order.MASKED:
            return self._masked(rows, asked)
        if order is Order.BACKWARD:
            rows = [row[::-1] for row in rows]
        ids, real = _padded(rows, self._splitter.padding)
        hidden, _ = self._network.transformer.causal(ids[:, :-1], backward=order is Order.BACKWARD)
        return hidden[real[:, 1:]], ids[:, 1:][real[:, 1:]]

    def _masked(self, rows: Sequence[Sequence[int]], asked: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
        ids, real = _padded(rows, self._splitter.padding)
        hidden_pieces = torch.zeros_like(real)
        for row, places in enumerate(asked):
            hidden_pieces[row, torch.from_numpy(places) + 1] = True  # BOS comes first
        return self._network.transformer(ids, real, hidden_pieces)[hidden_pieces], ids[hidden_pieces]


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    return ids, torch.arange(longest) < torch.tensor([[len(row)] for row in rows])


def ask(lengths: Iterable[int], share: float, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Places to predict in sentences of these lengths: a share of them, one at least."""
    return [np.sort(rng.permutation(length)[: max(1, round(share * length))]) for length in lengths]


class _Part(NamedTuple):
    """The sentences of a batch that are read in one order; ``asked`` are the places that the masked order predicts."""

    order: Order
    sentences: list[NDArray[np.uint16]]
    asked: list[NDArray[np.int64]]

    def share(self, share: Share) -> "_Part":
        return _Part(self.order, share.of(self.sentences), share.of(self.asked))

    def targets(self, splitter: SentencePieces) -> NDArray[np.int64]:
        """The pieces to be predicted, in any order."""
        if self.order is Order.MASKED:
            pieces = [sentence[places] for sentence, places in zip(self.sentences, self.asked, strict=True)]
        else:
            pieces = [*self.sentences, np.array([splitter.end if self.order is Order.FORWARD else splitter.begin])]
        return np.concatenate(pieces).astype(np.int64) if pieces else np.empty(0, np.int64)


class XlnetTask:
    """An XLNet language model for redraft.training.loop.

    Every batch is shared out among the orders; one that is named twice gets twice the sentences. A token of the loop
    is a piece that is predicted.
    """

    def __init__(
        self,
        network: XlnetLM,
        splitter: SentencePieces,
        data: PieceData,
        orders: Sequence[Order],
        *,
        batch_pieces: int = BATCH_PIECES,
        seed: int = 0,
        identity: str = "",
        teacher: Teacher | None = None,
        precision: torch.dtype = torch.float32,
    ):
        self._network, self._splitter, self._data = network, splitter, data
        self._precision = precision
        self._orders, self._seed = tuple(orders), seed
        self._predict = Predictor(network, splitter)
        self._batches = Batches(data.train, batch_pieces, seed)
        self._batch_pieces, self._identity = batch_pieces, identity
        self._optimizers = optimizers(network, precision)
        self._teacher = teacher

    @property
    def module(self) -> XlnetLM:
        return self._network

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return self._optimizers

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "orders": [order.value for order in self._orders],
            "batch_pieces": self._batch_pieces,
            "sentences": len(self._data.train),
            "init": self._identity,
            "teacher": self._teacher.identity if self._teacher else None,
            "precision": precision_name(self._precision),
        }

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        """Cross entropy of what all orders predict; the output layer is estimated from some of its columns."""
        rng = np.random.default_rng((self._seed, step))
        rows = self._batches.rows(step)
        num = len(self._orders)
        # Another order begins each time, so that all have their turn when a batch has fewer sentences than orders.
        parts = [self._part(rows[(at + step) % num :: num], order, rng) for at, order in enumerate(self._orders)]
        generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
        in_batch = torch.from_numpy(np.concatenate([part.targets(self._splitter) for part in parts]))
        columns = sample_columns(in_batch, self._network.config.vocab_size, _FREQUENT, _SAMPLED, generator)
        own = [taken for part in parts if (taken := part.share(share)).sentences]
        # Weights and what goes from layer to layer stay in single precision, products are computed in the other.
        with torch.autocast("cpu", self._precision, enabled=self._precision is not torch.float32):
            found = [self._predict(part.sentences, part.order, part.asked) for part in own]
            if not found:
                return torch.zeros(()), 0
            hidden, target = (torch.cat(tensors) for tensors in zip(*found, strict=True))
            soft = self._taught(own, [len(asked) for _, asked in found], columns)
            return self._network.loss(hidden, target, columns, soft), len(target)

    def _taught(self, parts: Sequence["_Part"], num_predicted: Sequence[int], columns: Columns) -> SoftTargets | None:
        if self._teacher is None:
            return None
        told = [TeacherBatch(part.order, part.sentences, num) for part, num in zip(parts, num_predicted, strict=True)]
        return self._teacher.lesson(told, columns)

    def _part(self, rows: NDArray[np.int64], order: Order, rng: np.random.Generator) -> "_Part":
        sentences = [self._data.train.sentence(row) for row in rows]
        return _Part(order, sentences, ask(map(len, sentences), _ASKED, rng) if order is Order.MASKED else [])

    def validate(self) -> dict[str, float]:
        spread = max(1, len(self._data.held_out) // _SELECTION)
        return self.scores(np.arange(0, len(self._data.held_out), spread))

    def scores(self, rows: NDArray[np.int64] | None = None) -> dict[str, float]:
        """NLL of held-out sentences by order."""
        data, num_words = self._data.held_out, self._data.held_out_words
        return nll_by_order(self._network, self._splitter, data, num_words, self._orders, rows)


@torch.inference_mode()
def piece_nll(network: XlnetLM, splitter: SentencePieces, data: Encoded, order: Order) -> list[NDArray[np.float64]]:
    """Negative log-likelihood of each piece of each sentence, as the text has them, then of the sentence's end.

    Read forward or backward.
    """
    predict = Predictor(network, splitter)
    result = [np.empty(0)] * len(data)
    by_length = np.argsort(data.lengths, kind="stable")
    for start in range(0, len(by_length), _READ_TOGETHER):
        rows = by_length[start : start + _READ_TOGETHER]
        nll = -network.log_prob_of(*predict([data.sentence(row) for row in rows], order)).double().numpy()
        for row, found in zip(rows, np.split(nll, np.cumsum(data.lengths[rows] + 1)[:-1]), strict=True):
            result[row] = in_text_order(found, is_backward=order is Order.BACKWARD)
    return result


def by_words(
    splitter: SentencePieces, sentences: Iterable[Sequence[str]], by_piece: Iterable[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """What ``piece_nll`` gives, summed over the pieces of each word; the end stays last."""
    starts = ([0, *(len(splitter.split(word)) for word in words[:MAX_WORDS])] for words in sentences)
    return [np.add.reduceat(nll, np.cumsum(first)) for nll, first in zip(by_piece, starts, strict=True)]


def nll_by_order(
    network: XlnetLM,
    splitter: SentencePieces,
    data: Encoded,
    num_words: NDArray[np.int64],
    orders: Sequence[Order],
    rows: NDArray[np.int64] | None = None,
) -> dict[str, float]:
    """Mean negative log-likelihood per word and end; masked, of one piece a sentence given all others."""
    rng, predict = np.random.default_rng(_VALIDATION_SEED), Predictor(network, splitter)
    rows = np.arange(len(data)) if rows is None else rows
    rows = rows[np.argsort(data.lengths[rows], kind="stable")]
    asked = ask(data.lengths[rows], 0.0, rng)
    totals = dict.fromkeys(sorted(set(orders), key=list(Order).index), 0.0)
    with torch.inference_mode():
        for start in range(0, len(rows), _READ_TOGETHER):
            part = slice(start, start + _READ_TOGETHER)
            sentences = [data.sentence(row) for row in rows[part]]
            for order in totals:
                hidden, target = predict(sentences, order, asked[part])
                totals[order] -= network.log_prob_of(hidden, target).double().sum().item()
    words = int(num_words[rows].sum()) + len(rows)
    return {
        order.value: round(total / (len(rows) if order is Order.MASKED else words), 4)
        for order, total in totals.items()
    }


def new_xlnet(pieces: Path, shape: Mapping[str, Any] | None = None, seed: int = 0) -> XlnetLM:
    """A compact XLNet with fresh weights over a SentencePiece vocabulary; ``shape`` are fields of its configuration."""
    torch.manual_seed(seed)  # torch's initialisers have no generator of their own
    return XlnetLM(XlnetConfig(SentencePieces(pieces).size, **{**_SHAPE, **(shape or {})}))


def train_xlnet(
    folder: Path,
    orders: Sequence[Order],
    out: Path,
    *,
    num_tokens: int,
    init: str = SCRATCH,
    pieces: Path | None = None,
    shape: Mapping[str, Any] | None = None,
    num_streams: int | None = None,
    learning_rate: float | None = None,
    batch_pieces: int = BATCH_PIECES,
    validate_every: int = 2_000_000,
    seed: int = 0,
    teacher: Pack | None = None,
    precision: torch.dtype | None = None,
    quiet: bool = False,
) -> dict[str, float]:
    """Train on a corpus, from scratch or from a checkpoint; call again to resume. Returns NLL on held-out sentences.

    The best weights are left in ``out`` as transformers would save them, with a card that tells their scores.
    ``teacher`` is a pack whose LSTM models tell what they know of words. ``precision`` is that of the products; by
    default the fastest that the processor has. Of two ``num_streams`` the second predicts, as XLNet was made; with one,
    which is what scratch has by default, the content itself does.
    """
    if not orders:
        raise InputError("name at least one order: forward, backward or masked")
    precision = precision or compute_dtype()
    with join().first_before_others():
        network, spiece = _start(folder, init, pieces, shape, out, seed)
        if num_streams:
            network = network.with_streams(num_streams)
        data = prepare(folder, spiece, out / "pieces.npz")
    splitter = SentencePieces(spiece)
    lessons = None if teacher is None else Teacher(teacher, splitter)
    if lessons and init == SCRATCH:
        lessons.begin(network)
    task = XlnetTask(
        network,
        splitter,
        data,
        orders,
        batch_pieces=batch_pieces,
        seed=seed,
        identity=f"{init} {sha256(spiece)} {network.config}",
        teacher=lessons,
        precision=precision,
    )
    rate = learning_rate or (LEARNING_RATE if init == SCRATCH else FINE_TUNING_RATE)
    plan = Schedule(num_tokens, rate, warmup=0.03, validate_every=validate_every, seed=seed)
    train(task, plan, out, quiet=quiet)
    network.load_state_dict(load_file(out / BEST))
    scores = task.scores()
    save_xlnet(out, network.eval(), spiece)
    _write_card(out, folder, plan, task, scores)
    return scores


def _start(
    folder: Path, init: str, pieces: Path | None, shape: Mapping[str, Any] | None, out: Path, seed: int
) -> tuple[XlnetLM, Path]:
    if init != SCRATCH:
        if pieces is not None:
            raise InputError("a model that was trained before has its own pieces; leave --pieces out")
        network, _, source = load_xlnet(init)
        return network, source / PIECES
    if pieces is None:
        pieces = out / PIECES
        if not pieces.exists():
            train_pieces(folder, pieces)
    return new_xlnet(pieces, shape, seed), pieces


def _write_card(out: Path, folder: Path, plan: Schedule, task: XlnetTask, scores: dict[str, float]) -> None:
    content = {
        "trained_on": [path.name for path in corpus.text_files(folder)],
        "training": {
            "pieces_predicted": plan.num_tokens,
            "learning_rate": plan.learning_rate,
            "seed": plan.seed,
            "orders": task.settings["orders"],
            "batch_pieces": task.settings["batch_pieces"],
            "streams": 1 if task.module.config.one_stream else 2,
            "teacher": task.settings["teacher"],
            "precision": task.settings["precision"],
        },
        "nll": scores,
        "nll_note": "Nats per word and sentence end on held-out sentences; masked: per piece, given all the others.",
    }
    with replacing(out / "card.json") as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
