"""redraft train add: add models to a pack."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.app.training_options import threads_option
from redraft.errors import InputError

if TYPE_CHECKING:
    from redraft.models.pack import Pack

_PATH = click.Path(path_type=Path)


def parts_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options for models to add to a pack."""
    options: list[Callable[..., Any]] = [
        click.option(
            "--xlnet",
            "xlnets",
            multiple=True,
            metavar="[ORDER=]DIR|NAME",
            help="XLNet language model; forward=DIR uses it for one order only. Repeatable.",
        ),
        click.option("--classifier", type=_PATH, help="Folder of a classifier: an XLNet or any other encoder."),
        click.option("--infiller", type=_PATH, help="Folder of an adapter from redraft train infiller."),
        click.option("--start-states", type=_PATH, help="Folder from redraft train start-states."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(name="add")
@click.argument("pack", metavar="NAME|DIR")
@parts_options
@click.option(
    "--corpus", type=_PATH, required=True, help="Training text of the models; they are measured on its held-out part."
)
@click.option("--test", type=_PATH, help="File of other sentences to report on.")
@click.option("--out", type=_PATH, required=True, help="Folder of the new pack.")
@click.option(
    "--overlay", is_flag=True, help="Store only the added models; the new pack takes the others from NAME|DIR."
)
@threads_option
def add(
    pack: str,
    xlnets: tuple[str, ...],
    classifier: Path | None,
    infiller: Path | None,
    start_states: Path | None,
    corpus: Path,
    test: Path | None,
    out: Path,
    overlay: bool,
) -> None:
    """Add trained models to a copy of a pack, and measure them: the cost of 8 bits, the gain from start states."""
    from redraft.models.pack import open_pack
    from redraft.training.pack import held_out_sets
    from redraft.training.parts import Additions, add_over, add_parts

    base = open_pack(pack)
    if out.resolve() == base.folder.resolve():
        raise InputError(f"{out} is the pack itself, which may be in use; choose a new folder")
    added = Additions(xlnets, classifier, infiller, start_states)
    make = add_over if overlay else add_parts
    print_location(make(base, out, added, held_out_sets(corpus, test)))


def print_location(pack: "Pack") -> None:
    """Print where a pack is and how to use it."""
    click.echo(f"{pack.folder}: {pack.num_bytes / 1e6:.1f} MB; use it with --pack {pack.folder}")
