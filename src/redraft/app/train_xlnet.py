"""redraft train xlnet-lm."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.app.training_options import Count, Positive, seed_option, threads_option

if TYPE_CHECKING:
    from redraft.models.xlnet.network import ReadingOrder

_PATH = click.Path(path_type=Path)


@click.command(name="xlnet-lm")
@click.option(
    "--orders",
    default="forward,backward,masked",
    show_default=True,
    help="Reading orders to train; an order that is listed twice gets twice the sentences.",
)
@click.option("--init", default="scratch", show_default=True, metavar="NAME|DIR|scratch", help="Weights to start from.")
@click.option("--corpus", type=_PATH, required=True, help="Folder of .txt or .txt.xz files, one sentence per line.")
@click.option("--out", type=_PATH, required=True, help="Output folder for checkpoints and the model.")
@click.option("--tokens", type=Count(), default="30e6", show_default=True, help="Number of pieces to predict.")
@click.option("--pieces", type=_PATH, help="SentencePiece vocabulary; only from scratch. Default: train one.")
@click.option("--teacher", metavar="NAME|DIR", help="Pack whose LSTM models give soft targets (distillation).")
@click.option(
    "--layers", type=click.IntRange(1), default=4, show_default=True, help="Number of layers; only from scratch."
)
@click.option(
    "--inner", type=click.IntRange(1), default=768, show_default=True, help="Feed-forward size; only from scratch."
)
@click.option(
    "--streams",
    "num_streams",
    type=click.IntRange(1, 2),
    help="2 as in the XLNet paper, or 1, which is faster. Default: 1 from scratch, unchanged with --init.",
)
@click.option(
    "--precision",
    type=click.Choice(["float32", "bfloat16"]),
    help="Precision of matrix products. Default: the fastest.",
)
@click.option("--learning-rate", type=Positive(), help="Default: 1.2e-3 from scratch, 1e-4 with --init.")
@click.option(
    "--batch", "batch_pieces", type=click.IntRange(64), default=4096, show_default=True, help="Pieces per batch."
)
@seed_option
@threads_option
def xlnet_lm(
    orders: str,
    init: str,
    corpus: Path,
    out: Path,
    tokens: int,
    pieces: Path | None,
    teacher: str | None,
    layers: int,
    inner: int,
    num_streams: int | None,
    precision: str | None,
    learning_rate: float | None,
    batch_pieces: int,
    seed: int,
) -> None:
    """Train an XLNet that reads forward, backward and from both sides.

    Run the same command again to resume. `accelerate launch` runs it in several processes.
    """
    import torch

    from redraft.models.pack import open_pack
    from redraft.training.processes import join
    from redraft.training.xlnet import XlnetTraining, train_xlnet

    config = XlnetTraining(
        corpus,
        _orders(orders),
        tokens,
        init=init,
        pieces=pieces,
        shape={"n_layer": layers, "d_inner": inner},
        num_streams=num_streams,
        learning_rate=learning_rate,
        batch_pieces=batch_pieces,
        seed=seed,
        teacher=open_pack(teacher) if teacher else None,
        precision=getattr(torch, precision) if precision else None,
    )
    scores = train_xlnet(config, out)
    if not join().is_first:
        return
    for order, nll in scores.items():
        click.echo(f"{order}: {nll:.4f} NLL per {'piece' if order == 'masked' else 'word'} on held-out sentences")
    click.echo(f"the model is in {out}")


def _orders(names: str) -> "tuple[ReadingOrder, ...]":
    from redraft.errors import InputError
    from redraft.models.xlnet.network import ReadingOrder

    try:
        return tuple(ReadingOrder(name.strip()) for name in names.split(","))
    except ValueError as error:
        known = ", ".join(order.value for order in ReadingOrder)
        raise InputError(f"{error}; --orders takes a comma-separated list of {known}") from error
