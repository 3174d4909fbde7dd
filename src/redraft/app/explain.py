"""redraft explain: the learned prior of a draft as a heat map, one row per word and one column per action."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.app.sections import SectionCommand
from redraft.errors import InputError
from redraft.extras import require

if TYPE_CHECKING:
    from rich.table import Table

    from redraft.numerics import Array
    from redraft.predict.classifier import Classifier

_LIGHT, _DARK = (255, 255, 255), (8, 48, 107)


@click.command(
    cls=SectionCommand,
    examples=(
        ('redraft explain "The dog ran in park ."', "Show what the classifier would revise"),
        ('redraft explain "The dog ran in park ." --keyword dog --out map.png', "Lock a word and write a picture"),
    ),
)
@click.argument("draft")
@click.option(
    "--classifier",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of a classifier to use instead of the pack's.",
)
@click.option("--pack", metavar="NAME|DIR", help="The pack with the classifier, or with the LSTM models that it reads.")
@click.option(
    "--keyword", "keywords", multiple=True, metavar="WORD", help="A word of the draft that must stay. Repeatable."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Also write the heat map to this PNG file."
)
def explain(draft: str, folder: Path | None, pack: str | None, keywords: tuple[str, ...], out: Path | None) -> None:
    """Show where and how the classifier would revise DRAFT.

    Each line is a word, the last line is the end of the sentence. "insert" means before that word. The rest of the
    probability is to copy the word.
    """
    from rich.console import Console

    from redraft import text
    from redraft.predict.heat_map import draw, prior_table

    if out is not None:
        if out.suffix.lower() != ".png":
            raise InputError(f"{out} must end in .png")
        require("eval", "matplotlib")
    words = tuple(text.tokenise(draft))
    if not words:
        raise InputError("the draft is empty; give some words")
    if unknown := [word for word in keywords if word not in words]:
        raise InputError(f"the keyword {unknown[0]!r} is not a word of the draft")
    table = prior_table(find_classifier(folder, pack), words, frozenset(keywords))
    Console().print(_heat_map(words, table))
    if out is not None:
        draw([(words, table)], out)
        click.echo(f"wrote {out}")


def find_classifier(folder: Path | None, pack: str | None) -> "Classifier":
    """Load the classifier of a folder, which may need the LSTM models of a pack, or else the classifier of the pack."""
    from redraft.models.pack import DEFAULT, open_pack
    from redraft.predict.classifier import load_classifier, pack_classifier

    opened = open_pack(pack or DEFAULT)
    return pack_classifier(opened) if folder is None else load_classifier(folder, pack=opened)


def _heat_map(words: Sequence[str], table: "Array") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from redraft.predict.heat_map import END
    from redraft.predict.learned import LABELLED

    shown = Table(show_edge=False, pad_edge=False, box=None)
    shown.add_column("", overflow="fold")
    for action in LABELLED:
        shown.add_column(action.value, justify="center", no_wrap=True)
    for word, column in zip((*words, END), table.T, strict=True):
        shown.add_row(Text(word), *(Text(f" {value:.2f} ", style=_style(float(value))) for value in column))
    return shown


def _style(value: float) -> str:
    red, green, blue = (round(light + value * (dark - light)) for light, dark in zip(_LIGHT, _DARK, strict=True))
    return f"{'white' if value > 0.5 else 'black'} on rgb({red},{green},{blue})"
