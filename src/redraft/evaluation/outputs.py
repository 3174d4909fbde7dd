"""Reading outputs and references from files, and matching them by id."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redraft import checks, text
from redraft.errors import InputError
from redraft.sentence import Action

_REFERENCES = ("reference", "references")  # keys of a single sentence and of a list
_MOST = 1e15  # limit of steps and seconds; excludes infinity and numbers beyond the range of floats


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The part of a trace entry that is evaluated."""

    action: Action
    accepted: bool


@dataclass(frozen=True)
class SystemOutput:
    """One line of an output file. Words are tokenised from the text, so that outputs of all programs are comparable."""

    id: str
    text: str
    words: tuple[str, ...]
    input: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] = ()  # one or more human texts for the same input
    steps: int | None = None
    seconds: float | None = None
    nll: float | None = None  # per word, by the target model
    target: str | None = None  # name of that model
    trace: tuple[TraceStep, ...] = ()

    @property
    def reference(self) -> tuple[str, ...] | None:
        """The words of the first reference."""
        return tuple(text.tokenise(self.references[0])) if self.references else None


def read_outputs(path: Path) -> list[SystemOutput]:
    """The outputs of a JSONL file, in order. Ids are compared as text."""
    outputs = [output_of(record, where) for where, record in records_of(path)]
    if not outputs:
        raise InputError(f"{path} is empty; write outputs into it with redraft generate --input FILE --output {path}")
    _refuse_doubled([one.id for one in outputs], path)
    return outputs


