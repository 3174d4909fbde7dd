"""redraft diagnose."""

from dataclasses import replace
from pathlib import Path

import click

from redraft.app.options import Options, target_options
from redraft.errors import InputError


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WORD... | TEMPLATE")
@click.option("--chains", type=int, default=8, show_default=True)
@click.option(
    "--steps", type=int, default=2000, show_default=True, help="Steps of each chain; the first half is thrown away."
)
@click.option("--thin", type=int, default=1, show_default=True, help="Steps between draws.")
@click.option("--seed", type=int, help="For the same chains again.")
@click.option("--out", type=click.Path(path_type=Path), help="A PNG with traces and autocorrelations.")
@target_options
def diagnose(words: tuple[str, ...], thin: int, out: Path | None, options: Options) -> None:
    """Tell whether chains of the exact kernel agree, and how many draws they are worth."""
    steps, chains = options.steps or 0, options.chains
    if thin < 1:
        raise InputError(f"--thin must be at least 1, not {thin}")
    if chains < 2 or steps < 16 * thin:
        raise InputError(f"take at least 2 chains and {16 * thin} steps, not {chains} and {steps}")
    from redraft.app.draws import draw
    from redraft.diagnostics import diagnose as examine
    from redraft.diagnostics import plot
    from redraft.sentence import BLANK

    is_template = len(words) == 1 and BLANK in words[0]
    given = {"template": words[0]} if is_template else {"keywords": list(words)}
    exact = replace(options, kernel="exact")
    samples = draw(given, exact, num=steps // 2 // thin, burn_in=steps - steps // 2, thin=thin).samples
    if len(samples.draws) < 8 * chains:
        raise InputError("stopped too early to tell anything")
    report = examine(samples)
    click.echo(f"{'quantity':<22}{'mean':>9}{'R-hat':>8}{'effective draws':>17}")
    for one in report.diagnoses:
        click.echo(f"{one.name:<22}{one.mean:>9.3f}{one.r_hat:>8.3f}{one.ess:>17.0f}")
    rates = ", ".join(f"{action.value} {rate:.0%}" for action, rate in report.acceptance.items())
    click.echo(f"accepted: {rates}")
    click.echo(f"{report.verdict} Seed {samples.seed}.")
    if out is not None:
        plot(samples, out)
        click.echo(f"traces in {out}")
