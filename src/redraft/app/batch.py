"""redraft generate --input: many inputs, one JSON line each. An interrupted run resumes."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import Progress

from redraft import batch
from redraft.app.options import Options
from redraft.batch import Input, key_of
from redraft.errors import InputError, RedraftError
from redraft.interrupt import stop_on_interrupt
from redraft.language import split_line
from redraft.records import constraints_of
from redraft.sentence import BLANK, Constraints

_ARRAY = re.compile(r'\s*\[\s*["{\]]')


def run_batch(options: Options) -> None:
    """Write for every line of ``--input``. Invalid lines are reported and skipped; the exit status is then 2."""
    if options.batch < 1:
        raise InputError(f"--batch must be at least 1, not {options.batch}")
    settings = options.settings()  # refuse wrong settings before anything is read
    defaults = options.defaults()
    recorded = options.recorded(defaults)
    inputs, num_bad = parse_lines(_lines(options.input or "-"), defaults, options.check, recorded)
    with _results(options.output) as (file, kept):
        done = {key_of(line["id"]) for line in kept}
        left = [item for item in inputs if item.key not in done]
        path = Path(options.output or "-")
        batch.refuse_other_inputs(inputs, kept, path)
        batch.refuse_other_traces(options.trace, kept, path)
        if left or kept:
            writer = options.writer()
            batch.refuse_other_settings(writer, settings, kept, path)
        if left:
            steps = writer.complete(settings).steps or 0
            with stop_on_interrupt() as stopped, _Bar(len(inputs), len(inputs) - len(left), steps) as bar:

                def keep_going(num: int) -> bool:
                    bar.step(num)
                    return not stopped()

                finished = batch.work(
                    writer,
                    settings,
                    left,
                    file,
                    batch=options.batch,
                    trace=options.trace,
                    keep_going=keep_going,
                    done=bar.done,
                )
            if not finished:
                again = "; run the same command again to resume" if options.output else ""
                print(f"redraft: stopped{again}", file=sys.stderr)
                sys.exit(130)
        elif inputs:
            print(f"redraft: all {len(inputs)} results are in {options.output} already; nothing to do", file=sys.stderr)
    if num_bad:
        sys.exit(2)


def parse_lines(
    lines: Iterable[str],
    defaults: dict[str, Any],
    check: Callable[[Constraints], None] = lambda _: None,
    recorded: dict[str, Any] | None = None,
) -> tuple[list[Input], int]:
    """Parse the lines of a file. Return the inputs and the number of invalid lines, which standard error names.

    ``check`` refuses what cannot be written. ``recorded`` is what results say of the defaults, if not all.
    """
    inputs: list[Input] = []
    seen: dict[str, int] = {}
    num_bad = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = parse_line(number, line, defaults, recorded)
            check(item.constraints)
            if (first := seen.setdefault(item.key, number)) != number:
                raise InputError(f"the id {item.id!r} was used on line {first} already")
        except RedraftError as error:
            num_bad += 1
            click.echo(f"redraft: line {number}: {error}", err=True)
        else:
            inputs.append(item)
    return inputs, num_bad


def parse_line(number: int, line: str, defaults: dict[str, Any], recorded: dict[str, Any] | None = None) -> Input:
    """Parse a JSON object, a template, or words with phrases in double quotes."""
    if _ARRAY.match(line):
        raise InputError('an array is no input; write {"keywords": [...]}, or the words with spaces between them')
    if line.lstrip().startswith("{"):
        try:
            given = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not a JSON object ({error})") from error
    elif BLANK in line:
        given = {"template": line.strip()}
    else:
        given = {"keywords": split_line(line)}
    whole = {**defaults, **given}
    try:
        json.dumps(whole, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"not Unicode text: it contains a lone surrogate ({error.object[error.start]!r})") from error
    shown = {**(defaults if recorded is None else recorded), **given}
    return Input(number, given.get("id", number), shown, constraints_of(whole))


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
