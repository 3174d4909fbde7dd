"""The learned prior of a draft as a table and as a picture, words across and actions down: the paper's Figure 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from redraft.errors import InputError, OutputError
from redraft.extras import extra
from redraft.numerics import Array
from redraft.predict.classifier import Classifier
from redraft.predict.learned import LABELLED, LearnedPrior
from redraft.sentence import FREE, Action, Sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

END = "</s>"
Map = tuple[Sequence[str], Array]  # the words of a draft and its table


@dataclass(frozen=True)
class Explanation:
    """Where and how the classifier would revise a draft.

    ``probabilities`` [actions, words + 1] are those of the learned prior. The last column is the end of the sentence;
    an insertion is before the word of its column.
    """

    words: tuple[str, ...]
    actions: tuple[Action, ...]
    probabilities: Array

    def to_dict(self) -> dict[str, object]:
        """The explanation as a JSON object."""
        rows = zip(self.actions, self.probabilities.tolist(), strict=True)
        return {"words": list(self.words), "probabilities": {action.value: row for action, row in rows}}

    def __str__(self) -> str:
        """A line for each word, a column for each action."""
        width = max(map(len, (*self.words, END)))
        lines = [" ".join([" " * width, *(f"{action.value:>7}" for action in self.actions)])]
        for word, column in zip((*self.words, END), self.probabilities.T, strict=True):
            lines.append(" ".join([f"{word:<{width}}", *(f"{value:7.2f}" for value in column)]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(word)}</th>" for word in (*self.words, END))
        rows = [
            f"<tr><th>{action.value}</th>{''.join(map(_cell, row))}</tr>"
            for action, row in zip(self.actions, self.probabilities.tolist(), strict=True)
        ]
        return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


def _cell(value: float) -> str:
    return f'<td style="background: rgba(8, 48, 107, {value:.2f})" title="{value:.3f}">{value:.2f}</td>'


def explain(classifier: Classifier, words: tuple[str, ...], keywords: Sequence[str] = ()) -> Explanation:
    """The learned prior of a draft in which the ``keywords`` may not be touched."""
    if not words:
        raise InputError("the draft is empty; give some words")
    if unknown := [word for word in keywords if word not in words]:
        raise InputError(f"the keyword {unknown[0]!r} is not a word of the draft")
    return Explanation(words, LABELLED, prior_table(classifier, words, frozenset(keywords)))


def prior_table(classifier: Classifier, words: tuple[str, ...], keywords: frozenset[str]) -> Array:
    """Probabilities [actions, words + 1] of the learned prior: zero for what may not be done."""
    locks = tuple(i if word in keywords else FREE for i, word in enumerate(words))
    sentence = Sentence(words, locks, (True,) * (len(words) + 1))
    legal = np.ones((len(Action), len(words) + 1), dtype=np.bool_)
    legal[:, -1] = [action is Action.INSERT for action in Action]
    for row, action in enumerate(Action):
        if action is not Action.INSERT:
            legal[row, :-1] &= (np.array(locks) == FREE) & (action in LABELLED)
    table: Array = np.exp(LearnedPrior(classifier).log_tables([sentence], [legal])[0])
    return table[: len(LABELLED)]


def draw(maps: Sequence[Map], out: Path) -> None:
    """Heat maps under each other, as a PNG."""
    with extra("eval"):
        from matplotlib.figure import Figure

    widest = max(table.shape[1] for _, table in maps)
    figure = Figure(figsize=(1.5 + 0.6 * widest, 2.4 * len(maps)), layout="constrained")
    plots = figure.subplots(len(maps), squeeze=False)[:, 0]
    for axes, (words, table) in zip(plots, maps, strict=True):
        image = _draw_one(axes, words, table)
    figure.colorbar(image, ax=list(plots))
    try:
        figure.savefig(out, dpi=150, format="png")
    except OSError as error:
        raise OutputError(f"cannot write {out}: {error.strerror or error}") from error


def _draw_one(axes: "Axes", words: Sequence[str], table: Array) -> "AxesImage":
    image = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(table.shape[1]), [*words, END], rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(table.shape[0]), [action.value for action in LABELLED])
    return image
