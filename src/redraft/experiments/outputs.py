"""Running the systems: what is there is kept, what is missing is written. A kill costs one batch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redraft import batch
from redraft.batch import Input, key_of
from redraft.drafts import Settings
from redraft.errors import InputError, OutputError
from redraft.evaluation.outputs import Output, output_of, records_of
from redraft.experiments.run import Run
from redraft.experiments.sets import Sets
from redraft.experiments.systems import SYSTEMS, open_system, steps_of
from redraft.models.pack import Pack
from redraft.writer import Writer as Author

HUMAN, TEMPLATE = "human", "template"  # rows that no system writes
Record = Mapping[str, Any]


class Watch(Protocol):
    """Who follows a rerun. A unit of work is a step of a chain, or what takes as long."""

    def begin(self, units: int) -> None: ...

    def say(self, what: str) -> None: ...

    def advance(self, units: int) -> None: ...

    def stopped(self) -> bool: ...


@dataclass(frozen=True, order=True)
class Job:
    """A system on a test set."""

    system: str
    set: str


def units_missing(run: Run, jobs: Iterable[Job], sets: Sets) -> int:
    """How much is still to be done. Looks only: whether a file is sound is seen when it is worked on."""
    return sum(
        len(_left(sets[job.set], _peek(run.outputs(job.system, job.set))))
        * _units(run.settings(steps_of(SYSTEMS[job.system])))
        for job in jobs
    )


def is_complete(run: Run, job: Job, sets: Sets) -> bool:
    """Whether a system has written something for every input of a set."""
    return not _left(sets[job.set], _peek(run.outputs(job.system, job.set)))


def _units(settings: Settings) -> int:
    """What an input counts for in the progress: its steps, or 1 for a system that takes none."""
    return settings.steps or 1


def write_missing(run: Run, jobs: Sequence[Job], sets: Sets, pack: Pack, watch: Watch) -> bool:
    """Write what is missing, each system opened at most once; false where it was stopped."""
    for name in dict.fromkeys(job.system for job in jobs):
        author: Author | None = None
        for job in (one for one in jobs if one.system == name):
            path = run.outputs(job.system, job.set)
            author = author or open_system(SYSTEMS[name], pack)
            if not _left(sets[job.set], kept := _peek(path)):
                batch.refuse_other_settings(author, run.settings(steps_of(SYSTEMS[name])), kept, path)
            elif not _write_set(run, author, sets[job.set], job, watch):
                return False
    return True


def _write_set(run: Run, author: Author, inputs: Sequence[Input], job: Job, watch: Watch) -> bool:
    path, settings = run.outputs(job.system, job.set), run.settings(steps_of(SYSTEMS[job.system]))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror}") from error
    told = 0

    def goes_on(num: int) -> bool:
        nonlocal told
        told += num
        watch.advance(num)
        return not watch.stopped()

    def done(num: int) -> None:  # a system that is not asked at each step has told less than it did
        nonlocal told
        watch.advance(num * _units(settings) - told)
        told = 0

    with batch.results(path) as (file, kept):
        batch.refuse_other_settings(author, settings, kept, path)
        left = _left(inputs, kept)
        watch.say(f"{job.system} on {job.set}: {len(left)} of {len(inputs)} inputs")
        return batch.work(author, settings, left, file, trace=True, goes_on=goes_on, done=done)


def _left(inputs: Sequence[Input], kept: Iterable[Record]) -> list[Input]:
    done = {key_of(line["id"]) for line in kept}
    return [item for item in inputs if item.key not in done]


def _peek(path: Path) -> list[Record]:
    """The lines of a result file that can be read, without a lock."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []
    return [line for line in found if isinstance(line, dict) and "id" in line]


def records(path: Path, inputs: Sequence[Input]) -> list[Record]:
    """The records of a system for a set, in the set's order; those of further inputs are passed over."""
    found: dict[str, Record] = {}
    for where, record in records_of(path):
        key = key_of(record.get("id"))
        if key in found:
            raise InputError(f"{where}: id {record.get('id')!r} occurs twice; keep one line for each id")
        found[key] = record
    if missing := [item for item in inputs if item.key not in found]:
        raise InputError(f"{path} lacks id {missing[0].id!r} ({len(missing)} in all); run redraft reproduce again")
    chosen = [found[item.key] for item in inputs]
    if other := [item for item, record in zip(inputs, chosen, strict=True) if record.get("input") != item.given]:
        raise InputError(f"{path} holds id {other[0].id!r} for another input; choose another --out")
    return chosen


def outputs_after(records: Sequence[Record], steps: int, path: Path) -> list[Output]:
    """What the records' chains had come to after some steps."""
    return [output_of(_after(record, steps, path), str(path)) for record in records]


def _after(record: Record, steps: int, path: Path) -> Record:
    if record.get("steps") == steps or "earlier" not in record:  # a system without steps has one output alone
        return record
    for earlier in record["earlier"]:
        if earlier["steps"] == steps:
            return {"id": record["id"], "text": earlier["text"], "steps": steps, "input": record["input"]}
    raise InputError(f"{path} has no draft after {steps} steps; choose another --out")


def references(inputs: Sequence[Input]) -> list[Output]:
    """The human references, as if a system had written them."""
    return [output_of({"id": i.id, "text": i.given["reference"], "input": i.given}, "the set") for i in inputs]


def templates(inputs: Sequence[Input]) -> list[Output]:
    """The templates as they are, a blank counted as a word: so the paper's row comes out nearest."""
    return [output_of({"id": i.id, "text": i.given["template"], "input": i.given}, "the set") for i in inputs]
