"""Drafts for many inputs, written to a JSON Lines file. An interrupted run resumes."""

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

_BEGIN = b'{"id": '  # how every line of results begins
SIZE = 32  # inputs that are written at once by default
SPARES = 32  # next best drafts of each input, for those whose sentence another input has


@dataclass(frozen=True)
class Input:
    """A valid input."""

    number: int  # of the line, from 1; the draws depend on it
    id: Any
    given: dict[str, Any]
    constraints: Constraints

    @property
    def key(self) -> str:
        return key_of(self.id)


def key_of(identity: Any) -> str:
    """A key for an id. The number 1 and the text "1" have different keys."""
    return json.dumps(identity, sort_keys=True)


@contextmanager
def results(path: Path) -> Iterator[tuple[IO[str], list[dict[str, Any]]]]:
    """Open a file for results; yields it and the results that it already contains. Only one process may write to it."""
    try:
        # A pipe or a device cannot be resumed, and reading it may never end.
        resumes = path.is_file() or not path.exists()
        file = path.open("a+" if resumes else "a", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"another process is writing to {path}; wait for it or choose another file") from error
        yield file, read_kept(file, path) if resumes else []
    finally:
        with suppress(OSError):  # a failed write was reported when it happened
            file.close()


def read_kept(file: IO[str], path: Path) -> list[dict[str, Any]]:
    """The complete lines of a result file. A last line that a kill has truncated is removed."""
    content = path.read_bytes()  # not text: a kill may split a character of several bytes
    *whole, torn = content.split(b"\n")
    try:
        lines = [json.loads(line) for line in whole]
        if not all("id" in line and "signature" in line for line in lines):
            raise ValueError("lines without id and signature")
        if not (torn.startswith(_BEGIN) or _BEGIN.startswith(torn)):
            raise ValueError("the last line is not the beginning of a result")
    except (ValueError, TypeError) as error:
        raise OutputError(
            f"{path} holds something else than redraft's results ({error}); choose another file"
        ) from error
    if torn:
        os.ftruncate(file.fileno(), len(content) - len(torn))
    return lines


def refuse_other_inputs(inputs: Iterable[Input], kept: Iterable[dict[str, Any]], path: Path) -> None:
    """Refuse a file with results of inputs that have changed."""
    given = {item.key: item.given for item in inputs}
    for line in kept:
        if given.get(key_of(line["id"]), line.get("input")) != line.get("input"):
            raise OutputError(f"{path} holds the result of another input for id {line['id']!r}; choose another file")


def refuse_other_traces(trace: bool, kept: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Refuse to mix lines with and without a trace: metrics of the steps would cover only some of them."""
    if any(("trace" in line) != trace for line in kept):
        how = "without traces; leave --trace out" if trace else "with traces; give --trace"
        raise OutputError(f"{path} holds results {how}, or choose another file")


def refuse_other_settings(writer: Writer, settings: Settings, kept: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Refuse to mix results of different models or settings."""
    for line in kept:
        if not writer.matches_signature(str(line["signature"]), settings):
            raise OutputError(f"{path} holds results of other settings ({line['signature']}); choose another file")


def work(
    writer: Writer,
    settings: Settings,
    left: Sequence[Input],
    file: IO[str],
    *,
    batch: int = SIZE,
    trace: bool = False,
    keep_going: Callable[[int], bool] = lambda _: True,
    done: Callable[[int], None] = lambda _: None,
    taken: set[str] | None = None,
    lacks: Callable[[Input], None] = lambda _: None,
    saved: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> bool:
    """Write drafts for the inputs that are left, and save each batch as soon as it is done. Returns False if stopped.

    With ``taken``, no input gets a text of this set, and its own texts are added: earlier inputs come first, whatever
    the batch. The spares of the settings take the place of drafts that are taken. ``lacks`` is called with each input
    that has none left, of which nothing is saved.

    ``keep_going`` is called before each step of a batch with the number of its inputs; if it returns False, the work
    stops.
    ``done`` is called with the number of inputs after each batch, ``saved`` with each result.
    """
    for start in range(0, len(left), batch):
        if not keep_going(0):  # a system may never call observe
            return False
        items = left[start : start + batch]
        answers: list[bool] = []

        def observe(*_: Any, num: int = len(items), answers: list[bool] = answers) -> bool:
            answers.append(keep_going(num))
            return answers[-1]

        drafts = writer.write_many(
            [item.constraints for item in items],
            settings,
            numbers=[item.number for item in items],
            observe=observe,
        )
        if not all(answers):
            return False
        used = [found[: settings.num] if taken is None else _untaken(found, settings.num, taken) for found in drafts]
        for item, found in zip(items, used, strict=True):
            if not found:
                lacks(item)
        lines = [_result(item, found, trace) for item, found in zip(items, used, strict=True) if found]
        _write(file, lines)
        for line in lines:
            saved(line)
        done(len(items))
    return True


def texts_of(line: Mapping[str, Any]) -> set[str]:
    """The sentences of a result."""
    return {line["text"], *(other["text"] for other in line.get("others", ()))}


def _untaken(drafts: Sequence[Draft], num: int, taken: set[str]) -> list[Draft]:
    """The best drafts whose texts are not taken, which they are from now on. Spares must meet the constraints."""
    found: list[Draft] = []
    for place, draft in enumerate(drafts):
        if len(found) < num and draft.text not in taken and (place < num or draft.constraints_met):
            found.append(draft)
            taken.add(draft.text)
    return found


def falls_short(line: Mapping[str, Any], num: int) -> bool:
    """Whether a result has fewer than ``num`` drafts, or one that does not meet its constraints."""
    drafts = [line, *line.get("others", ())]
    return len(drafts) < num or not all(draft["constraints_met"] for draft in drafts)


def _result(item: Input, drafts: Sequence[Draft], trace: bool) -> dict[str, Any]:
    best, *others = (record(draft, trace=trace) for draft in drafts)
    result = {"id": item.id, **best, "input": item.given}
    if others:
        result["others"] = others
    return result


def _write(file: IO[str], results: Iterable[Mapping[str, Any]]) -> None:
    try:
        file.write("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in results))
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write the results ({error.strerror}); what was written before is kept") from error
