"""redraft generate --input: many inputs, one JSON line each; a run that was stopped goes on where it was."""

import fcntl
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress

from redraft.app.live import stop_on_interrupt
from redraft.app.options import Options
from redraft.app.records import constraints_of, record
from redraft.errors import InputError, OutputError, RedraftError
from redraft.sentence import BLANK, Constraints

if TYPE_CHECKING:
    from redraft.writer import Draft, Writer

_WORD_OR_PHRASE = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True)
class Input:
    """A line that can be worked on."""

    number: int  # of the line, from 1: decides the draws
    id: Any
    given: dict[str, Any]
    constraints: Constraints


def run_batch(options: Options) -> None:
    """Work through ``--input``. Lines that cannot be used are named, all others are done, and the exit status is 2."""
    if options.batch < 1:
        raise InputError(f"--batch must be at least 1, not {options.batch}")
    options.settings()  # refuse what cannot be before anything is read
    inputs, num_bad = parse_lines(_lines(options.input or "-"), options.defaults())
    with _results(options.output) as (file, kept):
        done = {_key(line["id"]) for line in kept}
        left = [item for item in inputs if _key(item.id) not in done]
        if left:
            writer = options.writer()
            _refuse_other_settings(writer, options, kept)
            _work(writer, options, left, file, len(inputs))
    if num_bad:
        sys.exit(2)


def _work(writer: "Writer", options: Options, left: list[Input], file: IO[str], num_inputs: int) -> None:
    settings = options.settings()
    with stop_on_interrupt() as stopped, _progress(num_inputs, num_inputs - len(left)) as advance:
        for start in range(0, len(left), options.batch):
            items = left[start : start + options.batch]
            limit = settings.time_limit and settings.time_limit * len(items)
            drafts = writer.write_many(
                [item.constraints for item in items],
                replace(settings, time_limit=limit),
                numbers=[item.number for item in items],
                observe=lambda *_: not stopped(),
            )
            if stopped():
                print("redraft: stopped; run the same command again to go on", file=sys.stderr)
                return
            _write(file, (_line(item, found, options.trace) for item, found in zip(items, drafts, strict=True)))
            advance(len(items))


def _line(item: Input, drafts: "list[Draft]", trace: bool) -> str:
    best, *others = (record(draft, trace=trace) for draft in drafts)
    result = {"id": item.id, **best, "input": item.given}
    if others:
        result["others"] = others
    return json.dumps(result, ensure_ascii=False) + "\n"


def _write(file: IO[str], lines: Iterable[str]) -> None:
    try:
        file.write("".join(lines))
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write the results ({error.strerror}); what was written before is kept") from error


def parse_lines(lines: Iterable[str], defaults: dict[str, Any]) -> tuple[list[Input], int]:
    """The inputs of a file, and how many lines were refused; each of those is told on standard error."""
    inputs: list[Input] = []
    seen: dict[str, int] = {}
    num_bad = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = parse_line(number, line, defaults)
            if (first := seen.setdefault(_key(item.id), number)) != number:
                raise InputError(f"the id {item.id!r} stands on line {first} already")
        except RedraftError as error:
            num_bad += 1
            click.echo(f"redraft: line {number}: {error}", err=True)
        else:
            inputs.append(item)
    return inputs, num_bad


def parse_line(number: int, line: str, defaults: dict[str, Any]) -> Input:
    """An input from a JSON object, a template, or words with phrases in double quotes."""
    if line.lstrip().startswith("{"):
        try:
            given = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not a JSON object ({error})") from error
    elif BLANK in line:
        given = {"template": line.strip()}
    else:
        given = {"keywords": [phrase or word for phrase, word in _WORD_OR_PHRASE.findall(line)]}
    return Input(number, given.get("id", number), given, constraints_of({**defaults, **given}))


def _key(identity: Any) -> str:
    return json.dumps(identity, sort_keys=True)


def _lines(name: str) -> Iterator[str]:
    try:
        with click.open_file(name, encoding="utf-8") as file:
            yield from file
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text ({error})") from error


@contextmanager
def _results(name: str | None) -> Iterator[tuple[IO[str], list[dict[str, Any]]]]:
    """Where results go, and the results that are there already. Only one process may write to a file."""
    if name is None or name == "-":
        yield sys.stdout, []
        return
    try:
        # A pipe or a device has nothing to go on from, and may not end when it is read.
        goes_on = Path(name).is_file() or not Path(name).exists()
        file = Path(name).open("a+" if goes_on else "a", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise OutputError(f"cannot write to {name}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"another process is writing to {name}; wait for it or choose another --output"
            ) from error
        yield file, _kept(file, name) if goes_on else []


def _kept(file: IO[str], name: str) -> list[dict[str, Any]]:
    """The whole lines of a result file; a last line that was torn by a kill is cut off."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind("\n") + 1]
    if len(whole) < len(content):
        os.ftruncate(file.fileno(), len(whole.encode()))
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
        if not all("id" in line and "signature" in line for line in lines):
            raise ValueError("lines without id and signature")
    except (ValueError, TypeError) as error:
        raise OutputError(
            f"{name} holds something else than redraft's results ({error}); choose another --output"
        ) from error
    return lines


def _refuse_other_settings(writer: "Writer", options: Options, kept: list[dict[str, Any]]) -> None:
    settings = options.settings()
    for line in kept:
        if not writer.could_sign(line["signature"], settings):
            raise OutputError(f"{options.output} holds results of other settings ({line['signature']}); choose another")


@contextmanager
def _progress(total: int, done: int) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None
        return
    with Progress(console=console) as progress:
        task = progress.add_task("inputs", total=total, completed=done)
        yield lambda count: progress.advance(task, count)
