"""redraft train classifier."""

from pathlib import Path

import click

from redraft.app.training_options import Positive, seed_option, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="classifier")
@click.option("--data", type=_PATH, required=True, help="Folder that redraft synthesize made.")
@click.option("--out", type=_PATH, required=True, help="Folder for checkpoints and the classifier.")
@click.option("--init", type=_PATH, help="Start from this model: an XLNet, or any encoder that transformers can load.")
@click.option("--readers", metavar="NAME|DIR", help="Pack by whose LSTM models it reads; from scratch unless --init.")
@click.option("--pieces", type=_PATH, help="SentencePiece vocabulary to start from scratch with.")
@click.option("--corpus", type=_PATH, help="Without these three: text to make the vocabulary from.")
@click.option("--epochs", type=Positive(), default=2.0, show_default=True)
@click.option("--learning-rate", type=Positive(), help="2e-3 from scratch, 1e-4 after --init.")
@click.option("--batch", "batch_pieces", type=click.IntRange(64), default=3072, show_default=True, help="Sub-tokens.")
@click.option("--layers", type=click.IntRange(1), default=4, show_default=True, help="Layers, for scratch.")
@click.option("--size", type=click.IntRange(4), default=192, show_default=True, help="Width of a layer, for scratch.")
@click.option("--inner", type=click.IntRange(1), default=512, show_default=True, help="Feed-forward size, for scratch.")
@seed_option
@threads_option
def train_classifier(
    data: Path,
    out: Path,
    init: Path | None,
    readers: str | None,
    pieces: Path | None,
    corpus: Path | None,
    epochs: float,
    learning_rate: float | None,
    batch_pieces: int,
    layers: int,
    size: int,
    inner: int,
    seed: int,
) -> None:
    """Train the classifier that tells where and how to revise. A run that was stopped goes on when started again."""
    from redraft.models.pack import open_pack
    from redraft.training import classifier
    from redraft.training.label_scores import markdown
    from redraft.training.processes import join

    if init is None and pieces is None and readers is None and corpus is not None:
        pieces = _pieces_of(corpus, out)
    scores = classifier.train_classifier(
        data,
        out,
        init=init,
        pieces=pieces,
        readers=open_pack(readers) if readers else None,
        shape={"n_layer": layers, "d_model": size, "d_inner": inner},
        epochs=epochs,
        learning_rate=learning_rate,
        batch_pieces=batch_pieces,
        seed=seed,
    )
    if join().is_first:
        click.echo(markdown(scores))


def _pieces_of(corpus: Path, out: Path) -> Path:
    from redraft.predict.pieces import PIECES
    from redraft.training.pieces import train_pieces

    if not (out / PIECES).exists():
        train_pieces(corpus, out / PIECES)
    return out / PIECES
