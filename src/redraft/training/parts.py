"""Adding models to a pack. The card states what each loses by quantisation."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import nn

from redraft import text
from redraft.errors import InputError
from redraft.evaluation.lstm_nll import known_words, mean_over, word_nll
from redraft.evaluation.xlnet_nll import nll_by_order, piece_nll, sum_by_words
from redraft.files import ordinary_modes
from redraft.models.causal.adapter import load_adapter, save_adapter
from redraft.models.causal.infiller import INFILLER
from redraft.models.encoder import VOCABULARY, CasedPieces
from redraft.models.lstm.files import load_network
from redraft.models.lstm.start_states import START_STATES
from redraft.models.pack import MANIFEST, Base, Pack, write_manifest
from redraft.models.pieces import SentencePieces
from redraft.models.quantise import dequantise, quantise
from redraft.models.xlnet.files import load_xlnet, orders_of, read_card
from redraft.models.xlnet.network import ReadingOrder, XlnetLM
from redraft.models.xlnet.pack import LANGUAGE_MODEL, store_xlnet
from redraft.predict.classifier import CLASSIFIER, Classifier, HubNetwork, check_labels, load_classifier, read_config
from redraft.training.piece_data import encode_pieces
from redraft.training.start_parts import add_start_states, check_start_states
from redraft.training.word_data import encode_words

_Network = TypeVar("_Network", bound=nn.Module)
SentenceSets = Mapping[str, Sequence[str]]  # sentences to measure on, by name
_NOTE_KNOWN = (
    "Nats per word and sentence end, over words in the vocabulary of the LSTM models, which are in 8 bits already."
)
_NOTE = "Nats per word and sentence end, every word spelt in pieces; masked: per piece, given all other pieces."


@dataclass(frozen=True)
class Additions:
    """Trained models to add to a pack.

    XLNets are folders or hub names; ``forward=DIR`` uses one for that order only. No two may read the same order.
    """

    xlnets: Sequence[str] = ()
    classifier: Path | None = None
    infiller: Path | None = None
    start_states: Path | None = None

    @property
    def parts(self) -> list[str]:
        """The parts of a pack that are added, besides XLNets."""
        given = {CLASSIFIER: self.classifier, INFILLER: self.infiller, START_STATES: self.start_states}
        return [name for name, folder in given.items() if folder is not None]

    @property
    def any(self) -> bool:
        """Whether there is anything to add."""
        return bool(self.xlnets or self.parts)

    def load_xlnets(self) -> "list[_Xlnet]":
        xlnets = [_Xlnet.of(source) for source in self.xlnets]
        for order in ReadingOrder:
            if sum(order in xlnet.orders for xlnet in xlnets) > 1:
                raise InputError(
                    f"two of the XLNets would read {order.value}; choose one with --xlnet {order.value}=DIR"
                )
        return xlnets

    def load_classifier(self, base: Pack) -> Classifier | None:
        """The classifier, over the models of a pack if it needs any."""
        return None if self.classifier is None else load_classifier(self.classifier, pack=base)

    def check(self) -> None:
        """Refuse invalid models before the pack is trained."""
        self.load_xlnets()
        if self.classifier is not None:
            check_labels(self.classifier, read_config(self.classifier))


def add_parts(base: Pack, out: Path, added: Additions, sets: SentenceSets) -> Pack:
    """Copy a pack to the folder ``out`` and add models, which replace those with the same role.

    If a model cannot be added, nothing is left behind.
    """
    in_place = out.resolve() == base.folder.resolve()
    _check(base, out, added, sets, in_place=in_place)
    xlnets = added.load_xlnets()
    classifier = added.load_classifier(base)
    if in_place:
        return _add(base, out, xlnets, added, classifier, sets)
    try:
        shutil.copytree(base.folder, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
        return _add(base, out, xlnets, added, classifier, sets)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def add_over(
    base: Pack,
    out: Path,
    added: Additions,
    sets: SentenceSets,
    takes: Sequence[str] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Pack:
    """Write a pack to the folder ``out`` that holds only the added models and stands over another pack.

    It takes the other parts of its base, or only those that ``takes`` names. If they change, it cannot be opened.
    ``about`` are entries for its card.
    """
    if added.xlnets:
        raise InputError("an XLNet takes orders from the models of a pack, so it cannot stand over one: make a copy")
    _check(base, out, added, sets)
    taken = base.only(name for name in (base.parts if takes is None else takes) if name not in added.parts)
    Base.of(taken).open(out)
    classifier = added.load_classifier(base)
    try:
        out.mkdir(parents=True, exist_ok=True)
        parts, card = _store(base, out, added, classifier, sets)
        return write_manifest(out, out.resolve().name, parts, {**card, **(about or {})}, taken)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _check(base: Pack, out: Path, added: Additions, sets: SentenceSets, *, in_place: bool = False) -> None:
    """Refuse what cannot be added before anything is written."""
    if not added.any:
        raise InputError("name what to add: an XLNet language model, a classifier, an infiller or start states")
    if empty := [name for name, lines in sets.items() if not lines]:
        raise InputError(f"there is no sentence to measure on: {empty[0]} is empty; give more text")
    if base.base is not None:
        raise InputError(f"pack {base.name} stands over pack {base.base.name}; add models to that pack")
    if not in_place and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not an empty folder; choose a new one for the pack")
    if added.infiller is not None:
        load_adapter(added.infiller)
    if added.start_states is not None:
        check_start_states(base, added.start_states)


@dataclass(frozen=True)
class _Xlnet:
    """A language model to add, and the orders that it is used for."""

    network: XlnetLM
    splitter: SentencePieces
    folder: Path
    orders: Sequence[ReadingOrder]

    @classmethod
    def of(cls, source: str) -> "_Xlnet":
        name, _, rest = source.partition("=")
        order = next((order for order in ReadingOrder if rest and order.value == name), None)
        network, splitter, folder = load_xlnet(rest if order else source)
        return cls(network, splitter, folder, [order] if order else orders_of(folder))

    @property
    def part(self) -> str:
        """Its name in a pack."""
        names = [order.value for order in self.orders]
        return "xlnet" if len(names) == len(ReadingOrder) else "-".join(["xlnet", *names])


def _add(
    base: Pack,
    out: Path,
    xlnets: Sequence[_Xlnet],
    added: Additions,
    classifier: Classifier | None,
    sets: SentenceSets,
) -> Pack:
    """Store the models, which are loaded by now, and write the manifest."""
    parts, card = dict(base.parts), dict(base.card)
    for xlnet in xlnets:
        _take_over(out, parts, card, xlnet.orders)
        _clear(out / xlnet.part)
        stored = store_xlnet(out, xlnet.part, xlnet.network, xlnet.folder)
        parts[xlnet.part] = {"kind": LANGUAGE_MODEL, **stored, "orders": [order.value for order in xlnet.orders]}
        costs = {name: _nll(xlnet.network, xlnet.splitter, xlnet.orders, lines) for name, lines in sets.items()}
        card[xlnet.part] = {**read_card(xlnet.folder), "nll": costs, "nll_note": _NOTE}
        if beside := {name: found for name, lines in sets.items() if (found := _beside_lstm(base, xlnet, lines))}:
            card[xlnet.part] |= {"nll_of_known_words": beside, "nll_of_known_words_note": _NOTE_KNOWN}
    for found, all_found in zip(_store(base, out, added, classifier, sets), (parts, card), strict=True):
        all_found.update(found)
    _drop_unused_pieces(out, parts)
    return write_manifest(out, base.name, parts, card)


def _store(
    base: Pack, out: Path, added: Additions, classifier: Classifier | None, sets: SentenceSets
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Store all models but XLNets. Returns their manifest entries and cards by part."""
    parts: dict[str, Any] = {}
    card: dict[str, Any] = {}
    if added.classifier is not None and classifier is not None:
        parts[CLASSIFIER], card[CLASSIFIER] = _classifier(out, added.classifier, classifier, sets)
    if added.infiller is not None:
        parts[INFILLER], card[INFILLER] = _infiller(out, added.infiller)
    if added.start_states is not None:
        parts[START_STATES], card[START_STATES] = add_start_states(base, out, added.start_states, sets)
    return parts, card


