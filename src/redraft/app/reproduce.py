"""redraft reproduce, redraft report."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--data", type=_PATH, required=True, help="Folder with one-billion-word/test.txt and dev.txt.")
@click.option("--num", type=int, default=200, show_default=True, help="Inputs in each test set.")
@click.option("--out", type=_PATH, default=Path("redraft-results"), show_default=True, help="Goes on if run again.")
@click.option("--systems", default="", metavar="NAME,...", help="Run only these; all that are there by default.")
@click.option("--steps", type=int, default=200, show_default=True, help="Of a chain, where the paper has 200.")
@click.option("--judge", metavar="NAME|DIR", help="Who scores fluency; the first that was pulled by default, or none.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the test sets and the chains.")
@click.option("--pack", metavar="NAME|DIR", help="Which models to use.")
def reproduce(
    names: tuple[str, ...],
    data: Path,
    num: int,
    out: Path,
    systems: str,
    steps: int,
    judge: str | None,
    seed: int,
    pack: str | None,
) -> None:
    """Run the paper's tables and figures again: all, table1 to table9, figure2, figure3, figure4.

    Our figures stand beside the paper's, as Markdown, CSV and PNG. What was run before is kept; a run that was killed
    goes on where it was. Systems that are not there yet are listed and skipped.
    """
    from redraft.experiments.reproduce import reproduce as rerun
    from redraft.experiments.run import ReproduceConfig
    from redraft.experiments.scores import default_judge
    from redraft.interrupt import stop_on_interrupt
    from redraft.models.pack import DEFAULT

    chosen = tuple(name.strip() for name in systems.split(",") if name.strip())
    judge = default_judge() if judge is None else None if judge == "none" else judge
    run = ReproduceConfig(data, out, num, steps, seed, judge, pack or DEFAULT, chosen)
    with stop_on_interrupt() as stopped, _Bar(stopped) as bar:
        done = rerun(run, names, bar)
    if done is None:
        click.echo("redraft: stopped; run the same command again to go on", err=True)
        sys.exit(130)
    for why in dict.fromkeys(done.absent.values()):
        click.echo(f"{why}: {', '.join(name for name, reason in done.absent.items() if reason == why)}")
    click.echo(f"{len(done.results)} results in {out}; see {out / 'README.md'}, or: redraft report {out}")


@click.command()
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option("--out", type=_PATH, metavar="FILE", help="Where the page goes; DIR/report.html by default.")
@click.option("--samples", type=int, default=10, show_default=True, help="Inputs of each set to show, with traces.")
def report(folder: Path, out: Path | None, samples: int) -> None:
    """Make one web page of a folder that redraft reproduce wrote: tables, figures, samples, traces."""
    from redraft.experiments.report import write_report

    path = write_report(folder, out or folder / "report.html", samples)
    click.echo(f"wrote {path}")


class _Bar:
    """One bar over the whole on a terminal; elsewhere a line when something new begins."""

    def __init__(self, stopped: Callable[[], bool]):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self.stopped = stopped
        console = Console(stderr=True)
        self._shown = console.is_terminal
        columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=console, disable=not self._shown)
        self._task: Any = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def begin(self, units: int) -> None:
        self._task = self._bar.add_task("", total=units)

    def say(self, what: str) -> None:
        if self._shown and self._task is not None:
            self._bar.update(self._task, description=what)
        else:
            click.echo(what, err=True)

    def advance(self, units: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, units)
