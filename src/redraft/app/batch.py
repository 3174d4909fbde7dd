"""redraft generate --input: many inputs, one JSON line or one row of a CSV each. An interrupted run resumes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import Progress

from redraft import batch
from redraft.app.cards import Cards, is_csv, journal_of, read_cards
from redraft.app.lines import Defaults, parse_records, records_of_lines
from redraft.app.options import UNMET, Options
from redraft.batch import Input, key_of
from redraft.errors import InputError
from redraft.interrupt import stop_on_interrupt


def run_batch(options: Options) -> None:
    """Write for every line of ``--input``. Invalid lines are reported and skipped; the exit status is then 2."""
    if options.batch < 1:
        raise InputError(f"--batch must be at least 1, not {options.batch}")
    options.settings()  # refuse wrong settings before anything is read
    cards = read_cards(Path(options.input or ""), options.num) if is_csv(options.input) else None
    given = options.defaults()
    records = records_of_lines(_lines(options.input or "-")) if cards is None else cards.records()
    inputs, num_bad = parse_records(records, Defaults(given, options.recorded(given)), options.check)
    name = options.output
    if name is not None and is_csv(name):
        if cards is None:
            raise InputError(f"--output {name} has the rows of an --input in CSV; choose another name for JSON lines")
        name = str(journal_of(Path(name)))
    with _results(name) as (file, kept):
        short = [line["id"] for line in kept if batch.falls_short(line, options.num)]
        num_lacking = _write_missing(options, inputs, Path(name or "-"), file, kept, short)
        if cards is not None and is_csv(options.output):
            _write_cards(cards, options, batch.read_kept(file, Path(name or "")))
    if num_lacking is None:
        again = "; run the same command again to resume" if options.output else ""
        print(f"redraft: stopped{again}", file=sys.stderr)
        sys.exit(130)
    if short:
        print(
            f"redraft: {len(short)} of {len(inputs)} inputs (first: id {short[0]!r}) have fewer than {options.num} "
            "drafts, or drafts that do not meet the constraints; try more --steps, --chains or time",
            file=sys.stderr,
        )
    if num_bad or num_lacking:
        sys.exit(2)
    if short and options.strict:
        sys.exit(UNMET)


def _write_missing(
    options: Options,
    inputs: Sequence[Input],
    path: Path,
    file: IO[str],
    kept: Sequence[dict[str, Any]],
    short: list[object],
) -> int | None:
    """Write the results that are missing, and add the ids of those that fall short.

    Returns the number of inputs that none was found for; None if stopped.
    """
    settings = options.settings()
    done = {key_of(line["id"]) for line in kept}
    left = [item for item in inputs if item.key not in done]
    batch.refuse_other_inputs(inputs, kept, path)
    batch.refuse_other_traces(options.trace, kept, path)
    if left or kept:
        writer = options.writer()
        batch.refuse_other_settings(writer, settings, kept, path)
    if not left:
        if inputs:
            print(f"redraft: all {len(inputs)} results are in {options.output} already; nothing to do", file=sys.stderr)
        return 0
    lacking: list[Input] = []
    steps = writer.complete(settings).steps or 0
    with stop_on_interrupt() as stopped, _Bar(len(inputs), len(inputs) - len(left), steps) as bar:

        def keep_going(num: int) -> bool:
            bar.step(num)
            return not stopped()

        def saved(line: Mapping[str, Any]) -> None:
            if batch.falls_short(line, options.num):
                short.append(line["id"])

        finished = batch.work(
            writer,
            settings,
            left,
            file,
            batch=options.batch,
            trace=options.trace,
            keep_going=keep_going,
            done=bar.done,
            taken={text for line in kept for text in batch.texts_of(line)} if options.distinct else None,
            lacks=lacking.append,
            saved=saved,
        )
    for item in lacking:
        click.echo(f"redraft: line {item.number}: other inputs have all sentences that were found", err=True)
    return len(lacking) if finished else None


def _write_cards(cards: Cards, options: Options, kept: Sequence[dict[str, Any]]) -> None:
    """Write the CSV from the results. Sentences that do not meet their constraints are left out, and reported."""
    texts: dict[int, list[str]] = {}
    for line in kept:
        drafts = [line, *line.get("others", ())]
        texts[line["id"]] = [one["text"] for one in drafts if one["constraints_met"]]
        if not texts[line["id"]]:
            click.echo(f"redraft: line {line['id']}: no sentence met the constraints; try more --steps", err=True)
    cards.write(Path(options.output or ""), texts, options.num)


def _lines(name: str) -> Iterator[str]:
    try:
        with click.open_file(name, encoding="utf-8-sig") as file:
            yield from file
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text ({error})") from error


@contextmanager
def _results(name: str | None) -> Iterator[tuple[IO[str], list[dict[str, Any]]]]:
    """Open the results file, and read the results that it has already."""
    if name is None or name == "-":
        yield sys.stdout, []
        return
    with batch.results(Path(name)) as found:
        yield found


class _Bar:
    """A progress bar over inputs that moves with every step of a batch. Silent unless standard error is a terminal."""

    def __init__(self, total: int, done: int, steps: int):
        console = Console(stderr=True)
        self._progress = Progress(console=console, disable=not console.is_terminal)
        self._task = self._progress.add_task("inputs", total=total, completed=done)
        self._num_done, self._steps, self._part = done, steps, 0.0

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self, num: int) -> None:
        """Record a step of ``num`` inputs."""
        if self._steps:
            self._part += num / self._steps
            self._progress.update(self._task, completed=self._num_done + self._part)

    def done(self, num: int) -> None:
        self._num_done, self._part = self._num_done + num, 0.0
        self._progress.update(self._task, completed=self._num_done)
