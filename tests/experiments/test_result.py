"""Results as JSON, Markdown and CSV."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.experiments import pages
from redraft.experiments.result import (
    CLOSEST,
    Grid,
    Result,
    SampleGroup,
    SampleRow,
    TableCell,
    TableRow,
    from_json,
    to_json,
)

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
_CELLS = st.builds(TableCell, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, _TEXTS, st.none() | st.integers(0, 9))


@st.composite
def _grids(draw: st.DrawFn) -> Grid:
    columns = draw(st.lists(_TEXTS, min_size=1, max_size=2))
    cells = st.lists(_CELLS, min_size=len(columns), max_size=len(columns)).map(tuple)
    rows = draw(st.lists(st.builds(TableRow, _TEXTS, _TEXTS, cells, _TEXTS), max_size=2))
    return Grid(draw(_TEXTS), draw(_TEXTS), draw(st.sampled_from(["%", "nats", ""])), "", tuple(columns), tuple(rows))


_GROUPS = st.builds(
    SampleGroup,
    _TEXTS,
    st.booleans(),
    st.lists(st.builds(SampleRow, _TEXTS, _TEXTS, _TEXTS, _TEXTS, _TEXTS), max_size=2).map(tuple),
)
_RESULTS = st.builds(
    Result,
    _TEXTS,
    _TEXTS,
    st.lists(_grids(), max_size=2).map(tuple),
    st.lists(_GROUPS, max_size=2).map(tuple),
    st.lists(_TEXTS, max_size=2).map(tuple),
    _TEXTS,
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["grids", "name", "x"]), inner),
    max_leaves=8,
)


@given(_RESULTS)
def test_a_result_is_read_as_it_was_written(result: Result) -> None:
    assert from_json(to_json(result)) == result


@given(_JSON.map(json.dumps) | st.text(max_size=30))
def test_anything_else_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(content)


@given(_RESULTS.filter(lambda result: not result.groups))
def test_every_figure_is_in_the_csv(result: Result) -> None:
    rows = list(csv.DictReader(io.StringIO(pages.as_csv(result), newline="")))
    cells = [cell for grid in result.grids for row in grid.rows for cell in row.cells]
    assert [row["paper"] for row in rows] == ["" if cell.paper is None else str(cell.paper) for cell in cells]
    assert len(rows) == len(cells)


@given(_RESULTS)
def test_a_row_of_markdown_stays_a_row(result: Result) -> None:
    """Whatever a title or a sentence holds, a table has as many lines as rows, each with as many cells."""
    lines = [line for line in pages.markdown(result).split("\n") if line.startswith("|")]
    rows = sum(len(grid.rows) + 2 for grid in result.grids) + sum(len(group.samples) + 2 for group in result.groups)
    assert len(lines) >= rows


def test_a_ratio_to_human_text_is_best_at_1() -> None:
    assert pages.heading(Grid("r", "NLL ratio", "", CLOSEST, (), ())) == "NLL ratio (closest to 1 is best)"


def test_a_cell_of_fewer_inputs_states_their_number() -> None:
    cells = (TableCell(1.0, num_inputs=200), TableCell(2.0, 1.0, 3.0, num_inputs=37), TableCell(3.0, num_inputs=200))
    grid = Grid("fit", "Fit", "nats", "", ("a", "b", "c"), (TableRow("GBS", "gbs", cells),))
    shown = pages.markdown(Result("table1", "Table 1", (grid,)))
    assert "| GBS | 1.000 | - | 2.000 (1.000 to 3.000, n = 37) | - | 3.000 | - |" in shown
    rows = csv.DictReader(io.StringIO(pages.as_csv(Result("table1", "Table 1", (grid,))), newline=""))
    assert [row["num_inputs"] for row in rows] == ["200", "37", "200"]


def test_results_without_numbers_of_inputs_are_read() -> None:
    cells = (TableCell(1.0, num_inputs=200),)
    given = json.loads(to_json(Result("t", "T", (Grid("m", "M", "", "", ("a",), (TableRow("r", "s", cells),)),))))
    del given["grids"][0]["rows"][0]["cells"][0]["num_inputs"]
    assert from_json(json.dumps(given)).grids[0].rows[0].cells[0] == TableCell(1.0)


def test_ours_beside_the_paper() -> None:
    cells = (TableCell(4.5678, 4.1, 5.0, 4.549), TableCell(paper=4.564))
    rows = (
        TableRow("L-MCMC (200)", "l-mcmc", cells),
        TableRow("GBS", "gbs", (TableCell(), TableCell()), "unavailable"),
    )
    shown = pages.markdown(Result("table1", "Table 1", (Grid("nll", "NLL", "nats", "lower", ("k=1", "k=2"), rows),)))
    assert "## NLL (nats, lower is better)" in shown
    assert "| L-MCMC (200) | 4.568 (4.100 to 5.000) | 4.549 | - | 4.564 |" in shown
    assert "| GBS (unavailable) | - | - | - | - |" in shown
