"""Learned start states: what an LSTM starts from when the first word that it reads is inside a sentence.

An LSTM of a pack starts at the beginning of a sentence (the backward LSTM: at its end). A start state replaces the
words that it has not read. It has two vectors per layer; the weights of the LSTM stay as they are.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from redraft.errors import PackError, reason
from redraft.files import replacing
from redraft.models.lstm.files import load_network, readers_sha256
from redraft.models.lstm.half_reader import HalfReader
from redraft.models.lstm.network import LstmLM, LstmState
from redraft.models.pack import Pack
from redraft.models.vocabulary import START

START_STATES = "start-states"  # the part of a pack
WEIGHTS_FILE = f"{START_STATES}.safetensors"


@torch.inference_mode()
def ordinary_start(network: LstmLM) -> LstmState:
    """The state at the beginning of a sentence, [layers, 1, size]."""
    _, (hidden, cell) = network(torch.tensor([[START]]))
    return hidden, cell


def save_start_states(path: Path, states: Mapping[str, LstmState]) -> None:
    """Write the start states of both directions."""
    tensors = {
        f"{direction}.{name}": part.detach().clone().contiguous()
        for direction, state in states.items()
        for name, part in zip(("hidden", "cell"), state, strict=True)
    }
    with replacing(path) as partial:
        save_file(tensors, partial)


def read_start_states(path: Path) -> dict[str, LstmState]:
    """Read the start states of both directions."""
    try:
        tensors = load_file(path)
        return {d: (tensors[f"{d}.hidden"], tensors[f"{d}.cell"]) for d in ("forward", "backward")}
    except FileNotFoundError as error:
        raise PackError(f"there is no {path}; train it with redraft train start-states") from error
    except (KeyError, SafetensorError) as error:
        raise PackError(f"{path} does not hold start states ({reason(error)})") from error


def load_half_reader(pack: Pack, direction: str) -> HalfReader:
    """An LSTM of a pack that starts inside a sentence."""
    if START_STATES not in pack.parts:
        raise PackError(
            f"pack {pack.name} has no start states, with which an LSTM starts inside a sentence; add them with "
            "redraft train start-states and redraft train add"
        )
    entry = pack.parts[START_STATES]
    if entry.get("lstms_sha256") != readers_sha256(pack):
        raise PackError(f"the start states of pack {pack.name} were trained for other LSTM models; train them again")
    network, vocabulary = load_network(pack, direction)
    state = read_start_states(pack.path(str(entry.get("weights"))))[direction]
    check_shape(network, state, pack.name)
    return HalfReader(network, vocabulary, state, backward=direction == "backward")


def check_shape(network: LstmLM, state: LstmState, where: str) -> None:
    """Refuse start states of other shapes than the LSTM's."""
    wanted = (network.config.num_layers, 1, network.config.size)
    if any(tuple(part.shape) != wanted for part in state):
        raise PackError(f"the start states of {where} do not have the shape of its LSTM models; train them again")
