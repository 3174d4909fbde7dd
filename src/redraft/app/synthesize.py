"""redraft synthesize: training data for the classifier."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.app.training_options import seed_option

if TYPE_CHECKING:
    from redraft.synthesis.dataset import LoadMaskedLm

_METHODS = ("random", "masked-lm")
_INSTANCES = ("paper", "heavy-insert", "mixed")


def _several(choices: tuple[str, ...]) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """Reads several of some names, with commas between them."""

    def parse(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(value.replace(" ", "").split(",")))
        if unknown := [name for name in names if name not in choices]:
            raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(choices)}")
        return names

    return parse


@click.command()
@click.option("--corpus", type=click.Path(path_type=Path), required=True, help="Folder of .txt or .txt.xz files.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the shards and the card.")
@click.option("--num", type=click.IntRange(1), required=True, help="Sentences to train on.")
@click.option(
    "--num-valid", type=click.IntRange(0), default=24_000, show_default=True, help="Sentences to validate on."
)
@seed_option
@click.option(
    "--method",
    callback=_several(_METHODS),
    default="random,masked-lm",
    show_default=True,
    help=f"Where wrong words come from: {', '.join(_METHODS)}.",
)
@click.option(
    "--instances",
    callback=_several(_INSTANCES),
    default="paper",
    show_default=True,
    help=f"Kinds of damage: {', '.join(_INSTANCES)}.",
)
@click.option("--max-words", type=int, default=52, show_default=True, help="Longest source sentence.")
@click.option("--pack", help="Pack with the language models of the masked-lm method.")
@click.option("--xlnet", metavar="DIR|NAME", help="An XLNet for the masked-lm method, instead of a pack.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
def synthesize(
    corpus: Path,
    out: Path,
    num: int,
    num_valid: int,
    seed: int,
    method: tuple[str, ...],
    instances: tuple[str, ...],
    max_words: int,
    pack: str | None,
    xlnet: str | None,
    workers: int,
) -> None:
    """Spoil sentences of a corpus and label what would mend them.

    A run that was ended continues where it stopped. The result does not depend on the number of workers.
    """
    from redraft.synthesis.dataset import SynthesisConfig, synthesise
    from redraft.synthesis.recipes import RECIPES
    from redraft.synthesis.words import Method

    recipes = tuple(recipe for name in instances for recipe in RECIPES[name])
    methods = tuple(Method(name) for name in method)
    settings = SynthesisConfig(corpus, seed, num, num_valid, methods, recipes, max_words)
    load = find_masked_lm(pack, xlnet) if Method.MASKED_LM in methods else None
    with _bar(settings.total) as advance:
        card = synthesise(settings, out, load_masked_lm=load, workers=workers, progress=advance)
    counts = card["counts"]
    click.echo(f"{counts['train']['sentences']:,} and {counts['valid']['sentences']:,} sentences are in {out}")


def find_masked_lm(pack: str | None, xlnet: str | None = None) -> "LoadMaskedLm":
    """How a worker loads the masked LM. The one place that decides which language model makes the wrong words.

    An XLNet that reads masked where there is one, else the LSTM pair. The data's card names it.
    """
    from redraft.models.pack import DEFAULT, open_pack
    from redraft.models.xlnet import Order
    from redraft.models.xlnet_pack import part_for
    from redraft.synthesis.masked_lstm import PackMaskedLm
    from redraft.synthesis.masked_xlnet import FolderMaskedXlnet, PackMaskedXlnet

    if xlnet is not None:
        if pack is not None:
            raise click.UsageError("give --pack or --xlnet, not both")
        return FolderMaskedXlnet(xlnet)
    name = pack or DEFAULT
    return PackMaskedLm(name) if part_for(open_pack(name), Order.MASKED) is None else PackMaskedXlnet(name)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal's error stream, in sentences."""
    from rich import progress
    from rich.console import Console

    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress(progress.TextColumn("sentences"), *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("sentences", total=total)
        yield lambda num: bar.advance(task, num)
