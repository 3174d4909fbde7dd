"""redraft diagnose."""

from pathlib import Path

import click

from redraft.errors import InputError
from redraft.interrupt import stop_on_interrupt


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD... | TEMPLATE")
@click.option("--chains", type=int, default=8, show_default=True)
@click.option(
    "--steps", type=int, default=2000, show_default=True, help="Steps of each chain; the first half is thrown away."
)
@click.option("--thin", type=int, default=1, show_default=True, help="Steps between draws.")
@click.option("--seed", type=int, help="For the same chains again.")
@click.option("--recipe", metavar="NAME", help="Whose models to use; the kernel is the exact one.")
@click.option("--candidates", type=int, metavar="K", help="Words to weigh at each step.")
@click.option("--max-words", type=int, help="Most words, punctuation marks counted.")
@click.option("--pack", metavar="NAME|DIR", help="Which models to use.")
@click.option("--out", type=click.Path(path_type=Path), help="A PNG with traces and autocorrelations.")
def diagnose(
    words: tuple[str, ...],
    chains: int,
    steps: int,
    thin: int,
    seed: int | None,
    recipe: str | None,
    candidates: int | None,
    max_words: int | None,
    pack: str | None,
    out: Path | None,
) -> None:
    """Tell whether chains of the exact kernel agree, and how many draws they are worth."""
    if thin < 1:
        raise InputError(f"--thin must be at least 1, not {thin}")
    if chains < 2 or steps < 16 * thin:
        raise InputError(f"take at least 2 chains and {16 * thin} steps, not {chains} and {steps}")
    from redraft import load, recipes
    from redraft.app.live import LiveLine
    from redraft.diagnostics import diagnose as examine
    from redraft.diagnostics import plot
    from redraft.models.pack import DEFAULT, open_pack
    from redraft.sampling import sample
    from redraft.sentence import BLANK, Constraints

    is_template = len(words) == 1 and BLANK in words[0]
    constraints = Constraints(() if is_template else words, words[0] if is_template else None, max_words=max_words)
    recipe = recipe or recipes.own(open_pack(pack or DEFAULT))
    writer = load(pack or DEFAULT, recipe, num_candidates=candidates, kernel="exact")
    with stop_on_interrupt() as stopped, LiveLine(steps) as line:

        def observe(step: int) -> bool:
            line.count(step)
            return not stopped()

        samples = sample(
            writer.sampler,
            constraints,
            num=steps // 2 // thin,
            burn_in=steps - steps // 2,
            thin=thin,
            chains=chains,
            seed=seed,
            observe=observe,
        )
    if len(samples.draws) < 8 * chains:
        raise InputError("stopped too early to tell anything")
    report = examine(samples)
    click.echo(f"{'quantity':<22}{'mean':>9}{'R-hat':>8}{'effective draws':>17}")
    for one in report.diagnoses:
        click.echo(f"{one.name:<22}{one.mean:>9.3f}{one.r_hat:>8.3f}{one.ess:>17.0f}")
    rates = ", ".join(f"{action.value} {rate:.0%}" for action, rate in report.acceptance.items())
    click.echo(f"accepted: {rates}")
    click.echo(report.verdict)
    if out is not None:
        plot(samples, out)
        click.echo(f"traces in {out}")
