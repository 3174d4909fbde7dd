"""Adding an XLNet language model or a classifier to a pack: in 8 bits, with what that costs on the card."""

import copy
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import nn

from redraft import text
from redraft.errors import InputError
from redraft.files import ordinary_modes
from redraft.models.pack import MANIFEST, Pack, write_manifest
from redraft.models.pieces import SentencePieces
from redraft.models.quantise import dequantise, quantise
from redraft.models.xlnet import Order, XlnetLM
from redraft.models.xlnet_files import load_xlnet
from redraft.models.xlnet_pack import LANGUAGE_MODEL, store_xlnet
from redraft.predict.classifier import CLASSIFIER, Classifier, HubNetwork, load_classifier, read_config
from redraft.training.xlnet import encode, nll_by_order

_Network = TypeVar("_Network", bound=nn.Module)
Sets = Mapping[str, Sequence[str]]  # sentences to measure on, by what they are called
_NOTE = "Nats per word and sentence end, every word spelt out in pieces; masked: per piece, given all the others."


@dataclass(frozen=True)
class Additions:
    """Trained models for a pack. XLNets are folders or hub names; several must differ in the orders they read."""

    xlnets: Sequence[str] = ()
    classifier: Path | None = None


def add_parts(base: Pack, out: Path, added: Additions, sets: Sets) -> Pack:
    """A copy of a pack in the folder ``out`` with more models in it; those it had under the same names are replaced."""
    if not added.xlnets and added.classifier is None:
        raise InputError("name what to add to the pack: an XLNet language model, a classifier, or both")
    if out.resolve() != base.folder.resolve():
        if out.exists() and any(out.iterdir()):
            raise InputError(f"{out} is not empty; choose a new folder for the pack")
        shutil.copytree(base.folder, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
    parts, card = dict(base.parts), dict(base.card)
    for source in added.xlnets:
        part, entry, about = _language_model(out, source, sets)
        parts[part], card[part] = entry, about
    if added.classifier is not None:
        parts[CLASSIFIER], card[CLASSIFIER] = _classifier(base, out, added.classifier, sets)
    _drop_unused_pieces(out, parts)
    return write_manifest(out, base.name, parts, card)


def _language_model(out: Path, source: str, sets: Sets) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Name, entry and card of an XLNet."""
    network, splitter, folder = load_xlnet(source)
    card = _read_card(folder)
    # A model that was trained elsewhere has met every order: XLNet learns by permutations.
    names = card.get("training", {}).get("orders") or [order.value for order in Order]
    orders = [order for order in Order if order.value in names]
    part = "xlnet" if len(orders) > 1 else f"xlnet-{orders[0].value}"
    _clear(out / part)
    entry = {"kind": LANGUAGE_MODEL, **store_xlnet(out, part, network, folder), "orders": [o.value for o in orders]}
    costs = {name: _nll(network, splitter, orders, lines) for name, lines in sets.items()}
    return part, entry, {**card, "nll": costs, "nll_note": _NOTE}


def _nll(network: XlnetLM, splitter: SentencePieces, orders: Sequence[Order], lines: Sequence[str]) -> dict[str, Any]:
    """Of each order, before and after quantising."""
    data, num_words = encode(splitter, lines)
    full, small = (
        nll_by_order(used, splitter, data, num_words, orders) for used in (network, _in_8_bits(network).eval())
    )
    return {
        name: {"before": nll, "int8": small[name], "cost_of_int8": round(small[name] - nll, 4)}
        for name, nll in full.items()
    }


def _classifier(base: Pack, out: Path, source: Path, sets: Sets) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entry and card of a classifier: a compact XLNet in 8 bits, any other encoder in half precision."""
    loaded, card = load_classifier(source, pack=base), _read_card(source)
    _clear(out / CLASSIFIER)
    if isinstance(loaded.network, HubNetwork):
        HubNetwork(copy.deepcopy(loaded.network.model).half(), loaded.network.tokenizer).save(out / CLASSIFIER)
        ordinary_modes(out / CLASSIFIER)
        stored, entry = load_classifier(out / CLASSIFIER), {"kind": read_config(source)["model_type"]}
        return {**entry, "folder": CLASSIFIER}, {**card, "cost_of_half": _changed(loaded, stored, sets)}
    entry = {"kind": read_config(source)["model_type"], **store_xlnet(out, CLASSIFIER, loaded.network, source)}
    small = Classifier(_in_8_bits(loaded.network), loaded.splitter)
    return entry, {**card, "cost_of_int8": _changed(loaded, small, sets)}


def _changed(before: Classifier, after: Classifier, sets: Sets) -> dict[str, dict[str, float]]:
    """How many words of a set get another likeliest label, and how far probabilities move on average."""
    result = {}
    for name, lines in sets.items():
        sentences = [tuple(text.tokenise(line)) for line in lines]
        old, new = (np.concatenate(classifier.log_probs(sentences)) for classifier in (before, after))
        other = (old.argmax(1) != new.argmax(1)).mean()
        moved = np.abs(np.exp(old) - np.exp(new)).mean()
        result[name] = {"labels_changed": round(float(other), 4), "probability_moved": round(float(moved), 4)}
    return result


def _in_8_bits(network: _Network) -> _Network:
    small = copy.deepcopy(network)
    small.load_state_dict(dequantise(quantise(network.state_dict())))
    return small


def _clear(folder: Path) -> None:
    """No file of a model that had the same name is left behind."""
    if folder.exists():
        shutil.rmtree(folder)


def _drop_unused_pieces(out: Path, parts: Mapping[str, Mapping[str, Any]]) -> None:
    used = {entry.get("pieces") for entry in parts.values()}
    for path in out.glob("pieces-*.model"):
        if path.name not in used:
            path.unlink()


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / "card.json"
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return card
