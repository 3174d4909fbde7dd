"""The published figures as data: nothing is lost between them and the rows of our tables."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.blanks import told
from redraft.experiments import acceptance_figures, inputs, metric_tables, paper_samples, sample_tables
from redraft.experiments import paper_values as paper
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.paper_values import PaperValues
from redraft.experiments.systems import HUMAN, SYSTEMS, TEMPLATE
from redraft.recipes import RECIPES
from redraft.records import constraints_of
from redraft.text import tokenise

_NAMES = st.from_regex(r"[A-Za-z(][A-Za-z()/+-]*( [A-Za-z()/+0-9-]+)*", fullmatch=True)
_VALUES = st.none() | st.decimals(0, 100, places=3).map(float)


@given(st.dictionaries(_NAMES, st.lists(_VALUES, min_size=1, max_size=6).map(tuple), min_size=1))
def test_figures_are_read_as_they_stand(figures: PaperValues) -> None:
    lines = [
        f"  {name}    " + "   ".join("-" if value is None else str(value) for value in values)
        for name, values in figures.items()
    ]
    assert paper.parse("\n" + "\n".join(lines) + "\n ") == figures


@pytest.mark.parametrize(
    ("figures", "lines", "columns"),
    [
        *((figures, metric_tables.TABLE1, inputs.KEYWORDS) for figures in paper.TABLE1.values()),
        (paper.TABLE2, metric_tables.TABLE2, inputs.KEYWORDS),
        *((figures, metric_tables.TABLE4, inputs.INFILLING) for figures in paper.TABLE4.values()),
        (paper.TABLE6, metric_tables.TABLE6, inputs.KEYWORDS),
    ],
)
def test_every_published_row_is_in_a_table(figures: PaperValues, lines: tuple, columns: tuple) -> None:
    assert set(figures) <= {line.key for line in lines}
    assert {len(values) for values in figures.values()} == {len(columns)}


def test_logged_acceptance_has_a_line_for_each_system() -> None:
    assert set(paper.LOGGED_ACCEPTANCE) == {
        line.key for line in (*acceptance_figures.FIGURE2, *acceptance_figures.FIGURE3)
    }


def test_every_printed_sample_has_a_row_and_holds_what_was_given() -> None:
    printed = [*paper_samples.TABLE3, *paper_samples.TABLE8, *paper_samples.TABLE9]
    titles = {line.title for line in (*sample_tables._KEYWORDS, *sample_tables._TEMPLATES)}
    assert len({one.id for one in printed}) == len(printed) == 9
    for one in printed:
        assert set(one.outputs) <= titles
        constraints = constraints_of(one.input)
        for sentence in (one.reference, *one.outputs.values()):
            assert all(word in sentence for word in constraints.locked_words if word not in (".", ","))


def test_printed_templates_have_the_lengths_of_their_references() -> None:
    for one in paper_samples.TABLE9:
        constraints = told(constraints_of(one.input))
        assert constraints.fixes_lengths
        assert not constraints.unmet(tokenise(one.reference))


def test_rows_say_which_systems_are_told_the_lengths_and_passes_are_their_steps() -> None:
    config = ReproduceConfig(Path(), Path(), steps=100)
    shown = {row.system: row.shown(config) for row in metric_tables.TABLE4}
    is_told = {name for name, title in shown.items() if title.endswith(", told the lengths")}
    assert is_told == {"flm", "blm", "fb-lm", "bayesian-mcmc", "tigs-random", "tigs-flm"}
    assert {row.own_steps(config) for row in metric_tables.TABLE4 if row.title.startswith(("TIGS", "Bay"))} == {10}
    assert {row.own_steps(config) for row in metric_tables.TABLE4 if row.title == "L-MCMC"} == {25, 100}


def test_every_recipe_is_a_system() -> None:
    assert set(RECIPES) <= set(SYSTEMS)


def test_the_rows_without_a_model_are_systems_too() -> None:
    derived = {name for name, system in SYSTEMS.items() if system.derive is not None}
    assert derived == {HUMAN, TEMPLATE}
    assert [name for name, system in SYSTEMS.items() if not system.is_judged] == [TEMPLATE]
