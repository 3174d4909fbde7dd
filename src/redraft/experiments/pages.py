"""Export of a result as Markdown and as CSV."""

import csv
import io
from collections.abc import Iterator

from redraft.experiments.result import CLOSEST, Grid, Result, SampleGroup, TableCell, TableRow

_FIELDS = ("result", "metric", "unit", "row", "system", "note", "column")
_VALUES = ("ours", "low", "high", "paper", "signature", "num_inputs")
_SAMPLE_FIELDS = ("result", "given", "row", "system", "note", "ours", "paper")
DIGITS = {"%": 1, "words": 1}  # after the decimal point; three for other units


def number(value: float | None, unit: str) -> str:
    """A formatted value; a dash if there is none."""
    return "-" if value is None else f"{value:.{DIGITS.get(unit, 3)}f}"


def interval(cell: TableCell, unit: str) -> str:
    """The formatted confidence interval; empty if there is none."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{number(cell.low, unit)} to {number(cell.high, unit)}"


def heading(grid: Grid) -> str:
    """The heading of a grid: title, unit, and which way is better."""
    about = [grid.unit] if grid.unit else []
    about += [f"{grid.better} is {'best' if grid.better == CLOSEST else 'better'}"] if grid.better else []
    return grid.title + (f" ({', '.join(about)})" if about else "")


def row_title(row: TableRow) -> str:
    return f"{row.title} ({row.note})" if row.note else row.title


def markdown(result: Result) -> str:
    """The Markdown page of a result."""
    parts = [f"# {result.title}"]
    if result.alt:
        parts.append(f"![{result.alt}]({result.name}.png)")
    parts += [_grid(grid) for grid in result.grids]
    parts += [_group(group) for group in result.groups]
    if result.notes:
        parts.append("## Notes\n\n" + "\n".join(f"- {note}" for note in result.notes))
    return "\n\n".join(parts) + "\n"


def _grid(grid: Grid) -> str:
    lines = [
        "| | " + " | ".join(f"{_plain(column)} | paper" for column in grid.columns) + " |",
        "|---|" + "--:|--:|" * len(grid.columns),
    ]
    for row in grid.rows:
        cells = [f"{_ours(cell, grid)} | {number(cell.paper, grid.unit)}" for cell in row.cells]
        lines.append(f"| {_plain(row_title(row))} | " + " | ".join(cells) + " |")
    return f"## {heading(grid)}\n\n" + "\n".join(lines)


def _ours(cell: TableCell, grid: Grid) -> str:
    about = [interval(cell, grid.unit), num_note(cell, grid)]
    shown = ", ".join(part for part in about if part)
    return number(cell.ours, grid.unit) + (f" ({shown})" if shown else "")


def num_note(cell: TableCell, grid: Grid) -> str:
    """The number of inputs of a cell, if it differs from that of most cells of its grid; else empty."""
    num = grid.differing_num(cell)
    return "" if num is None or cell.ours is None else f"n = {num}"


def _group(group: SampleGroup) -> str:
    lines = ["| | here | in the paper |", "|---|---|---|"]
    for sample in group.samples:
        ours = _plain(sample.ours) or (f"*{sample.note}*" if sample.note else "-")
        lines.append(f"| {_plain(sample.title)} | {ours} | {_plain(sample.paper) or '-'} |")
    return f"## {_plain(group.given)}\n\n" + "\n".join(lines)


def _plain(words: str) -> str:
    """Escape the text for Markdown."""
    for letter in "\\`*_|<>[]":
        words = words.replace(letter, "\\" + letter)
    return _one_line(words)


def _one_line(words: str) -> str:
    return " ".join(words.split())


def as_csv(result: Result) -> str:
    """One line per value, or per sample sentence."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_SAMPLE_FIELDS if result.groups else (*_FIELDS, *_VALUES))
    writer.writerows(_sample_lines(result) if result.groups else _lines(result))
    return file.getvalue()


def _lines(result: Result) -> Iterator[tuple[object, ...]]:
    for grid in result.grids:
        for row in grid.rows:
            for column, cell in zip(grid.columns, row.cells, strict=True):
                about = (result.name, grid.metric, grid.unit, row.title, row.system, row.note, column)
                values = (cell.ours, cell.low, cell.high, cell.paper)
                yield (*map(_one_line, about), *values, _one_line(cell.signature), cell.num_inputs)


def _sample_lines(result: Result) -> Iterator[tuple[str, ...]]:
    for group in result.groups:
        for one in group.samples:
            about = (result.name, group.given, one.title, one.system, one.note, one.ours, one.paper)
            yield tuple(map(_one_line, about))
