"""Many inputs, one JSON line each, in a file that a stopped run goes on with."""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from redraft.drafts import Draft, Settings
from redraft.errors import OutputError
from redraft.records import record
from redraft.sentence import Constraints
from redraft.writer import Writer

_BEGIN = b'{"id": '  # of every line of results
SIZE = 32  # inputs that are worked on at once, unless told otherwise


@dataclass(frozen=True)
class Input:
    """An input that can be worked on."""

    number: int  # of the line, from 1: decides the draws
    id: Any
    given: dict[str, Any]
    constraints: Constraints

    @property
    def key(self) -> str:
        return key_of(self.id)


def key_of(identity: Any) -> str:
    """What tells ids apart: the number 1 and the text "1" are different."""
    return json.dumps(identity, sort_keys=True)


@contextmanager
def results(path: Path) -> Iterator[tuple[IO[str], list[dict[str, Any]]]]:
    """A file for results, and the results that are in it already. Only one process may write to it."""
    try:
        # A pipe or a device has nothing to go on from, and may not end when it is read.
        goes_on = path.is_file() or not path.exists()
        file = path.open("a+" if goes_on else "a", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"another process is writing to {path}; wait for it or choose another place") from error
        yield file, _kept(file, path) if goes_on else []
    finally:
        with suppress(OSError):  # what could not be written was told when it was written
            file.close()


def _kept(file: IO[str], path: Path) -> list[dict[str, Any]]:
    """The whole lines of a result file; a last line that was torn by a kill is cut off."""
    content = path.read_bytes()  # not text: a kill may tear a letter of several bytes
    *whole, torn = content.split(b"\n")
    try:
        lines = [json.loads(line) for line in whole]
        if not all("id" in line and "signature" in line for line in lines):
            raise ValueError("lines without id and signature")
        if not (torn.startswith(_BEGIN) or _BEGIN.startswith(torn)):
            raise ValueError("an end that is none of a result")
    except (ValueError, TypeError) as error:
        raise OutputError(
            f"{path} holds something else than redraft's results ({error}); choose another place"
        ) from error
    if torn:
        os.ftruncate(file.fileno(), len(content) - len(torn))
    return lines


def refuse_other_inputs(inputs: Iterable[Input], kept: Iterable[dict[str, Any]], path: Path) -> None:
    """A result is not taken for that of an input that was changed since."""
    given = {item.key: item.given for item in inputs}
    for line in kept:
        if given.get(key_of(line["id"]), line.get("input")) != line.get("input"):
            raise OutputError(f"{path} holds the result of another input for id {line['id']!r}; choose another place")


def refuse_other_traces(trace: bool, kept: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Lines with a trace and lines without one are not mixed: figures of the steps would be of some of them only."""
    if any(("trace" in line) != trace for line in kept):
        how = "without traces; leave --trace out" if trace else "with traces; give --trace"
        raise OutputError(f"{path} holds results {how}, or choose another place")


def refuse_other_settings(writer: Writer, settings: Settings, kept: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Results of other models or settings are not mixed with these."""
    for line in kept:
        if not writer.matches_signature(str(line["signature"]), settings):
            raise OutputError(f"{path} holds results of other settings ({line['signature']}); choose another place")


def work(
    writer: Writer,
    settings: Settings,
    left: Sequence[Input],
    file: IO[str],
    *,
    batch: int = SIZE,
    trace: bool = False,
    goes_on: Callable[[int], bool] = lambda _: True,
    done: Callable[[int], None] = lambda _: None,
) -> bool:
    """Write for the inputs that are left and keep each batch as soon as it is done; false where it was stopped.

    ``goes_on`` is asked before each step of a batch and told
    how many inputs take it, ``done`` hears how many inputs were finished.
    """
    for start in range(0, len(left), batch):
        if not goes_on(0):  # a system may take no step to be asked at
            return False
        items = left[start : start + batch]
        asked: list[bool] = []

        def observe(*_: Any, num: int = len(items), asked: list[bool] = asked) -> bool:
            asked.append(goes_on(num))
            return asked[-1]

        drafts = writer.write_many(
            [item.constraints for item in items],
            settings,
            numbers=[item.number for item in items],
            observe=observe,
        )
        if not all(asked):
            return False
        _write(file, (_line(item, found, trace) for item, found in zip(items, drafts, strict=True)))
        done(len(items))
    return True


def _line(item: Input, drafts: Sequence[Draft], trace: bool) -> str:
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
