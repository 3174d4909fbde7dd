"""redraft explain: the learned prior of a draft as a heat map, words across and actions down."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.errors import InputError, OutputError

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.numerics import Array
    from redraft.predict.classifier import Classifier

_END = "</s>"
_LIGHT, _DARK = (255, 255, 255), (8, 48, 107)


@click.command()
@click.argument("draft")
@click.option("--classifier", "folder", type=click.Path(path_type=Path), help="Folder of another classifier.")
@click.option("--keyword", "keywords", multiple=True, help="A word of the draft that may not be touched; repeat it.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the heat map to this PNG file as well.")
def explain(draft: str, folder: Path | None, keywords: tuple[str, ...], out: Path | None) -> None:
    """Show where and how the classifier would revise DRAFT.

    Each column is a word, the last one the end; "insert" means before that word. What is no action is copied.
    """
    from rich.console import Console

    from redraft import text

    if out is not None and out.suffix.lower() != ".png":
        raise InputError(f"{out} must end in .png")
    words = tuple(text.tokenise(draft))
    if not words:
        raise InputError("the draft is empty; give some words")
    if unknown := [word for word in keywords if word not in words]:
        raise InputError(f"the keyword {unknown[0]!r} is not a word of the draft")
    table = prior_table(find_classifier(folder), words, frozenset(keywords))
    Console().print(_heat_map(words, table))
    if out is not None:
        _draw(words, table, out)
        click.echo(f"wrote {out}")


def find_classifier(folder: Path | None) -> "Classifier":
    """The classifier that is explained. The one place that decides which one that is when none is named."""
    from redraft.models.pack import DEFAULT, open_pack
    from redraft.predict.classifier import load_classifier, pack_classifier

    return load_classifier(folder) if folder is not None else pack_classifier(open_pack(DEFAULT))


def prior_table(classifier: "Classifier", words: tuple[str, ...], keywords: frozenset[str]) -> "Array":
    """Probabilities [actions, words + 1] as the learned prior has them: zero for what may not be done."""
    import numpy as np

    from redraft.predict.learned import LABELLED, LearnedPrior
    from redraft.sentence import FREE, Action, Sentence

    locks = tuple(i if word in keywords else FREE for i, word in enumerate(words))
    sentence = Sentence(words, locks, (True,) * (len(words) + 1))
    legal = np.ones((len(Action), len(words) + 1), dtype=np.bool_)
    legal[:, -1] = [action is Action.INSERT for action in Action]
    for row, action in enumerate(Action):
        if action is not Action.INSERT:
            legal[row, :-1] &= (np.array(locks) == FREE) & (action in LABELLED)
    table: Array = np.exp(LearnedPrior(classifier).log_tables([sentence], [legal])[0])
    return table[: len(LABELLED)]


def _heat_map(words: Sequence[str], table: "Array") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from redraft.predict.learned import LABELLED

    shown = Table(show_edge=False, pad_edge=False, box=None)
    shown.add_column("")
    for word in (*words, _END):
        shown.add_column(Text(word), justify="center")
    for action, row in zip(LABELLED, table, strict=True):
        shown.add_row(action.value, *(Text(f" {value:.2f} ", style=_style(float(value))) for value in row))
    return shown


def _style(value: float) -> str:
    red, green, blue = (round(light + value * (dark - light)) for light, dark in zip(_LIGHT, _DARK, strict=True))
    return f"{'white' if value > 0.5 else 'black'} on rgb({red},{green},{blue})"


def _draw(words: Sequence[str], table: "Array", out: Path) -> None:
    from matplotlib.figure import Figure

    from redraft.predict.learned import LABELLED

    figure = Figure(figsize=(1.5 + 0.6 * table.shape[1], 2.4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(table.shape[1]), [*words, _END], rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(table.shape[0]), [action.value for action in LABELLED])
    figure.colorbar(image, ax=axes)
    try:
        figure.savefig(out, dpi=150, format="png")
    except OSError as error:
        raise OutputError(f"cannot write {out}: {error.strerror or error}") from error
