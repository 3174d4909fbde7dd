"""Start states as a part of a pack: checked, copied, and measured on held-out sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redraft.errors import InputError
from redraft.evaluation.half_nll import half_nll
from redraft.evaluation.lstm_nll import DIRECTIONS
from redraft.models.lstm.files import load_network, readers_sha256
from redraft.models.lstm.start_states import (
    WEIGHTS_FILE,
    check_shape,
    ordinary_start,
    read_start_states,
    save_start_states,
)
from redraft.models.pack import Pack
from redraft.models.xlnet.files import read_card
from redraft.training.word_data import encode_words

_NOTE = (
    "Nats per word and sentence end after a random word of each sentence, by the LSTM models in 8 bits; ordinary: from "
    "the state at the beginning (backward: the end) of a sentence."
)


def check_start_states(base: Pack, source: Path) -> None:
    """Refuse start states that were trained for other LSTM models than those of a pack."""
    states = read_start_states(source / WEIGHTS_FILE)
    if read_card(source).get("lstms_sha256") != readers_sha256(base):
        raise InputError(f"the start states in {source} are for other LSTM models than those of pack {base.name}")
    for direction in DIRECTIONS:
        check_shape(load_network(base, direction)[0], states[direction], str(source))


def add_start_states(
    base: Pack, out: Path, source: Path, sets: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest entry and card of start states: a copy, and the NLL with and without them."""
    states = read_start_states(source / WEIGHTS_FILE)
    save_start_states(out / WEIGHTS_FILE, states)
    card = read_card(source)
    entry = {"kind": "lstm-start-states", "weights": WEIGHTS_FILE, "lstms_sha256": card.pop("lstms_sha256")}
    nll: dict[str, dict[str, dict[str, float]]] = {name: {} for name in sets}
    for direction in DIRECTIONS:
        network, vocabulary = load_network(base, direction)
        for name, lines in sets.items():
            data = encode_words(vocabulary, lines)
            found = {
                label: round(half_nll(network, state, vocabulary, data, direction), 4)
                for label, state in (("ordinary", ordinary_start(network)), ("learned", states[direction]))
            }
            nll[name][direction] = found
    return entry, {**card, "nll": nll, "nll_note": _NOTE}
