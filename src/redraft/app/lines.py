"""Lines of an input file: words, a template or a JSON object each."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import click

from redraft.batch import Input
from redraft.errors import InputError, RedraftError
from redraft.language import split_line
from redraft.records import check_json, constraints_of, object_of
from redraft.sentence import BLANK, Constraints

_ARRAY = re.compile(r'\s*\[\s*["{\]]')


class Record(NamedTuple):
    """Where an input stands in a file, and how it is read there."""

    number: int  # of the line, from 1
    place: str  # in the line, for errors
    read: Callable[[], dict[str, Any]]


class Defaults(NamedTuple):
    """What holds for every input that does not say otherwise, and how results show it."""

    given: dict[str, Any]
    shown: dict[str, Any]


def parse_lines(lines: Iterable[str], given: dict[str, Any]) -> tuple[list[Input], int]:
    """Parse the lines of a file. Return the inputs and the number of invalid lines, which standard error names."""
    return parse_records(records_of_lines(lines), Defaults(given, given))


def records_of_lines(lines: Iterable[str]) -> Iterator[Record]:
    """An input for each line that is not empty."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Record(number, "", partial(given_of_line, line))


def parse_records(
    records: Iterable[Record], defaults: Defaults, check: Callable[[Constraints], None] = lambda _: None
) -> tuple[list[Input], int]:
    """Return the inputs and the number of invalid ones, which standard error names.

    ``check`` refuses what cannot be written.
    """
    inputs: list[Input] = []
    seen: dict[str, int] = {}
    num_bad = 0
    for record in records:
        try:
            item = _input_of(record, defaults)
            check(item.constraints)
            if (first := seen.setdefault(item.key, record.number)) != record.number:
                raise InputError(f"the id {item.id!r} was used on line {first} already")
        except RedraftError as error:
            num_bad += 1
            click.echo(f"redraft: line {record.number}{record.place}: {error}", err=True)
        else:
            inputs.append(item)
    return inputs, num_bad


def _input_of(record: Record, defaults: Defaults) -> Input:
    given = record.read()
    whole = {**defaults.given, **given}
    check_json(whole)
    shown = {**defaults.shown, **given}
    return Input(record.number, given.get("id", record.number), shown, constraints_of(whole))


def given_of_line(line: str) -> dict[str, Any]:
    """What a JSON object, a template, or words with phrases in double quotes ask for."""
    if _ARRAY.match(line):
        raise InputError('an array is no input; write {"keywords": [...]}, or the words with spaces between them')
    if not line.lstrip().startswith("{"):
        return given_of_text(line)
    return object_of(line)


def given_of_text(line: str) -> dict[str, Any]:
    """What a template, or words with phrases in double quotes, ask for."""
    return {"template": line.strip()} if BLANK in line else {"keywords": split_line(line)}
