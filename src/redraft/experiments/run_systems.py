"""Running systems on test sets: existing outputs are kept, missing ones are written. A kill loses one batch at most."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redraft import batch
from redraft.batch import Input, key_of
from redraft.chain_writer import steps_for
from redraft.drafts import Settings
from redraft.errors import InputError, OutputError
from redraft.evaluation.outputs import SystemOutput, output_of, records_of
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.inputs import TestSets, first_inputs
from redraft.experiments.systems import SYSTEMS, open_system, steps_of
from redraft.models.pack import Pack
from redraft.writer import Writer

OutputRecord = Mapping[str, Any]


class ProgressListener(Protocol):
    """Receives the progress of a run and can stop it. A unit of work is a step of a chain, or takes as long."""

    def begin(self, units: int) -> None: ...

    def say(self, what: str) -> None: ...

    def advance(self, units: int) -> None: ...

    def stopped(self) -> bool: ...


@dataclass(frozen=True, order=True)
class Job:
    """A system on a test set."""

    system: str
    set: str


def units_missing(config: ReproduceConfig, jobs: Iterable[Job], sets: TestSets) -> int:
    """Units of work that are left. Files are only read; they are validated when they are written to."""
    return sum(
        _units(settings_of(config, job.system), item)
        for job in jobs
        for item in _left(inputs_of(config, job, sets), _peek(config.outputs(job.system, job.set)))
    )


def inputs_of(config: ReproduceConfig, job: Job, sets: TestSets) -> Sequence[Input]:
    """The inputs that a system takes of a test set."""
    return first_inputs(sets, job.set, config.num_for(job.system))


def settings_of(config: ReproduceConfig, system: str) -> Settings:
    """The settings with which a system runs."""
    found = SYSTEMS[system]
    if found.passes is not None:
        return config.settings_of_passes(found.passes, until_settled=found.until_settled)
    return config.settings(steps_of(found))


def is_complete(config: ReproduceConfig, job: Job, sets: TestSets) -> bool:
    """Whether a system has an output for every input of a test set."""
    return not _left(inputs_of(config, job, sets), _peek(config.outputs(job.system, job.set)))


def _units(settings: Settings, item: Input) -> int:
    """Units of work of an input: its steps, or 1 for a system without steps."""
    return steps_for(settings, item.constraints) or 1


def write_missing(
    config: ReproduceConfig, jobs: Sequence[Job], sets: TestSets, pack: Pack, listener: ProgressListener
) -> bool:
    """Write missing outputs, opening each system at most once; returns False if stopped."""
    for name in dict.fromkeys(job.system for job in jobs):
        writer: Writer | None = None
        for job in (one for one in jobs if one.system == name):
            writer = writer or open_system(SYSTEMS[name], pack)
            if not write_job(config, writer, job, sets, listener):
                return False
    return True


def write_job(config: ReproduceConfig, writer: Writer, job: Job, sets: TestSets, listener: ProgressListener) -> bool:
    """Write the missing outputs of a system for a test set; returns False if stopped. Existing ones are checked."""
    path, inputs = config.outputs(job.system, job.set), inputs_of(config, job, sets)
    if _left(inputs, kept := _peek(path)):
        return _write_set(config, writer, inputs, job, listener)
    batch.refuse_other_settings(writer, settings_of(config, job.system), kept, path)
    return True


def _write_set(
    config: ReproduceConfig, writer: Writer, inputs: Sequence[Input], job: Job, listener: ProgressListener
) -> bool:
    path, settings = config.outputs(job.system, job.set), settings_of(config, job.system)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror}") from error
    reported = 0

    def advance(num: int) -> bool:
        nonlocal reported
        reported += num
        listener.advance(num)
        return not listener.stopped()

    def done(num: int) -> None:  # a system reports each step of its longest chain, or nothing
        nonlocal reported
        listener.advance(sum(_units(settings, next(going)) for _ in range(num)) - reported)
        reported = 0

    with batch.results(path) as (file, kept):
        batch.refuse_other_settings(writer, settings, kept, path)
        left = _left(inputs, kept)
        going = iter(left)
        listener.say(f"{job.system} on {job.set}: {len(left)} of {len(inputs)} inputs")
        return batch.work(writer, settings, left, file, trace=True, keep_going=advance, done=done)


def _left(inputs: Sequence[Input], kept: Iterable[OutputRecord]) -> list[Input]:
    done = {key_of(line["id"]) for line in kept}
    return [item for item in inputs if item.key not in done]


def _peek(path: Path) -> list[OutputRecord]:
    """The readable records of an output file, without a lock."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []
    return [line for line in found if isinstance(line, dict) and "id" in line]


def records(path: Path, inputs: Sequence[Input]) -> list[OutputRecord]:
    """The records of a system in the order of the test set; records of other inputs are ignored."""
    found: dict[str, OutputRecord] = {}
    for where, record in records_of(path):
        key = key_of(record.get("id"))
        if key in found:
            raise InputError(f"{where}: id {record.get('id')!r} occurs twice; keep one line for each id")
        found[key] = record
    if missing := [item for item in inputs if item.key not in found]:
        raise InputError(f"{path} lacks id {missing[0].id!r} ({len(missing)} in all); run redraft reproduce again")
    chosen = [found[item.key] for item in inputs]
    if other := [item for item, record in zip(inputs, chosen, strict=True) if not _is_for(record, item)]:
        raise InputError(f"{path} holds id {other[0].id!r} for another input; choose another --out")
    return chosen


def _is_for(record: OutputRecord, item: Input) -> bool:
    """Whether a record is for an input. A system that is told no lengths may have run on a set without them."""
    given = record.get("input")
    known = {"lengths": item.given["lengths"]} if "lengths" in item.given else {}
    return isinstance(given, dict) and {**known, **given} == item.given


def outputs_after(records: Sequence[OutputRecord], steps: int, path: Path) -> list[SystemOutput]:
    """The outputs of the recorded chains after some steps."""
    return [output_of(_after(record, steps, path), str(path)) for record in records]


def _after(record: OutputRecord, steps: int, path: Path) -> OutputRecord:
    if record.get("steps") == steps or "earlier" not in record:  # a system without steps has only one output
        return record
    for earlier in record["earlier"]:
        if earlier["steps"] == steps:
            return {"id": record["id"], "text": earlier["text"], "steps": steps, "input": record["input"]}
    raise InputError(f"{path} has no draft after {steps} steps; choose another --out")
