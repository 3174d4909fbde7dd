"""redraft train infiller."""

from pathlib import Path

import click

from redraft.app.training_options import Count, Positive, seed_option, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="infiller")
@click.option("--base", default="smollm2", show_default=True, help="The causal model to adapt: pulled, or a folder.")
@click.option("--corpus", type=_PATH, required=True, help="Folder of .txt or .txt.xz files, a sentence a line.")
@click.option("--out", type=_PATH, required=True, help="Folder for checkpoints and the adapter.")
@click.option("--tokens", type=Count(), default=4e6, show_default=True, help="Tokens of sentences to learn.")
@click.option(
    "--mix",
    multiple=True,
    metavar="FILE=STYLE:SHARE",
    help="A file of the corpus, the style it stands for, its share, e.g. wikinews=News:40. All files by default.",
)
@click.option("--rank", type=click.IntRange(1), default=16, show_default=True, help="Of the low-rank adapter.")
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Examples in a step.")
@click.option("--learning-rate", type=Positive(), default=1e-3, show_default=True)
@click.option("--init", type=_PATH, help="Start from this adapter.")
@click.option(
    "--eight-bits/--single-precision",
    default=None,
    help="Precision of products with the frozen weights; 8 bits where the processor is fast at them.",
)
@seed_option
@threads_option
def train_infiller(
    base: str,
    corpus: Path,
    out: Path,
    tokens: int,
    mix: tuple[str, ...],
    rank: int,
    batch: int,
    learning_rate: float,
    init: Path | None,
    eight_bits: bool | None,
    seed: int,
) -> None:
    """Train a low-rank adapter that makes a causal model write sentences into gaps. A stopped run resumes."""
    from redraft.models.causal.eight_bits import is_fast
    from redraft.training import infiller
    from redraft.training.infilling import TextShare

    config = infiller.InfillerConfig(
        num_tokens=tokens,
        learning_rate=learning_rate,
        batch=batch,
        rank=rank,
        alpha=2.0 * rank,
        eight_bits=is_fast() if eight_bits is None else eight_bits,
        seed=seed,
        mix=tuple(map(TextShare.parse, mix)),
    )
    best = infiller.train_infiller(base, corpus, out, config, init=init)
    click.echo(f"{best:.4f} NLL per token on held-out sentences; the adapter is in {out / infiller.ADAPTER}")
