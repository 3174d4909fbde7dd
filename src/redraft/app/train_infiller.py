"""redraft train infiller."""

from pathlib import Path

import click

from redraft.app.training_options import Count, Positive, seed_option, threads_option

_PATH = click.Path(path_type=Path)


@click.command(name="infiller")
@click.option(
    "--base",
    default="smollm2",
    show_default=True,
    help="Causal model to adapt: a name after redraft pull, or a folder.",
)
@click.option("--corpus", type=_PATH, required=True, help="Folder of .txt or .txt.xz files, one sentence per line.")
@click.option("--out", type=_PATH, required=True, help="Output folder for checkpoints and the adapter.")
@click.option("--tokens", type=Count(), default="4e6", show_default=True, help="Training tokens, without prompts.")
@click.option(
    "--mix",
    multiple=True,
    metavar="FILE=STYLE:SHARE",
    help="File of the corpus, its style and share, e.g. wikinews=News:40; repeatable. Default: all files.",
)
@click.option("--rank", type=click.IntRange(1), default=16, show_default=True, help="Rank of the LoRA adapter.")
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Examples per batch.")
@click.option("--learning-rate", type=Positive(), default=1e-3, show_default=True, help="Peak learning rate.")
@click.option("--init", type=_PATH, help="Adapter to start from.")
@click.option(
    "--eight-bits/--single-precision",
    default=None,
    help="Precision of products with the frozen weights. Default: 8 bits if the processor is fast at them.",
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
    """Train a LoRA adapter with which a causal model fills gaps. Run the same command again to resume."""
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
