"""redraft train classifier."""

from pathlib import Path

import click

from redraft.app.training_options import Positive, seed_option, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="classifier")
@click.option("--data", type=_PATH, required=True, help="Folder of data from redraft synthesize.")
@click.option("--out", type=_PATH, required=True, help="Output folder for checkpoints and the classifier.")
@click.option("--init", type=_PATH, help="Model to start from: an XLNet, or any encoder that transformers can load.")
@click.option(
    "--readers", metavar="NAME|DIR", help="Pack whose LSTM states are the input; from scratch unless --init is given."
)
@click.option("--pieces", type=_PATH, help="SentencePiece vocabulary, to start from scratch.")
@click.option("--corpus", type=_PATH, help="Text to train a vocabulary on, without the three options above.")
@click.option("--epochs", type=Positive(), default=2.0, show_default=True, help="Passes over the data.")
@click.option("--learning-rate", type=Positive(), help="Default: 2e-3 from scratch, 1e-4 with --init.")
@click.option(
    "--batch", "batch_pieces", type=click.IntRange(64), default=3072, show_default=True, help="Pieces per batch."
)
@click.option(
    "--layers", type=click.IntRange(1), default=4, show_default=True, help="Number of layers; only from scratch."
)
@click.option("--size", type=click.IntRange(4), default=192, show_default=True, help="Hidden size; only from scratch.")
@click.option(
    "--inner", type=click.IntRange(1), default=512, show_default=True, help="Feed-forward size; only from scratch."
)
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
    """Train the classifier that predicts where and how to revise. Run the same command again to resume."""
    from redraft.models.pack import open_pack
    from redraft.training import classifier
    from redraft.training.label_scores import markdown
    from redraft.training.processes import join

    if init is None and pieces is None and readers is None and corpus is not None:
        pieces = _pieces_of(corpus, out)
    config = classifier.ClassifierTraining(
        data,
        init=init,
        pieces=pieces,
        readers=open_pack(readers) if readers else None,
        shape={"n_layer": layers, "d_model": size, "d_inner": inner},
        epochs=epochs,
        learning_rate=learning_rate,
        batch_pieces=batch_pieces,
        seed=seed,
    )
    scores = classifier.train_classifier(config, out)
    if join().is_first:
        click.echo(markdown(scores))


def _pieces_of(corpus: Path, out: Path) -> Path:
    from redraft.predict.pieces import PIECES
    from redraft.training.pieces import train_pieces

    if not (out / PIECES).exists():
        train_pieces(corpus, out / PIECES)
    return out / PIECES