def _take_over(out: Path, parts: dict[str, Any], card: dict[str, Any], orders: Sequence[ReadingOrder]) -> None:
    """Take orders away from the models of the pack; remove a model that has none left."""
    taken = {order.value for order in orders}
    for name, entry in [(name, entry) for name, entry in parts.items() if entry["kind"] == LANGUAGE_MODEL]:
        left = [order for order in entry["orders"] if order not in taken]
        parts[name] = {**entry, "orders": left}
        if not left:
            del parts[name]
            card.pop(name, None)
            _clear(out / name)


def _nll(
    network: XlnetLM, splitter: SentencePieces, orders: Sequence[ReadingOrder], lines: Sequence[str]
) -> dict[str, Any]:
    """NLL by order, before and after quantisation."""
    data, num_words = encode_pieces(splitter, lines)
    full, small = (
        nll_by_order(used, splitter, data, num_words, orders) for used in (network, _in_8_bits(network).eval())
    )
    return {
        name: {"before": nll, "int8": small[name], "cost_of_int8": round(small[name] - nll, 4)}
        for name, nll in full.items()
    }


def _beside_lstm(base: Pack, xlnet: _Xlnet, lines: Sequence[str]) -> dict[str, Any]:
    """NLL of the XLNet and of the pack's LSTM models by direction, on the words that the LSTM models know."""
    sentences = [text.tokenise(line) for line in lines]
    data, _ = encode_pieces(xlnet.splitter, lines)
    result = {}
    for order in xlnet.orders:
        if order is not ReadingOrder.MASKED and order.value in base.parts:
            lstm, vocabulary = load_network(base, order.value)
            known = known_words(vocabulary, sentences)
            own = sum_by_words(xlnet.splitter, sentences, piece_nll(xlnet.network, xlnet.splitter, data, order))
            theirs = word_nll(lstm, encode_words(vocabulary, lines), order.value)
            result[order.value] = {
                "xlnet": round(mean_over(own, known), 4),
                "lstm": round(mean_over(theirs, known), 4),
            }
    return result


