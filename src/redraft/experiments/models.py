"""Tables 5 and 7: how good the models themselves are."""

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
from redraft.experiments import paper, sets
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import Experiment, OutputRequest, judge_name, judge_notes, nothing
from redraft.experiments.pictures import dots
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.run import ReproduceConfig
from redraft.experiments.scores import JudgeTexts
from redraft.experiments.systems import NOT_YET
from redraft.models.base import Words
from redraft.models.lstm_files import load_network
from redraft.models.xlnet import Order
from redraft.models.xlnet_pack import load_part, part_for
from redraft.predict.classifier import CLASSIFIER
from redraft.synthesis.recipes import MAX_WORDS as LONGEST_SOURCE
from redraft.training.piece_data import encode_pieces
from redraft.training.word_data import encode_words

_Nlls = tuple[Metric, Metric, Metric | None]  # per token, per word, per word that the LSTM knows
_PER_INPUT = 5  # sentences for each input of --num: to score a text is quick, and more of them give a closer figure
_COLUMNS = ("forward", "backward")
_ALT = "Dot plot: ours filled with 95 % intervals, the paper's hollow."


def _no_looks(run: ReproduceConfig) -> list[OutputRequest]:
    return []


@lru_cache(maxsize=1)
def _sentences(run: ReproduceConfig) -> list[Words]:
    found = testsets.read_sentences(sets.source(run.data, sets.VALIDATION))
    order = np.random.default_rng(run.seed).permutation(len(found))[: _PER_INPUT * run.num]
    return [found[i] for i in order]


def _judged(bench: Bench, looks: Iterable[OutputRequest]) -> JudgeTexts:
    return JudgeTexts(scored=[text.detokenise(words) for words in _sentences(bench.run)])


def _table5(bench: Bench) -> Result:
    sentences = _sentences(bench.run)
    lstm = [_lstm(bench, direction, sentences) for direction in DIRECTIONS]
    xlnet = [_xlnet(bench, Order(direction), sentences) for direction in DIRECTIONS]
    judge = (*_by_judge(bench, sentences), None)
    judge_row = f"GPT-2 (small); here {judge_name(bench)}"
    absent = f"{NOT_YET}: not in this pack"

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
        grid(2, "nll_known", "NLL per word that the LSTM knows", {}),
    )
    notes = (
        f"{len(sentences)} sentences of {sets.VALIDATION.as_posix()}, which is what human text costs each model.",
        "The sum over all sentences over that of their tokens; the NLL of the other tables is a mean of sentences. "
        f"The LSTM and XLNet read the first {MAX_WORDS} words of a sentence.",
        "Tokens differ: words for the LSTM, pieces for the others. Sentence ends count. A word that the LSTM does not "
        "know counts as one unknown word, which flatters it; the last table leaves such words out for all.",
        *judge_notes(bench)[: bench.scores is None],
    )
    return Result("table5", "Table 5: the language models", grids, notes=notes, alt=_ALT)


def _row(title: str, key: str, found: Sequence[Metric | None], published: paper.PaperValues, note: str) -> TableRow:
    stated = published.get(key, (None, None))
    cells = tuple(_cell(metric, value) for metric, value in zip(found, stated, strict=True))
    return TableRow(title, "", cells, note)


def _cell(metric: Metric | None, published: float | None) -> TableCell:
    if metric is None:
        return TableCell(paper=published)
    bootstrap = Bootstrap()
    figure = bootstrap.figure(metric, bootstrap.counts(len(metric)))
    return TableCell(figure.value, figure.low, figure.high, published, figure.signature)


def _lstm(bench: Bench, direction: Direction, sentences: Sequence[Words]) -> _Nlls | None:
    if direction not in bench.pack.parts:
        return None
    network, vocabulary = load_network(bench.pack, direction)
    found = word_nll(network, encode_words(vocabulary, map(text.detokenise, sentences)), direction)
    return _nlls(f"{_name(bench)}/{direction}", found, [len(one) for one in found], known_words(vocabulary, sentences))


def _xlnet(bench: Bench, order: Order, sentences: Sequence[Words]) -> _Nlls | None:
    part = part_for(bench.pack, order)
    if part is None:
        return None
    network, splitter = load_part(bench.pack, part)
    encoded, _ = encode_pieces(splitter, map(text.detokenise, sentences))
    by_piece = piece_nll(network, splitter, encoded, order)
    by_word = sum_by_words(splitter, sentences, by_piece)
    known = None
    if "forward" in bench.pack.parts:
        known = known_words(load_network(bench.pack, "forward")[1], sentences)
    return _nlls(f"{_name(bench)}/{part}/{order.value}", by_word, [len(nll) for nll in by_piece], known)


def _name(bench: Bench) -> str:
    return f"{bench.pack.name}@{bench.pack.fingerprint}"


def _nlls(
    model: str,
    by_word: Sequence[NDArray[np.float64]],
    num_tokens: Sequence[int],
    known: Sequence[NDArray[np.bool_]] | None,
) -> _Nlls:
    """``by_word`` are those of each sentence's words and its end."""
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


def _by_judge(bench: Bench, sentences: Sequence[Words]) -> tuple[Metric | None, Metric | None]:
    if bench.scores is None:
        return None, None
    judged = bench.scores.judged
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


def _table7(bench: Bench) -> Result:
    scores = _card_scores(bench)
    grids = tuple(_labels(scores.get(name, {}), place, title) for place, (name, title) in enumerate(_SETS.items()))
    notes = [
        "Ours are from the pack's card, measured on the validation part of its own synthetic data.",
        *_about(bench),
    ]
    if not scores:
        notes = [f"{NOT_YET}: the card of pack {bench.pack.name} has no scores of a classifier."]
    return Result("table7", "Table 7: the classifier", grids, notes=tuple(notes), alt=_ALT)


def _about(bench: Bench) -> Iterator[str]:
    """What that data is like, as far as the card tells."""
    data = bench.pack.card.get(CLASSIFIER, {}).get("data", {})
    if words := data.get("max_words"):
        longest = words["valid"] if isinstance(words, dict) else words
        yield f"It is made of sentences of at most {longest} words; the paper's have up to {LONGEST_SOURCE}."
    if model := data.get("masked_lm"):
        yield f"The masked-LM method takes its wrong words from: {model['kind']}."


def _labels(scores: Mapping[str, Any], place: int, title: str) -> Grid:
    """One validation set, the ``place``-th of the paper's table."""
    rows = []
    for label, name in _LABELS.items():
        stated = paper.TABLE7[label][place * len(_SCORES) :]
        own = [scores.get(name, {}).get(score) for score in _SCORES]
        cells = (TableCell(value, paper=published) for value, published in zip(own, stated, strict=False))
        rows.append(TableRow(label, "", tuple(cells), "" if scores else NOT_YET))
    return Grid("classifier", title, "", "higher", tuple(_SCORES.values()), tuple(rows))


def _card_scores(bench: Bench) -> Mapping[str, Any]:
    """The scores that redraft train classifier wrote, as the pack's card holds them under "classifier"."""
    card = bench.pack.card.get(CLASSIFIER) or {}
    scores: Mapping[str, Any] = card.get("scores") or {}
    return scores


EXPERIMENTS = (
    Experiment("table5", _no_looks, _table5, _judged, dots),
    Experiment("table7", _no_looks, _table7, nothing, dots),
)
