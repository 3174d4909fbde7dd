"""redraft reproduce, redraft report."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

from redraft.errors import InputError

_PATH = click.Path(path_type=Path)
_COMMONGEN = "commongen"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--data", type=_PATH, required=True, help="Folder with one-billion-word/test.txt and dev.txt.")
@click.option(
    "--test", type=_PATH, metavar="FILE", help="Other test sentences. Default: one-billion-word/test.txt of --data."
)
@click.option("--num", type=int, default=200, show_default=True, help="Inputs per test set.")
@click.option(
    "--out",
    type=_PATH,
    default=Path("redraft-results"),
    show_default=True,
    help="Output folder; an earlier run in it is resumed.",
)
@click.option("--systems", default="", metavar="NAME,...", help="Systems to run. Default: all that are available.")
@click.option(
    "--fewer", multiple=True, metavar="NAME=N", help="Inputs per test set for a slow system; cells say so. Repeatable."
)
@click.option(
    "--workers", type=int, default=1, show_default=True, help="Processes that run systems, each with one thread."
)
@click.option("--steps", type=int, default=200, show_default=True, help="Steps of a chain; the paper has 200.")
@click.option(
    "--judge", metavar="NAME|DIR", help="Model that scores fluency, or none. Default: the first that was pulled."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the test sets and the chains.")
@click.option("--pack", metavar="NAME|DIR", help="Pack of models to use.")
@click.option("--style", metavar="NAME", help="For commongen: the infiller's kind of text, such as Everyday.")
def reproduce(
    names: tuple[str, ...],
    data: Path,
    test: Path | None,
    num: int,
    out: Path,
    systems: str,
    fewer: tuple[str, ...],
    workers: int,
    steps: int,
    judge: str | None,
    seed: int,
    pack: str | None,
    style: str | None,
) -> None:
    """Reproduce the paper's tables and figures: all, table1 to table9, figure2, figure3, figure4. Or commongen.

    commongen compares forms of CommonGen's concepts in any order with the concepts as they are. --data then has
    commongen/dev.tsv.

    Our values are written beside the paper's, as Markdown, CSV and PNG. Run the same command again to resume an
    interrupted run. Systems that are unavailable are listed and skipped.
    """
    from redraft.experiments.config import ReproduceConfig
    from redraft.experiments.judge_scores import default_judge
    from redraft.experiments.reproduce import reproduce as run
    from redraft.interrupt import stop_on_interrupt
    from redraft.models.pack import DEFAULT

    chosen = tuple(name.strip() for name in systems.split(",") if name.strip())
    judge = default_judge() if judge is None else None if judge == "none" else judge
    if _COMMONGEN in names:
        if names != (_COMMONGEN,) or chosen or fewer:
            raise InputError(f"{_COMMONGEN} runs by itself, with the default recipe; leave other names and options out")
        _reproduce_commongen(data, out, num, seed, judge, pack or DEFAULT, style)
        return
    if style is not None:
        raise InputError(f"--style goes with {_COMMONGEN}")
    config = ReproduceConfig(
        data,
        out,
        num,
        steps,
        seed,
        judge,
        pack or DEFAULT,
        chosen,
        tuple(_name_and_number(one) for one in fewer),
        test,
        workers,
    )
    with stop_on_interrupt() as stopped, _Bar(stopped) as bar:
        done = run(config, names, bar)
    if done is None:
        click.echo("redraft: stopped; run the same command again to resume", err=True)
        sys.exit(130)
    for why in dict.fromkeys(done.absent.values()):
        click.echo(f"{why}: {', '.join(name for name, reason in done.absent.items() if reason == why)}")
    click.echo(f"{len(done.results)} results in {out}; see {out / 'README.md'}, or: redraft report {out}")


def _reproduce_commongen(
    data: Path, out: Path, num: int, seed: int, judge: str | None, pack: str, style: str | None
) -> None:
    """Forms of CommonGen's concepts in any order beside the concepts as they are; needs commongen/dev.tsv."""
    from redraft import load
    from redraft.experiments.commongen import CommonGenRun, run_commongen
    from redraft.interrupt import stop_on_interrupt

    writer = load(pack, style=style)
    with stop_on_interrupt() as stopped, _Bar(stopped) as bar:
        path = run_commongen(CommonGenRun(data, out, num, seed, judge, style), writer, bar)
    if path is None:
        click.echo("redraft: stopped; run the same command again to resume", err=True)
        sys.exit(130)
    click.echo(f"wrote {path}")


def _name_and_number(given: str) -> tuple[str, int]:
    name, _, number = given.rpartition("=")
    if not name or not number.isdecimal():
        raise InputError(f"--fewer takes NAME=N with a whole number, for example x-mcmc=100, not {given!r}")
    return name, int(number)


@click.command()
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option("--out", type=_PATH, metavar="FILE", help="Output file. Default: DIR/report.html.")
@click.option("--samples", type=int, default=10, show_default=True, help="Inputs to show per test set, with traces.")
def report(folder: Path, out: Path | None, samples: int) -> None:
    """Make a web page of the results of redraft reproduce: tables, figures, samples, traces."""
    from redraft.experiments.report import write_report

    path = write_report(folder, out or folder / "report.html", samples)
    click.echo(f"wrote {path}")


@click.command()
@click.argument("folder", type=_PATH, metavar="DIR")
@click.option("--out", type=_PATH, required=True, help="Folder to write to.")
def outputs(folder: Path, out: Path) -> None:
    """Unpack outputs that redraft reproduce has kept, for redraft evaluate.

    DIR is the folder kept of its results. The files are OUT/outputs/SYSTEM/SET.jsonl.
    """
    from redraft.experiments.kept import unpack

    click.echo(f"wrote {len(unpack(folder, out))} files to {out / 'outputs'}")


class _Bar:
    """A progress bar on a terminal; elsewhere one line per stage."""

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