def read_references(path: Path, ids: Sequence[str]) -> list[tuple[str, ...]]:
    """One or more references for each of the given ids.

    The file has JSON lines with id and reference (or references, a list), or plain text with one reference per line in
    the order of the ids.
    """
    lines = _lines(path)
    if not any(lines):
        raise InputError(f"{path} is empty; give a reference for each of the {len(ids)} outputs")
    if next(line for line in lines if line).startswith("{"):
        return _references_by_id(path, ids)
    if len(lines) != len(ids):
        raise InputError(
            f"{path} has {len(lines)} references for {len(ids)} outputs; give one per line, in the same order"
        )
    return [_references({"reference": line}, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def own_references(outputs: Sequence[SystemOutput]) -> list[tuple[str, ...]] | None:
    """The references in the outputs themselves; None if no output has any."""
    found = [one.references for one in outputs if one.references]
    if not found:
        return None
    if len(found) < len(outputs):
        lacking = next(one.id for one in outputs if not one.references)
        raise InputError(
            f"{len(outputs) - len(found)} of {len(outputs)} outputs have no reference (first: id {lacking!r}); "
            f"give all with --references FILE"
        )
    return found


def in_order_of(outputs: Sequence[SystemOutput], others: Sequence[SystemOutput], where: Path) -> list[SystemOutput]:
    """The outputs of the other system in the order of the first one; both must be for the same inputs."""
    by_id = {one.id: one for one in others}
    _refuse_other_ids([one.id for one in outputs], list(by_id), where)
    for one in outputs:
        if one.input and by_id[one.id].input and _compared_fields(one) != _compared_fields(by_id[one.id]):
            raise InputError(
                f"{where} has id {one.id!r} for another input; only outputs for the same inputs can be compared"
            )
    return [by_id[one.id] for one in outputs]


def _compared_fields(output: SystemOutput) -> tuple[Any, ...]:
    """What two outputs must have in common to be comparable."""
    return tuple(output.input.get(name) for name in ("keywords", "template", *_REFERENCES))


def _references_by_id(path: Path, ids: Sequence[str]) -> list[tuple[str, ...]]:
    records = [(_id(record, where), record, where) for where, record in records_of(path)]
    found = [name for name, _, _ in records]
    _refuse_doubled(found, path)
    _refuse_other_ids(ids, found, path)
    by_id = {name: _references(record, where) for name, record, where in records}
    return [by_id[name] for name in ids]


def _refuse_doubled(ids: Sequence[str], path: Path) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise InputError(f"{path}: id {name!r} occurs twice; keep one line for each id")
        seen.add(name)


def _refuse_other_ids(wanted: Sequence[str], found: Sequence[str], path: Path) -> None:
    known, expected = set(found), set(wanted)
    if missing := [name for name in wanted if name not in known]:
        raise InputError(f"{path} lacks {_some(missing)} of the outputs; it must hold the same ids")
    if extra := [name for name in found if name not in expected]:
        raise InputError(f"{path} has {_some(extra)} that the outputs lack; it must hold the same ids")


def _some(ids: Sequence[str]) -> str:
    return f"id {ids[0]!r}" if len(ids) == 1 else f"{len(ids)} ids (first: {ids[0]!r})"


def _lines(path: Path, *, torn: bool = False) -> list[str]:
    """The lines of a file; with ``torn``, an unterminated last line is dropped."""
    try:
        given = path.read_bytes()
        content = (given[: given.rfind(b"\n") + 1] if torn else given).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    # Not splitlines, which also splits at Unicode separators inside a sentence. "\r" is stripped.
    lines = [line.strip() for line in content.split("\n")]
    return lines[:-1] if not lines[-1] else lines


def records_of(path: Path, *, torn: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """JSON objects and their locations; empty lines are skipped, and with ``torn`` an unterminated last line."""
    lines = [(f"{path}, line {number}", line) for number, line in enumerate(_lines(path, torn=torn), 1) if line]
    return [(where, _record(line, where)) for where, line in lines]


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not a JSON object: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"{where} is not a JSON object but {_kind(record)}")
    return record


def output_of(record: Mapping[str, Any], where: str) -> SystemOutput:
    """Parse an output from its JSON object; ``where`` is its location for error messages."""
    shown = record.get("text")
    if not isinstance(shown, str):
        raise InputError(f'{where} has no "text"; each line needs "id" and "text"')
    given = record.get("input")
    if given is not None and not isinstance(given, dict):
        raise InputError(f"{where}: input must be an object, not {_kind(given)}")
    given = given or {}
    carrier = next((one for one in (given, record) if any(one.get(key) is not None for key in _REFERENCES)), None)
    steps = _number(record, "steps", where)
    return SystemOutput(
        id=_id(record, where),
        text=shown,
        words=tuple(text.tokenise(shown)),
        # The list of --allow is only named in results, so that no metric checks it.
        input={key: value for key, value in given.items() if key != "allow" or isinstance(value, list)},
        references=() if carrier is None else _references(carrier, where),
        steps=None if steps is None else int(steps),
        seconds=_number(record, "seconds", where),
        nll=_number(record, "nll", where, least=-_MOST),
        target=_target(record.get("signature")),
        trace=_trace(record.get("trace"), where),
    )


def _id(record: Mapping[str, Any], where: str) -> str:
    if "id" not in record:
        raise InputError(f'{where} has no "id"; give each line a unique text or whole number')
    try:
        checks.check_id(record["id"])
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return str(record["id"])


def _references(record: Mapping[str, Any], where: str) -> tuple[str, ...]:
    values = record["references"] if record.get("references") is not None else [record.get("reference")]
    if not isinstance(values, list) or not values:
        raise InputError(f"{where}: references must be a list of sentences")
    if not all(isinstance(value, str) and value.strip() for value in values):
        raise InputError(f"{where} has no reference; give the sentence as text")
    return tuple(values)


def _number(record: Mapping[str, Any], key: str, where: str, least: float = 0) -> float | None:
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < _MOST:
        raise InputError(f"{where}: {key} must be a number of at least {least:g}, not {value!r}")
    return float(value)


def _target(signature: Any) -> str | None:
    parts = signature.split("|") if isinstance(signature, str) else []
    return next((part.removeprefix("target:") for part in parts if part.startswith("target:")), None)


def _trace(value: Any, where: str) -> tuple[TraceStep, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{where}: trace must be a list, not {_kind(value)}")
    return tuple(_step(one, f"{where}, step {number} of its trace") for number, one in enumerate(value, 1))


def _step(value: Any, where: str) -> TraceStep:
    actions = [action.value for action in Action]
    if not isinstance(value, dict) or value.get("action") not in actions or type(value.get("accepted")) is not bool:
        raise InputError(f"{where} needs an action ({', '.join(actions)}) and accepted (true, false)")
    action = Action(value["action"])
    old = value.get("old") if action in (Action.REPLACE, Action.VARY) else None
    same = old is not None and old == value.get("new")
    return TraceStep(action, value["accepted"] and not same)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", dict: "an object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), repr(value))