def _classifier(
    out: Path, source: Path, loaded: Classifier, sets: SentenceSets
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest entry and card of a classifier: our own networks in 8 bits, any other encoder in half precision."""
    card = read_card(source)
    _clear(out / CLASSIFIER)
    if isinstance(loaded.network, HubNetwork):
        HubNetwork(copy.deepcopy(loaded.network.model).half(), loaded.network.tokenizer).save(out / CLASSIFIER)
        ordinary_modes(out / CLASSIFIER)
        stored, entry = load_classifier(out / CLASSIFIER), {"kind": read_config(source)["model_type"]}
        return {**entry, "folder": CLASSIFIER}, {**card, "cost_of_half": _changed(loaded, stored, sets)}
    entry = {"kind": read_config(source)["model_type"], **store_xlnet(out, CLASSIFIER, loaded.network, source)}
    if isinstance(loaded.splitter, CasedPieces):
        loaded.splitter.save(out / CLASSIFIER / VOCABULARY)
    small = Classifier(_in_8_bits(loaded.network), loaded.splitter)
    return entry, {**card, "cost_of_int8": _changed(loaded, small, sets)}


def _infiller(out: Path, source: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest entry and card of an infiller: a copy of its adapter."""
    adapter = load_adapter(source)
    _clear(out / INFILLER)
    save_adapter(adapter, out / INFILLER)
    base = f"{adapter.base}@{adapter.base_hash}"
    about = {"base": base, "rank": adapter.rank, "alpha": adapter.alpha, "styles": list(adapter.styles)}
    return {"kind": "lora", "folder": INFILLER}, {**about, **read_card(source)}


def _changed(before: Classifier, after: Classifier, sets: SentenceSets) -> dict[str, dict[str, float]]:
    """Fraction of words whose most likely label changes, and mean absolute change of the probabilities."""
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
    """Remove the files of an earlier model of the same name."""
    if folder.exists():
        shutil.rmtree(folder)


def _drop_unused_pieces(out: Path, parts: Mapping[str, Mapping[str, Any]]) -> None:
    used = {entry.get("pieces") for entry in parts.values()}
    for path in out.glob("pieces-*.model"):
        if path.name not in used:
            path.unlink()
