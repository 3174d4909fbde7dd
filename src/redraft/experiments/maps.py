"""Figure 4: the learned prior of four drafts as heat maps."""

from pathlib import Path

from redraft import text
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import Experiment, nothing
from redraft.experiments.pictures import message
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.systems import NOT_YET
from redraft.predict import heat_map
from redraft.predict.classifier import CLASSIFIER, Classifier, pack_classifier
from redraft.predict.learned import LABELLED

# The paper's own drafts are in its pictures alone. These show what it describes; the second and third are its examples
# of a missing and of a wrong word.
_DRAFTS = {
    "keywords alone": "person home problems depression .",
    "words are missing": "Manufacturing suffer under the climate bill",
    "a word is wrong": "Manufacturing ( suffer under the climate bill .",
    "a whole sentence": "One person was sent home with mental health problems and severe depression .",
}
_TITLE = "Figure 4: what the classifier would revise"


def _figure4(bench: Bench) -> Result:
    if CLASSIFIER not in bench.pack.parts:
        note = f"{NOT_YET}: pack {bench.pack.name} has no classifier, so there is no learned prior to show."
        return Result("figure4", _TITLE, notes=(note,), alt=f"No picture: {note}")
    classifier = pack_classifier(bench.pack)
    grids = tuple(_grid(classifier, name, draft) for name, draft in _DRAFTS.items())
    alt = "Four heat maps, words across and actions down: the darker, the likelier is the action there."
    notes = ("Insert means before the word; the last column is the end of the sentence.",)
    return Result("figure4", _TITLE, grids, notes=notes, alt=alt)


def _grid(classifier: Classifier, name: str, draft: str) -> Grid:
    words = tuple(text.tokenise(draft))
    table = heat_map.prior_table(classifier, words, frozenset())
    rows = tuple(
        TableRow(action.value, "", tuple(TableCell(float(value)) for value in values))
        for action, values in zip(LABELLED, table, strict=True)
    )
    return Grid("prior", f"{name}: {draft}", "", "", (*words, heat_map.END), rows)


def _draw(result: Result, bench: Bench, path: Path) -> None:
    import numpy as np

    if not result.grids:
        message(result.title, result.notes, path)
        return
    tables = [np.array([[cell.ours or 0.0 for cell in row.cells] for row in grid.rows]) for grid in result.grids]
    heat_map.draw([(grid.columns[:-1], table) for grid, table in zip(result.grids, tables, strict=True)], path)


EXPERIMENTS = (Experiment("figure4", lambda run: [], _figure4, nothing, _draw),)
