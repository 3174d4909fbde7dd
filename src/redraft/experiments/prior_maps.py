"""Figure 4: heat maps of the learned prior for four drafts."""

from pathlib import Path

from redraft import text
from redraft.experiments.experiment import Experiment, ExperimentKind
from redraft.experiments.measurements import Measurements
from redraft.experiments.pictures import message
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.systems import UNAVAILABLE
from redraft.predict import heat_map
from redraft.predict.classifier import CLASSIFIER, Classifier, pack_classifier
from redraft.predict.learned import LABELLED

# The paper shows its drafts only as pictures. These illustrate what it describes; the second and third are its examples
# of missing words and of a wrong word.
_DRAFTS = {
    "keywords alone": "person home problems depression .",
    "words are missing": "Manufacturing suffer under the climate bill",
    "a word is wrong": "Manufacturing ( suffer under the climate bill .",
    "a whole sentence": "One person was sent home with mental health problems and severe depression .",
}


def _figure4(experiment: Experiment, measurements: Measurements) -> Result:
    pack = measurements.pack
    if CLASSIFIER not in pack.parts:
        note = f"{UNAVAILABLE}: pack {pack.name} has no classifier, so there is no learned prior to show."
        return Result(experiment.name, experiment.title, notes=(note,), alt=f"No picture: {note}")
    classifier = pack_classifier(pack)
    grids = tuple(_grid(classifier, name, draft) for name, draft in _DRAFTS.items())
    alt = "Four heat maps with a column per word and a row per action: the darker, the more likely the action."
    notes = ("Insert means before the word; the last column is the end of the sentence.",)
    return Result(experiment.name, experiment.title, grids, notes=notes, alt=alt)


def _grid(classifier: Classifier, name: str, draft: str) -> Grid:
    words = tuple(text.tokenise(draft))
    table = heat_map.prior_table(classifier, words, frozenset())
    rows = tuple(
        TableRow(action.value, "", tuple(TableCell(float(value)) for value in values))
        for action, values in zip(LABELLED, table, strict=True)
    )
    return Grid("prior", f"{name}: {draft}", "", "", (*words, heat_map.END), rows)


def _draw(result: Result, path: Path) -> None:
    import numpy as np

    if not result.grids:
        message(result.title, result.notes, path)
        return
    tables = [np.array([[cell.ours or 0.0 for cell in row.cells] for row in grid.rows]) for grid in result.grids]
    heat_map.draw([(grid.columns[:-1], table) for grid, table in zip(result.grids, tables, strict=True)], path)


EXPERIMENTS = (Experiment(ExperimentKind.FIGURE, 4, "what the classifier would revise", _figure4, _draw),)
