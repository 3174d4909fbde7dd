"""redraft train xlnet-lm."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from redraft.app.training_options import Count, Positive, seed_option, threads_option

if TYPE_CHECKING:
    from redraft.models.xlnet.network import ReadingOrder as Order

_PATH = click.Path(path_type=Path)


@click.command(name="xlnet-lm")
@click.option(
    "--orders",
    default="forward,backward,masked",
    show_default=True,
    help="What the model learns to read; an order that is named twice gets twice the sentences.",
)
@click.option("--init", default="scratch", show_default=True, metavar="NAME|DIR|scratch", help="Weights to start from.")
@click.option("--corpus", type=_PATH, required=True, help="Folder of .txt or .txt.xz files, a sentence a line.")
@click.option("--out", type=_PATH, required=True, help="Folder for checkpoints and the model.")
@click.option("--tokens", type=Count(), default=30e6, show_default=True, help="Pieces to predict.")
@click.option("--pieces", type=_PATH, help="SentencePiece vocabulary for scratch; made from the corpus if not given.")
@click.option("--teacher", metavar="NAME|DIR", help="Learn from the LSTM models of this pack as well as from the text.")
@click.option("--layers", type=click.IntRange(1), default=4, show_default=True, help="Layers, for scratch.")
@click.option("--inner", type=click.IntRange(1), default=768, show_default=True, help="Feed-forward size, for scratch.")
@click.option(
    "--streams",
    "num_streams",
    type=click.IntRange(1, 2),
    help="Two as XLNet was made, or one, which is faster; one from scratch, what the model has after --init.",
)
@click.option("--precision", type=click.Choice(["float32", "bfloat16"]), help="Of products; the fastest by default.")
@click.option("--learning-rate", type=Positive(), help="1.2e-3 from scratch, 1e-4 after --init.")
@click.option("--batch", "batch_pieces", type=click.IntRange(64), default=4096, show_default=True, help="Pieces.")
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
    """Train an XLNet that reads forward, backward and from both sides. A run that was stopped goes on when started
    again; `accelerate launch` runs it in several processes."""
    import torch

    from redraft.models.pack import open_pack
    from redraft.training.processes import join
    from redraft.training.xlnet import train_xlnet

    scores = train_xlnet(
        corpus,
        _orders(orders),
        out,
        num_tokens=tokens,
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
    if not join().is_first:
        return
    for order, nll in scores.items():
        click.echo(f"{order}: {nll:.4f} NLL per {'piece' if order == 'masked' else 'word'} on held-out sentences")
    click.echo(f"the model is in {out}")


def _orders(names: str) -> "list[Order]":
    from redraft.errors import InputError
    from redraft.models.xlnet.network import ReadingOrder as Order

    try:
        return [Order(name.strip()) for name in names.split(",")]
    except ValueError as error:
        known = ", ".join(order.value for order in Order)
        raise InputError(f"{error}; --orders takes some of {known}, with commas between them") from error
