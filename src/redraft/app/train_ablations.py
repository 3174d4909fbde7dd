"""redraft train ablations."""

from pathlib import Path

import click

from redraft.app.training_options import Count, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="ablations")
@click.option("--pack", default="english", show_default=True, metavar="NAME|DIR", help="Pack with the full classifier.")
@click.option("--corpus", type=_PATH, required=True, help="Training text of the classifier of the pack.")
@click.option("--out", type=_PATH, required=True, help="Output folder for data, checkpoints and packs.")
@click.option("--only", multiple=True, metavar="NAME", help="third, third-masked or third-random. Repeatable.")
@click.option("--num", type=Count(), help="Training sentences of each. Default: a third of those of the pack.")
@click.option(
    "--batch", "batch_pieces", type=click.IntRange(64), default=8192, show_default=True, help="Pieces per batch."
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that make data.")
@threads_option
def train_ablations(
    pack: str, corpus: Path, out: Path, only: tuple[str, ...], num: int | None, batch_pieces: int, workers: int
) -> None:
    """Train the classifiers of the paper's ablations of the synthetic data, and write their packs to OUT/packs.

    Each is trained as the classifier of the pack was, on a third of the sentences: with both methods of corruption
    (third), without the random one (third-masked), without the masked LM (third-random). A pack PACK-NAME holds only
    the classifier and takes the LSTM models from PACK. Run the same command again to resume.
    """
    from redraft.models.pack import open_pack
    from redraft.training import ablations

    def say(what: str) -> None:
        click.echo(what, err=True)

    packs = ablations.train_ablations(
        open_pack(pack), corpus, out, only, num=num, batch_pieces=batch_pieces, workers=workers, say=say
    )
    for made in packs:
        found = made.card["classifier"]["scores"]["whole"]["macro-average"]["f1"]
        click.echo(f"{made.folder}: macro-F1 {found:.3f}, {made.num_bytes / 1e6:.1f} MB")
