"""The samples of a report: inputs, the draft of each system, and its trace."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redraft import text
from redraft.errors import InputError, RedraftError
from redraft.evaluation.outputs import output_of, records_of
from redraft.experiments import inputs
from redraft.experiments.config import outputs_path
from redraft.experiments.replay import Segment, given_words, replay, segments, start_of
from redraft.experiments.run_systems import OutputRecord
from redraft.experiments.systems import HUMAN, SYSTEMS
from redraft.records import constraints_of
from redraft.sentence import Action, Constraints, Sentence

_TITLES = {
    **{column.set: f"keywords, {column.title}" for column in inputs.KEYWORDS},
    **{column.set: f"infilling, {column.title}" for column in inputs.INFILLING},
    inputs.PAPER_KEYWORDS: "the paper's keywords",
    inputs.PAPER_TEMPLATES: "the paper's templates",
}


def sample_sets(folder: Path, num: int) -> list[dict[str, Any]]:
    """The first inputs of each test set that was run, with the drafts of all systems."""
    found = []
    for name, title in _TITLES.items():
        written = {system: _first(folder, system, name, num) for system in SYSTEMS}
        written = {system: records for system, records in written.items() if records}
        if written:
            ids = list(dict.fromkeys(key for records in written.values() for key in records))
            shown = [_input(key, written) for key in ids[:num]]
            found.append(
                {"name": name, "title": title, "template": "templates" in name or "infill" in name, "inputs": shown}
            )
    return found


def _first(folder: Path, system: str, name: str, num: int) -> dict[str, tuple[str, OutputRecord]]:
    """The first records of a file by id, each with its location."""
    path = outputs_path(folder, system, name)
    if not path.exists():
        return {}
    found = records_of(path, torn=True)[:num]
    return {output_of(record, where).id: (where, record) for where, record in found}


def _input(key: str, written: Mapping[str, Mapping[str, tuple[str, OutputRecord]]]) -> dict[str, Any]:
    there = {system: records[key] for system, records in written.items() if key in records}
    where, first = next(iter(there.values()))
    try:
        given = dict(first["input"])
        constraints = constraints_of(given)
        drafts = [_reference(given, constraints)] if given.get("reference") else []
        drafts += [_draft(system, record, constraints) for system, (where, record) in there.items()]
    except (KeyError, TypeError, ValueError, RedraftError) as error:
        raise InputError(f"{where} was not written by redraft reproduce ({error})") from error
    return {"id": key, "given": given.get("template") or ", ".join(given["keywords"]), "drafts": drafts}


def _reference(given: Mapping[str, Any], constraints: Constraints) -> dict[str, Any]:
    shown = _marked(text.tokenise(given["reference"]), constraints)
    return {
        "system": HUMAN,
        "title": "Human reference",
        "text": shown,
        "nll": None,
        "steps": 0,
        "tried": 0,
        "trace": [],
    }


def _draft(system: str, record: OutputRecord, constraints: Constraints) -> dict[str, Any]:
    trace = record.get("trace") or []
    return {
        "system": system,
        "title": system,
        "text": _marked(text.tokenise(record["text"]), constraints),
        "nll": float(record["nll"]),
        "target": output_of(record, system).target,
        "steps": int(record["steps"]),
        "tried": len(trace),
        "trace": _moments(start_of(record, constraints), trace),
    }


def _marked(words: Sequence[str], constraints: Constraints) -> list[Segment]:
    """Mark keywords; in a template, mark the words that were filled in, as the paper does."""
    given = given_words(words, constraints)
    return segments(words, given if constraints.template is None else [not one for one in given])


def _moments(start: Sentence, trace: Sequence[OutputRecord]) -> list[tuple[int, str, float | None, list[Segment]]]:
    """Step, action, NLL per word and text of the start and of each accepted revision, with the new word marked."""
    if not trace:
        return []
    found = []
    for moment in replay(start, trace):
        edit, words = moment.edit, moment.sentence.words
        new = edit.position if edit is not None and edit.action in (Action.REPLACE, Action.INSERT) else None
        shown = segments(words, [i == new for i in range(len(words))])
        nll = None if moment.nll is None else round(moment.nll, 3)
        found.append((moment.step, "start" if edit is None else edit.action.value, nll, shown))
    return found
