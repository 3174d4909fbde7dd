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
    """A callback that parses a comma-separated list of some of the choices."""

    def parse(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(value.replace(" ", "").split(",")))
        if unknown := [name for name in names if name not in choices]:
            raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(choices)}")
        return names

    return parse


@click.command()
@click.option("--corpus", type=click.Path(path_type=Path), required=True, help="Folder of .txt or .txt.xz files.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Output folder for the shards and their card."
)
@click.option("--num", type=click.IntRange(1), required=True, help="Number of training sentences.")
@click.option(
    "--num-valid", type=click.IntRange(0), default=24_000, show_default=True, help="Number of validation sentences."
)
@seed_option
@click.option(
    "--method",
    callback=_several(_METHODS),
    default="random,masked-lm",
    show_default=True,
    help=f"Sources of wrong words: {', '.join(_METHODS)}.",
)
@click.option(
    "--instances",
    callback=_several(_INSTANCES),
    default="paper",
    show_default=True,
    help=f"Kinds of corruption: {', '.join(_INSTANCES)}.",
)
@click.option("--max-words", type=int, default=52, show_default=True, help="Maximum length of a source sentence.")
@click.option("--pack", help="Pack whose language models propose words for the masked-lm method.")
@click.option("--xlnet", metavar="DIR|NAME", help="XLNet to use for the masked-lm method instead of a pack.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Number of processes.")
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
    """Corrupt sentences of a corpus and label the edits that repair them.

    Run the same command again to resume an interrupted run. The result does not depend on the number of workers.
    """
    from redraft.synthesis.dataset import SynthesisConfig, synthesise
    from redraft.synthesis.recipes import RECIPES
    from redraft.synthesis.words import Method

    recipes = tuple(recipe for name in instances for recipe in RECIPES[name])
    methods = tuple(Method(name) for name in method)
    config = SynthesisConfig(corpus, seed, num, num_valid, methods, recipes, max_words)
    load = find_masked_lm(pack, xlnet) if Method.MASKED_LM in methods else None
    with _bar(config.total) as advance:
        card = synthesise(config, out, load_masked_lm=load, workers=workers, progress=advance)
    counts = card["counts"]
    click.echo(
        f"{out}: {counts['train']['sentences']:,} training and {counts['valid']['sentences']:,} validation sentences"
    )


def find_masked_lm(pack: str | None, xlnet: str | None = None) -> "LoadMaskedLm":
    """The loader of the masked LM that proposes wrong words: a masked XLNet if the pack has one, else the LSTM pair.

    The card of the data names the model.
    """
    from redraft.models.pack import DEFAULT, open_pack
    from redraft.models.xlnet.network import ReadingOrder
    from redraft.models.xlnet.pack import part_for
    from redraft.synthesis.masked_lstm import PackMaskedLm
    from redraft.synthesis.masked_xlnet import FolderMaskedXlnet, PackMaskedXlnet

    if xlnet is not None:
        if pack is not None:
            raise click.UsageError("give --pack or --xlnet, not both")
        return FolderMaskedXlnet(xlnet)
    name = pack or DEFAULT
    return PackMaskedLm(name) if part_for(open_pack(name), ReadingOrder.MASKED) is None else PackMaskedXlnet(name)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr that counts sentences."""
    from rich import progress
    from rich.console import Console

    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress(progress.TextColumn("sentences"), *columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("sentences", total=total)
        yield lambda num: bar.advance(task, num)
