"""Making a pack: train its LSTM models, quantise them, measure the loss from quantisation, and write the card."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from redraft import corpus as texts
from redraft.corpus import Encoded
from redraft.errors import InputError
from redraft.evaluation.lstm_nll import DIRECTIONS, Direction, nll_per_word
from redraft.models.lstm.files import save_lstm
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.models.pack import MANIFEST, Pack, write_manifest
from redraft.models.quantise import dequantise, quantise
from redraft.training.lm import LmTraining, train_lm
from redraft.training.loop import BEST
from redraft.training.parts import Additions, add_parts
from redraft.training.word_data import NUM_WORDS, WordData, encode_words, prepare_words

_HELD_OUT = "held-out part of the corpus"


@dataclass(frozen=True)
class PackTraining:
    """How a pack is made.

    num_tokens   training tokens of each direction
    num_words    size of the vocabulary
    network      shape of the LSTM models; by default one that suits the vocabulary
    test         file of other sentences to report the NLL of
    about        entries for the card: sources, licences
    additions    trained models to add
    """

    corpus: Path
    name: str
    num_tokens: int
    num_words: int = NUM_WORDS
    network: LstmConfig | None = None
    test: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    additions: Additions | None = None


def train_pack(config: PackTraining, out: Path) -> Pack:
    """Train the models that are not trained yet in ``out`` and write the pack to ``out / config.name``."""
    # Check the other inputs before hours of training.
    if config.test is not None:
        _test_lines(config.test)
    if config.additions is not None:
        config.additions.check()
    cache = out / "corpus.npz"
    for direction in DIRECTIONS:
        train_lm(LmTraining(config.corpus, direction, config.num_tokens, config.num_words, cache), out / direction)
    data = prepare_words(config.corpus, config.num_words, cache)
    pack = assemble(config, data, {d: out / d / BEST for d in DIRECTIONS}, out / config.name)
    if config.additions is None:
        return pack
    return add_parts(pack, pack.folder, config.additions, held_out_sets(config.corpus, config.test))


def held_out_sets(corpus: Path, test: Path | None = None) -> dict[str, list[str]]:
    """Sentences that no model was trained on, by their name on the card."""
    sets = {_HELD_OUT: [line for line in texts.sentences(corpus) if texts.is_held_out(line)]}
    return sets if test is None else {**sets, test.name: _test_lines(test)}


def _test_lines(test: Path) -> list[str]:
    lines = list(texts.lines(test))
    if not lines:
        raise InputError(f"{test} has no sentence to report on")
    return lines


def assemble(config: PackTraining, data: WordData, weights: Mapping[Direction, Path], folder: Path) -> Pack:
    """Quantise and measure trained models and write them with a card, replacing a pack that is in the folder."""
    if (folder / MANIFEST).exists():
        shutil.rmtree(folder)
    sets = {_HELD_OUT: data.held_out}
    if config.test is not None:
        sets[config.test.name] = encode_words(data.vocabulary, _test_lines(config.test))
    parts: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    for direction, path in weights.items():
        network = LstmLM(config.network or LstmConfig.fitting(len(data.vocabulary)))
        network.load_state_dict(load_file(path))
        parts[direction] = save_lstm(folder, direction, network, data.vocabulary)
        scores[direction] = {label: _scores(network, encoded, direction) for label, encoded in sets.items()}
    card = {
        "description": f"Forward and backward LSTM language models of {len(data.vocabulary) - 3:,} English words.",
        "trained_on": [path.name for path in texts.text_files(config.corpus)],
        "tokens_per_direction": config.num_tokens,
        "sentences": len(data.train),
        "nll_per_word": scores,
        "nll_note": "Mean over words and sentence ends, in nats; words outside the list count as one unknown word.",
        **config.about,
    }
    return write_manifest(folder, config.name, parts, card)


@torch.inference_mode()
def _scores(network: LstmLM, encoded: Encoded, direction: Direction) -> dict[str, float]:
    """NLL per word in full precision and in 8 bits, and the fraction of unknown words."""
    network.eval()
    full = nll_per_word(network, encoded, direction)
    small = LstmLM(network.config).eval()
    small.load_state_dict(dequantise(quantise(network.state_dict())))
    shipped = nll_per_word(small, encoded, direction)
    return {
        "float32": round(full, 4),
        "int8": round(shipped, 4),
        "cost_of_int8": round(shipped - full, 4),
        "unknown_share": round(float((encoded.ids == 1).mean()), 4),
    }
