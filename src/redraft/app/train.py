"""redraft train."""

import json
from pathlib import Path
from typing import Any, cast

import click

from redraft.app.train_ablations import train_ablations
from redraft.app.train_classifier import train_classifier
from redraft.app.train_infiller import train_infiller
from redraft.app.train_parts import add, parts_options, print_location
from redraft.app.train_start_states import train_start_states
from redraft.app.train_xlnet import xlnet_lm
from redraft.app.training_options import Count, threads_option
from redraft.errors import InputError

_CORPUS = click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of .txt or .txt.xz files, one sentence per line.",
)
_OUT = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Output folder for checkpoints and results."
)
_TOKENS = click.option("--tokens", type=Count(), default="60e6", show_default=True, help="Number of training tokens.")
_WORDS = click.option(
    "--words", type=click.IntRange(1, 65_533), default=50_000, show_default=True, help="Size of the vocabulary."
)


@click.group()
def train() -> None:
    """Train models. Run the same command again to resume an interrupted run."""


train.add_command(train_classifier)
train.add_command(train_ablations)
train.add_command(xlnet_lm)
train.add_command(train_infiller)
train.add_command(train_start_states)
train.add_command(add)


@train.command()
@click.option("--direction", type=click.Choice(["forward", "backward"]), required=True)
@_CORPUS
@_OUT
@_TOKENS
@_WORDS
@threads_option
def lm(direction: str, corpus: Path, out: Path, tokens: int, words: int) -> None:
    """Train an LSTM language model that reads forward or backward."""
    from redraft.evaluation.lstm_nll import Direction
    from redraft.training.lm import LmTraining, train_lm
    from redraft.training.processes import join

    best = train_lm(LmTraining(corpus, cast("Direction", direction), tokens, words), out)
    if join().is_first:
        click.echo(f"{direction}: {best:.4f} NLL per word on held-out sentences; weights in {out}")


@train.command()
@_CORPUS
@_OUT
@_TOKENS
@_WORDS
@threads_option
@click.option("--name", default="english", show_default=True, help="Name of the pack.")
@click.option("--test", type=click.Path(path_type=Path), help="File of other sentences to report the NLL of.")
@click.option(
    "--about", type=click.Path(path_type=Path), help="JSON file with entries for the card: sources, licences."
)
@parts_options
def pack(
    corpus: Path,
    out: Path,
    tokens: int,
    words: int,
    name: str,
    test: Path | None,
    about: Path | None,
    xlnets: tuple[str, ...],
    classifier: Path | None,
    infiller: Path | None,
    start_states: Path | None,
) -> None:
    """Train the LSTM models of a pack and write the pack to OUT/NAME."""
    from redraft.training.pack import PackTraining, train_pack
    from redraft.training.parts import Additions

    added = Additions(xlnets, classifier, infiller, start_states)
    additions = added if added.any else None
    config = PackTraining(corpus, name, tokens, words, test=test, about=_read(about), additions=additions)
    print_location(train_pack(config, out))


def _read(about: Path | None) -> dict[str, Any]:
    if about is None:
        return {}
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
        return dict(content)
    except OSError as error:
        raise InputError(f"cannot read {about}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise InputError(f"{about} is not a JSON object ({error})") from error
