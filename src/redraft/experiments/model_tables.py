"""Tables 5 and 7: quality of the language models and of the classifier."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.evaluation import testsets
from redraft.evaluation.lstm_nll import DIRECTIONS, MAX_WORDS, Direction, known_words, word_nll
from redraft.evaluation.metric import Bootstrap, Metric, share
from redraft.evaluation.xlnet_nll import piece_nll, sum_by_words
from redraft.experiments import inputs
from redraft.experiments import paper_values as paper
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.experiment import (
    Experiment,
    ExperimentKind,
    OutputRequest,
    cell_of,
    judge_name,
    judge_notes,
)
from redraft.experiments.judge_scores import JudgeTexts
from redraft.experiments.measurements import Measurements, WrittenOutputs
from redraft.experiments.pictures import dots
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.systems import UNAVAILABLE
from redraft.models.base import Words
from redraft.models.lstm.files import load_network
from redraft.models.xlnet.network import ReadingOrder
from redraft.models.xlnet.pack import load_part, part_for
from redraft.predict.classifier import CLASSIFIER
from redraft.synthesis.recipes import MAX_WORDS as LONGEST_SOURCE
from redraft.training.piece_data import encode_pieces
from redraft.training.word_data import encode_words

_Nlls = tuple[Metric, Metric, Metric | None]  # per token, per word, per word in the vocabulary of the LSTM
_PER_INPUT = 5  # sentences per input of --num: scoring is quick, and more sentences narrow the interval
_COLUMNS = ("forward", "backward")
_ALT = "Dot plot: our values filled, with 95 % intervals; the paper's hollow."


@lru_cache(maxsize=1)
def _sentences(config: ReproduceConfig) -> list[Words]:
    found = testsets.read_sentences(inputs.source(config.data, inputs.VALIDATION))
    order = np.random.default_rng(config.seed).permutation(len(found))[: _PER_INPUT * config.num]
    return [found[i] for i in order]


def _judged(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> JudgeTexts:
    return JudgeTexts(scored=[text.detokenise(words) for words in _sentences(written.config)])


def _language_models(experiment: Experiment, measurements: Measurements) -> Result:
    sentences = _sentences(measurements.config)
    lstm = [_lstm(measurements, direction, sentences) for direction in DIRECTIONS]
    xlnet = [_xlnet(measurements, ReadingOrder(direction), sentences) for direction in DIRECTIONS]
    judge = (*_by_judge(measurements, sentences), None)
    judge_row = f"GPT-2 (small); here {judge_name(measurements)}"
    absent = f"{UNAVAILABLE}: not in this pack"

    def grid(which: int, metric: str, title: str, published: paper.PaperValues) -> Grid:
        small, large = ([found and found[which] for found in models] for models in (lstm, xlnet))
        rows = (
            _row("LSTM-based", "LSTM-based", small, published, "" if any(lstm) else absent),
            _row("XLNet-based", "XLNet-based", large, published, "" if any(xlnet) else absent),
            _row(judge_row, "GPT-2 (small)", [judge[which], None], published, ""),
        )
        return Grid(metric, title, "nats", "lower", _COLUMNS, rows)

    grids = (
        grid(0, "nll_token", "NLL per token", paper.TABLE5),
        grid(1, "nll_word", "NLL per word", {}),
        grid(2, "nll_known", "NLL per word in the vocabulary of the LSTM", {}),
    )
    notes = (
        f"{len(sentences)} human sentences of {inputs.VALIDATION.as_posix()}.",
        "Mean over all tokens; the NLL of the other tables is a mean over sentences. "
        f"The LSTM and XLNet read the first {MAX_WORDS} words of a sentence.",
        "Tokens differ: words for the LSTM, sub-word pieces for the others. Sentence ends count. A word outside the "
        "LSTM's vocabulary counts as one unknown word, which favours it; the last table leaves such words out for all.",
        *judge_notes(measurements)[: measurements.scores is None],
    )
    return Result(experiment.name, experiment.title, grids, notes=notes, alt=_ALT)


def _row(title: str, key: str, found: Sequence[Metric | None], published: paper.PaperValues, note: str) -> TableRow:
    stated = published.get(key, (None, None))
    cells = tuple(_cell(metric, value) for metric, value in zip(found, stated, strict=True))
    return TableRow(title, "", cells, note)


def _cell(metric: Metric | None, published: float | None) -> TableCell:
    bootstrap = Bootstrap()
    figure = None if metric is None else bootstrap.figure(metric, bootstrap.counts(len(metric)))
    return cell_of(figure, published)


def _lstm(measurements: Measurements, direction: Direction, sentences: Sequence[Words]) -> _Nlls | None:
    if direction not in measurements.pack.parts:
        return None
    network, vocabulary = load_network(measurements.pack, direction)
    found = word_nll(network, encode_words(vocabulary, map(text.detokenise, sentences)), direction)
    return _nlls(
        f"{_name(measurements)}/{direction}", found, [len(one) for one in found], known_words(vocabulary, sentences)
    )


def _xlnet(measurements: Measurements, order: ReadingOrder, sentences: Sequence[Words]) -> _Nlls | None:
    part = part_for(measurements.pack, order)
    if part is None:
        return None
    network, splitter = load_part(measurements.pack, part)
    encoded, _ = encode_pieces(splitter, map(text.detokenise, sentences))
    by_piece = piece_nll(network, splitter, encoded, order)
    by_word = sum_by_words(splitter, sentences, by_piece)
    known = None
    if "forward" in measurements.pack.parts:
        known = known_words(load_network(measurements.pack, "forward")[1], sentences)
    return _nlls(f"{_name(measurements)}/{part}/{order.value}", by_word, [len(nll) for nll in by_piece], known)


def _name(measurements: Measurements) -> str:
    return f"{measurements.pack.name}@{measurements.pack.fingerprint}"


def _nlls(
    model: str,
    by_word: Sequence[NDArray[np.float64]],
    num_tokens: Sequence[int],
    known: Sequence[NDArray[np.bool_]] | None,
) -> _Nlls:
    """The NLL metrics of a model; ``by_word`` has the NLL of each word and of the end of each sentence."""
    losses = [float(nll.sum()) for nll in by_word]

    def mean(name: str, losses: Sequence[float], counts: Iterable[int]) -> Metric:
        return share(name, "nats", losses, [float(count) for count in counts], model=model)

    of_known = None
    if known is not None:
        kept = [float(nll[mask].sum()) for nll, mask in zip(by_word, known, strict=True)]
        of_known = mean("nll_known", kept, (int(mask.sum()) for mask in known))
    return (
        mean("nll_token", losses, num_tokens),
        mean("nll_word", losses, map(len, by_word)),
        of_known,
    )


def _by_judge(measurements: Measurements, sentences: Sequence[Words]) -> tuple[Metric | None, Metric | None]:
    if measurements.scores is None:
        return None, None
    judged = measurements.scores.judged
    scores = judged.scores([text.detokenise(words) for words in sentences])
    losses = [score.nll for score in scores]
    tokens = [float(score.num_tokens) for score in scores]
    words = [len(one) + 1.0 for one in sentences]
    return (
        share("nll_token", "nats", losses, tokens, **judged.settings),
        share("nll_word", "nats", losses, words, **judged.settings, tok="redraft"),
    )


_SETS = {"masked-lm": "Masked LM validation set", "random": "Random validation set", "whole": "Whole validation set"}
_SCORES = {"precision": "P", "recall": "R", "f1": "F1"}
_LABELS = {
    "Copy": "copy",
    "Replacement": "replace",
    "Insertion": "insert",
    "Deletion": "delete",
    "Macro-average": "macro-average",
}


def _classifier(experiment: Experiment, measurements: Measurements) -> Result:
    scores = _card_scores(measurements)
    grids = tuple(_labels(scores.get(name, {}), place, title) for place, (name, title) in enumerate(_SETS.items()))
    notes = [
        "Our values are from the pack's card, measured on the validation part of its own synthetic data.",
        *_about(measurements),
    ]
    if not scores:
        notes = [f"{UNAVAILABLE}: the card of pack {measurements.pack.name} has no scores of a classifier."]
    return Result(experiment.name, experiment.title, grids, notes=tuple(notes), alt=_ALT)


def _about(measurements: Measurements) -> Iterator[str]:
    """Facts about that data, as far as the card states them."""
    data = measurements.pack.card.get(CLASSIFIER, {}).get("data", {})
    if words := data.get("max_words"):
        longest = words["valid"] if isinstance(words, dict) else words
        yield f"Its source sentences have at most {longest} words; the paper's have up to {LONGEST_SOURCE}."
    if model := data.get("masked_lm"):
        yield f"Wrong words of the masked-LM method come from: {model['kind']}."


def _labels(scores: Mapping[str, Any], place: int, title: str) -> Grid:
    """One validation set, at index ``place`` of the paper's table."""
    rows = []
    for label, name in _LABELS.items():
        stated = paper.TABLE7[label][place * len(_SCORES) :]
        own = [scores.get(name, {}).get(score) for score in _SCORES]
        cells = (TableCell(value, paper=published) for value, published in zip(own, stated, strict=False))
        rows.append(TableRow(label, "", tuple(cells), "" if scores else UNAVAILABLE))
    return Grid("classifier", title, "", "higher", tuple(_SCORES.values()), tuple(rows))


def _card_scores(measurements: Measurements) -> Mapping[str, Any]:
    """The scores of the classifier in the pack's card, as written by redraft train classifier."""
    card = measurements.pack.card.get(CLASSIFIER) or {}
    scores: Mapping[str, Any] = card.get("scores") or {}
    return scores


EXPERIMENTS = (
    Experiment(
        ExperimentKind.TABLE,
        5,
        "the language models",
        _language_models,
        dots,
        judged=_judged,
        data_files=(inputs.VALIDATION,),
    ),
    Experiment(ExperimentKind.TABLE, 7, "the classifier", _classifier, dots),
)
