"""Making a pack: train its models, quantise them, measure what that costs, write the card."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from redraft import corpus as texts
from redraft.corpus import Encoded
from redraft.errors import InputError
from redraft.models.lstm.files import save_lstm
from redraft.models.lstm.network import LstmConfig, LstmLM
from redraft.models.pack import MANIFEST, Pack, write_manifest
from redraft.models.quantise import dequantise, quantise
from redraft.training.lm import DIRECTIONS, Direction, LmData, encode, nll_per_word, prepare, train_lm
from redraft.training.loop import BEST
from redraft.training.parts import Additions, add_parts

_HELD_OUT = "held-out part of the corpus"


def train_pack(
    corpus: Path,
    out: Path,
    name: str,
    *,
    num_tokens: int,
    num_words: int,
    test: Path | None = None,
    about: Mapping[str, Any] | None = None,
    added: Additions | None = None,
) -> Pack:
    """Train what is not trained yet under ``out`` and put the pack into ``out / name``, with ``added`` models.

    ``test`` is a file of other sentences to report on; ``about`` is added to the card: sources, licences.
    """
    if test is not None:
        _test_lines(test)  # before hours of training
    if added is not None:
        added.check()
    for direction in DIRECTIONS:
        train_lm(
            corpus, direction, out / direction, num_tokens=num_tokens, num_words=num_words, cache=out / "corpus.npz"
        )
    data = prepare(corpus, num_words, out / "corpus.npz")
    pack = assemble(
        corpus, data, {d: out / d / BEST for d in DIRECTIONS}, out / name, name, num_tokens, test=test, about=about
    )
    return add_parts(pack, pack.folder, added, held_out_sets(corpus, test)) if added else pack


def held_out_sets(corpus: Path, test: Path | None = None) -> dict[str, list[str]]:
    """Sentences that nothing was trained on, by the name that they have on a card."""
    sets = {_HELD_OUT: [line for line in texts.sentences(corpus) if texts.is_held_out(line)]}
    return sets if test is None else {**sets, test.name: _test_lines(test)}


def _test_lines(test: Path) -> list[str]:
    lines = list(texts.lines(test))
    if not lines:
        raise InputError(f"{test} has no sentence to report on")
    return lines


def assemble(
    corpus: Path,
    data: LmData,
    weights: dict[Direction, Path],
    folder: Path,
    name: str,
    num_tokens: int,
    *,
    config: LstmConfig | None = None,
    test: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Pack:
    """Quantise trained models, measure them, and write them with a card, in place of a pack that was there."""
    if (folder / MANIFEST).exists():
        shutil.rmtree(folder)
    sets = {_HELD_OUT: data.held_out}
    if test is not None:
        sets[test.name] = encode(data.vocabulary, _test_lines(test))
    parts: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    for direction, path in weights.items():
        network = LstmLM(config or LstmConfig.fitting(len(data.vocabulary)))
        network.load_state_dict(load_file(path))
        parts[direction] = save_lstm(folder, direction, network, data.vocabulary)
        scores[direction] = {label: _scores(network, encoded, direction) for label, encoded in sets.items()}
    card = {
        "description": f"Forward and backward LSTM language models of {len(data.vocabulary) - 3:,} English words.",
        "trained_on": [path.name for path in texts.text_files(corpus)],
        "tokens_per_direction": num_tokens,
        "sentences": len(data.train),
        "nll_per_word": scores,
        "nll_note": "Mean over words and sentence ends, in nats; words outside the list count as one unknown word.",
        **(about or {}),
    }
    return write_manifest(folder, name, parts, card)


@torch.inference_mode()
def _scores(network: LstmLM, encoded: Encoded, direction: Direction) -> dict[str, float]:
    """NLL per word in full precision and in 8 bits, and the share of unknown words."""
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
