"""The learned prior of a draft as a table and as a picture, words across and actions down: the paper's Figure 4."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from redraft.errors import OutputError
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


def prior_table(classifier: Classifier, words: tuple[str, ...], keywords: frozenset[str]) -> Array:
    """Probabilities [actions, words + 1] as the learned prior has them: zero for what may not be done."""
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
