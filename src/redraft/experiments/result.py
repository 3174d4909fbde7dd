"""The result of an experiment as a value: our figures beside the published ones. All pages are made from it."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redraft.errors import InputError

CLOSEST = "closest to 1"


@dataclass(frozen=True, slots=True)
class TableCell:
    """Our value with its confidence interval and number of inputs, and the paper's value; None where there is none."""

    ours: float | None = None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    signature: str = ""
    num_inputs: int | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table. ``title`` is the paper's; ``note`` says why we have no values."""

    title: str
    system: str
    cells: tuple[TableCell, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """The table of one metric: a row per system, a column per test set (or number of steps, or score).

    ``better`` is "lower", "higher", CLOSEST (for ratios to human text) or empty.
    """

    metric: str
    title: str
    unit: str
    better: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    @property
    def num_inputs(self) -> int | None:
        """The number of inputs of most cells; None if no cell states one."""
        found = Counter(cell.num_inputs for row in self.rows for cell in row.cells if cell.num_inputs is not None)
        return found.most_common(1)[0][0] if found else None

    def differing_num(self, cell: TableCell) -> int | None:
        """The number of inputs of a cell if it differs from that of most cells, else None."""
        return None if cell.num_inputs == self.num_inputs else cell.num_inputs


@dataclass(frozen=True, slots=True)
class SampleRow:
    """The sentence of a system here and in the paper; empty where there is none."""

    title: str
    system: str
    ours: str = ""
    paper: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """The sentences for one input, which is given by its keywords or its template."""

    given: str
    template: bool
    samples: tuple[SampleRow, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an experiment. ``alt`` describes the picture in words; empty if the page does not show it."""

    name: str
    title: str
    grids: tuple[Grid, ...] = ()
    groups: tuple[SampleGroup, ...] = ()
    notes: tuple[str, ...] = ()
    alt: str = ""


def to_json(result: Result) -> str:
    return json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n"


def from_json(content: str) -> Result:
    """Parse the output of ``to_json``; raises ValueError if the text is something else."""
    try:
        return _result(json.loads(content))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a result ({error})") from error


def read(path: Path) -> Result:
    """Read a result from its file."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a result of redraft reproduce ({error})") from error


def _result(given: Mapping[str, Any]) -> Result:
    return Result(
        name=_text(given["name"]),
        title=_text(given["title"]),
        grids=tuple(_grid(one) for one in given["grids"]),
        groups=tuple(_group(one) for one in given["groups"]),
        notes=tuple(_text(note) for note in given["notes"]),
        alt=_text(given["alt"]),
    )


def _grid(given: Mapping[str, Any]) -> Grid:
    texts = {key: _text(given[key]) for key in ("metric", "title", "unit", "better")}
    columns = tuple(_text(column) for column in given["columns"])
    rows = tuple(_row(one) for one in given["rows"])
    if any(len(row.cells) != len(columns) for row in rows):
        raise ValueError("a row with a different number of columns than its grid")
    return Grid(**texts, columns=columns, rows=rows)


def _row(given: Mapping[str, Any]) -> TableRow:
    texts = {key: _text(given[key]) for key in ("title", "system", "note")}
    return TableRow(**texts, cells=tuple(_cell(one) for one in given["cells"]))


def _cell(given: Mapping[str, Any]) -> TableCell:
    numbers = {key: None if given[key] is None else float(given[key]) for key in ("ours", "low", "high", "paper")}
    num_inputs = given.get("num_inputs")  # missing in files of earlier versions
    return TableCell(
        **numbers, signature=_text(given["signature"]), num_inputs=None if num_inputs is None else int(num_inputs)
    )


def _group(given: Mapping[str, Any]) -> SampleGroup:
    samples = tuple(SampleRow(**{key: _text(one[key]) for key in SampleRow.__slots__}) for one in given["samples"])
    return SampleGroup(_text(given["given"]), bool(given["template"]), samples)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
