"""redraft train start-states."""

from pathlib import Path

import click

from redraft.app.training_options import Count, Positive, seed_option, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="start-states")
@click.option("--pack", default="english", show_default=True, metavar="NAME|DIR", help="Pack with the LSTM models.")
@click.option("--corpus", type=_PATH, required=True, help="Folder of .txt or .txt.xz files, one sentence per line.")
@click.option("--out", type=_PATH, required=True, help="Output folder for checkpoints and start states.")
@click.option("--tokens", type=Count(), default="1e6", show_default=True, help="Predicted words of each direction.")
@click.option("--learning-rate", type=Positive(), default=0.02, show_default=True, help="Peak learning rate.")
@seed_option
@threads_option
def train_start_states(pack: str, corpus: Path, out: Path, tokens: int, learning_rate: float, seed: int) -> None:
    """Train the states from which the LSTM models of a pack start inside a sentence, for sep-bf and asyn-bf.

    The LSTM models stay as they are. Add the result to a pack with redraft train add.
    """
    from redraft.models.pack import open_pack
    from redraft.training import start_states

    config = start_states.StartTraining(tokens, learning_rate, seed=seed)
    scores = start_states.train_start_states(open_pack(pack), corpus, out, config)
    for direction, found in scores.items():
        click.echo(
            f"{direction}: {found['after']:.4f} NLL per word on held-out sentences from a word inside them, "
            f"{found['before']:.4f} from the ordinary start state"
        )
    click.echo(f"the start states are in {out}; add them with redraft train add --start-states {out}")
