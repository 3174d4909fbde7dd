"""redraft diagnose."""

from dataclasses import replace
from pathlib import Path

import click

from redraft.app.options import RECIPES, Options, target_options
from redraft.app.sections import OUTPUT, SAMPLING, SectionCommand, option
from redraft.errors import InputError
from redraft.extras import require


@click.command(
    cls=SectionCommand,
    lists={"Recipes": RECIPES},
    examples=(
        ("redraft diagnose dog ball --seed 1", "Check eight chains of 2000 steps"),
        ('redraft diagnose "The dog ___ ." --chains 4 --out traces.png', "Check a template and draw the traces"),
    ),
)
@click.argument("words", nargs=-1, required=True, metavar="WORD... | TEMPLATE")
@option(SAMPLING, "--chains", type=int, default=8, show_default=True, metavar="N", help="Chains to compare.")
@option(
    SAMPLING,
    "--steps",
    type=int,
    default=2000,
    show_default=True,
    metavar="N",
    help="Steps of each chain; the first half is discarded.",
)
@option(SAMPLING, "--thin", type=int, default=1, show_default=True, metavar="STEPS", help="Steps between draws.")
@option(
    SAMPLING, "--seed", type=int, metavar="N", help="Seed of the random draws; the same seed gives the same chains."
)
@option(
    OUTPUT,
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write traces and autocorrelations to this PNG file.",
)
@target_options
def diagnose(words: tuple[str, ...], thin: int, out: Path | None, options: Options) -> None:
    """Check whether chains of the exact kernel agree.

    Reports R-hat and the effective number of draws, to decide whether to trust generate --samples.
    """
    steps, chains = options.steps or 0, options.chains
    if thin < 1:
        raise InputError(f"--thin must be at least 1, not {thin}")
    if chains < 2 or steps < 16 * thin:
        raise InputError(f"use at least 2 chains and {16 * thin} steps, not {chains} and {steps}")
    require("eval", "arviz", "matplotlib")
    from redraft.app.draws import draw
    from redraft.diagnostics import diagnose as examine
    from redraft.diagnostics import plot
    from redraft.sentence import BLANK

    is_template = len(words) == 1 and BLANK in words[0]
    given = {"template": words[0]} if is_template else {"keywords": list(words)}
    exact = replace(options, kernel="exact")
    samples = draw(given, exact, num=steps // 2 // thin, burn_in=steps - steps // 2, thin=thin).samples
    if len(samples.draws) < 8 * chains:
        raise InputError("stopped too early for a diagnosis")
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
