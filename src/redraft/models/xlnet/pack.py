"""XLNets in packs. Each is in a folder of its own, in 8 bits. Parts with the same vocabulary share its file."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from redraft.errors import PackError
from redraft.files import replacing, sha256
from redraft.models.pack import Pack
from redraft.models.pieces import PIECES, SentencePieces
from redraft.models.precision import compute_dtype
from redraft.models.quantise import quantise
from redraft.models.xlnet.files import CONFIG, WEIGHTS, load_xlnet
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import ReadingOrder, XlnetLM
from redraft.models.xlnet.reader import XlnetReader
from redraft.models.xlnet.words import PieceWords

LANGUAGE_MODEL = "xlnet-lm"  # the kind of these parts in a manifest


def store_xlnet(folder: Path, part: str, network: nn.Module, source: Path) -> dict[str, Any]:
    """Copy a network that was loaded from ``source`` into the folder of a pack. Returns the paths of its files."""
    with replacing(folder / part / CONFIG) as partial:
        shutil.copyfile(source / CONFIG, partial)
    with replacing(folder / part / WEIGHTS) as partial:
        save_file(quantise(network.state_dict()), partial)
    if not (source / PIECES).exists():  # its vocabulary is whole words
        return {"folder": part}
    # Named by its hash: replacing one part cannot change the vocabulary of another.
    pieces = f"pieces-{sha256(source / PIECES)[:8]}.model"
    with replacing(folder / pieces) as partial:
        shutil.copyfile(source / PIECES, partial)
    return {"folder": part, "pieces": pieces}


def load_readers(
    pack: Pack, orders: Iterable[ReadingOrder], dtype: torch.dtype | None = None
) -> dict[ReadingOrder, XlnetReader | XlnetMaskedReader]:
    """Load a reader for each order, in the fastest precision by default. Orders of the same part share a network."""
    part_of = {order: _require_part(pack, order) for order in orders}
    networks = {}
    words: dict[str, PieceWords] = {}  # by vocabulary: proposers whose distributions are multiplied must share it
    for part in dict.fromkeys(part_of.values()):
        pieces = pack.parts[part]["pieces"]
        network, splitter = load_part(pack, part)
        networks[part] = network.to(dtype or compute_dtype())
        if pieces not in words:
            words[pieces] = PieceWords(splitter)
    return {
        order: make_reader(f"{pack.name}/{part}", networks[part], words[pack.parts[part]["pieces"]], order)
        for order, part in part_of.items()
    }


def load_part(pack: Pack, part: str) -> tuple[XlnetLM, SentencePieces]:
    """Load the network and the vocabulary of a part."""
    network, splitter, _ = load_xlnet(pack.part_folder(part), pack.path(pack.parts[part]["pieces"]))
    return network, splitter


def part_for(pack: Pack, order: ReadingOrder) -> str | None:
    """Return the part of a pack that reads in an order, if any."""
    of_kind = ((part, entry) for part, entry in pack.parts.items() if entry["kind"] == LANGUAGE_MODEL)
    return next((part for part, entry in of_kind if order.value in entry["orders"]), None)


def _require_part(pack: Pack, order: ReadingOrder) -> str:
    part = part_for(pack, order)
    if part is None:
        raise PackError(
            f"pack {pack.name} has no XLNet that reads {order.value}; choose another pack, recipe or generator"
        )
    return part


def make_reader(name: str, network: XlnetLM, words: PieceWords, order: ReadingOrder) -> XlnetReader | XlnetMaskedReader:
    """Make a reader that reads in an order."""
    name = f"{name}/{order.value}"
    if order is ReadingOrder.MASKED:
        return XlnetMaskedReader(name, network, words)
    return XlnetReader(name, network, words, backward=order is ReadingOrder.BACKWARD)
