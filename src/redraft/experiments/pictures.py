"""Pictures of results: our values and the paper's as dots on one scale, our sentences beside the paper's."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft.errors import OutputError
from redraft.experiments.pages import heading
from redraft.experiments.result import CLOSEST, Grid, Result, SampleGroup, TableRow
from redraft.experiments.systems import HUMAN
from redraft.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A palette that is safe for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_GREY = "#8a8a8a"
_SPREAD = 0.55  # fraction of a row's height over which its columns are spread
_WIDE, _LINE = 12.0, 0.16  # inches: width of a picture of sentences, height of its lines
_SIZE = 8  # font size in points
_COLUMNS = ((0.2, 20), (2.1, 74), (7.1, 74))  # left edge in inches and characters per line: row, ours, paper's


def dots(result: Result, path: Path) -> None:
    """A plot per metric that the paper has values for: a line per system, a colour per column."""
    grids = [grid for grid in result.grids if any(cell.paper is not None for row in grid.rows for cell in row.cells)]
    if not grids:
        message(result.title, result.notes, path)
        return
    across = min(len(grids), 2)  # more would be too small to read
    down = -(-len(grids) // across)
    tallest = max(len(grid.rows) for grid in grids)
    figure = new_figure(6 * across, (0.3 * tallest + 1.0) * down + 0.6)
    plots = figure.subplots(down, across, squeeze=False)
    for axes, grid in zip(plots.flat, grids, strict=False):
        _plot(axes, grid)
    for axes in list(plots.flat)[len(grids) :]:
        axes.set_axis_off()
    figure.suptitle(result.title, fontweight="bold")
    legend = _legend(grids[0].columns)
    figure.legend(handles=legend, loc="outside lower center", ncols=4 * across, frameon=False, fontsize=8)
    save(figure, path)


def _plot(axes: "Axes", grid: Grid) -> None:
    # The human reference is its own reference: its BLEU of 100 would compress the scale.
    rows = [row for row in grid.rows if not (row.system == HUMAN and grid.metric.startswith("bleu"))]
    for at, row in enumerate(rows):
        for index, cell in enumerate(row.cells):
            colour = colour_of(index)
            y = at + _SPREAD * ((index + 0.5) / len(row.cells) - 0.5)
            if cell.low is not None and cell.high is not None:
                axes.plot([cell.low, cell.high], [y, y], color=colour, linewidth=1.5, alpha=0.6)
            if cell.ours is not None:
                axes.plot(cell.ours, y, "o", color=colour, markersize=4.5)
            if cell.paper is not None:
                axes.plot(cell.paper, y, "D", color=colour, markersize=4.5, fillstyle="none")
    if grid.better == CLOSEST:
        axes.axvline(1.0, color=_GREY, linewidth=1.0, linestyle="--")
    axes.set_yticks(range(len(rows)), [short_title(row) for row in rows], parse_math=False, fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(heading(grid), fontsize=9, parse_math=False, wrap=True)
    tidy(axes)


def sentences(result: Result, path: Path) -> None:
    """The sentences of every system for every input, wrapped."""
    lines = [line for group in result.groups for line in _group_lines(group)]
    height = _LINE * (len(lines) + 4)
    figure = new_figure(_WIDE, height)
    figure.suptitle(result.title, fontweight="bold")
    for at, (cells, style) in enumerate(lines, 4):
        for (left, _), cell in zip(_COLUMNS, cells, strict=False):
            place = (left / _WIDE, 1 - _LINE * at / height)
            figure.text(*place, cell, fontsize=_SIZE, parse_math=False, **style)
    save(figure, path)


def _group_lines(group: SampleGroup) -> Iterator[tuple[Sequence[str], dict[str, Any]]]:
    """The lines of one input: the content of the columns, and the text style."""
    bold: dict[str, Any] = {"fontweight": "bold"}
    yield from (((part,), bold) for part in textwrap.wrap(group.given, sum(width for _, width in _COLUMNS)))
    yield ("", "here", "in the paper"), {"color": _GREY}
    for sample in group.samples:
        cells = (sample.title, sample.ours or sample.note or "-", sample.paper or "-")
        wrapped = [textwrap.wrap(cell, width) for cell, (_, width) in zip(cells, _COLUMNS, strict=True)]
        style = {"color": _GREY} if sample.note else {}
        yield from ((parts, style) for parts in zip_longest(*wrapped, fillvalue=""))
    yield (), {}


def short_title(row: TableRow) -> str:
    """A row's title with a short note if we have no values; the page gives the full reason."""
    return f"{row.title} ({row.note.partition(':')[0]})" if row.note else row.title


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _legend(columns: Sequence[str]) -> list[Any]:
    with extra("eval"):
        from matplotlib.lines import Line2D

    kinds = [
        Line2D([], [], color=_GREY, marker="o", linewidth=1.5, label="ours, 95 % interval"),
        Line2D([], [], color=_GREY, marker="D", fillstyle="none", linewidth=0, label="paper"),
    ]
    return kinds + [Line2D([], [], color=colour_of(i), linewidth=4, label=c) for i, c in enumerate(columns)]


def new_figure(width: float, height: float) -> "Figure":
    with extra("eval"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def tidy(axes: "Axes") -> None:
    """Use a light grid and no box."""
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)


def message(title: str, notes: Sequence[str], path: Path) -> None:
    """A picture that says why there is no plot."""
    figure = new_figure(8, 2.2)
    figure.suptitle(title, fontweight="bold")
    figure.text(0.5, 0.4, "\n".join(notes), ha="center", va="center", wrap=True, fontsize=10, parse_math=False)
    save(figure, path)


def save(figure: "Figure", path: Path) -> None:
    try:
        figure.savefig(path, dpi=120, format="png", metadata={"Software": None})
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
