"""An experiment: a table or figure of the paper, what it needs, and how its result is made."""

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from redraft.evaluation.evaluate import swapped_texts_to_judge, texts_to_judge
from redraft.evaluation.metric import Figure
from redraft.experiments import paper_values as paper
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.inputs import TestSetColumn
from redraft.experiments.judge_scores import JudgeTexts
from redraft.experiments.measurements import Measurements, WrittenOutputs
from redraft.experiments.result import CLOSEST, Grid, Result, TableCell, TableRow
from redraft.experiments.run_systems import Job
from redraft.experiments.systems import SYSTEMS, steps_of
from redraft.recipes import RECIPES, BlankRecipe


class OutputRequest(NamedTuple):
    """A system's outputs for a test set after some steps."""

    system: str
    set: str
    steps: int


def no_outputs(config: ReproduceConfig) -> list[OutputRequest]:
    """For experiments that run no system."""
    return []


def no_texts(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> JudgeTexts:
    """For experiments without a judge."""
    return JudgeTexts()


class ExperimentKind(enum.Enum):
    """What the paper prints. Tables come before figures."""

    TABLE = "table"
    FIGURE = "figure"


BuildResult = Callable[["Experiment", Measurements], Result]
DrawPicture = Callable[[Result, Path], None]


@dataclass(frozen=True)
class Experiment:
    """A table or figure, which declares everything that it needs.

    build        makes the result from the measurements
    draw         draws the result into a PNG file
    requests     outputs of systems that it needs
    judged       texts that the judge must score
    data_files   files of the data folder that it reads, besides the test sets of the requests
    """

    kind: ExperimentKind
    number: int
    subject: str
    build: BuildResult
    draw: DrawPicture
    requests: Callable[[ReproduceConfig], Iterable[OutputRequest]] = no_outputs
    judged: Callable[[WrittenOutputs, Iterable[OutputRequest]], JudgeTexts] = no_texts
    data_files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind.value}{self.number}"

    @property
    def label(self) -> str:
        return f"{self.kind.value.capitalize()} {self.number}"

    @property
    def title(self) -> str:
        return f"{self.label}: {self.subject}"


@dataclass(frozen=True)
class RowSpec:
    """A row of a table: its title in the paper, the system that fills it, and the steps that the paper states."""

    title: str
    system: str
    steps: int | None = None

    def shown(self, config: ReproduceConfig) -> str:
        """The title with our number of steps, and the paper's if it differs; a system that is told more says so."""
        if isinstance(RECIPES.get(self.system), BlankRecipe):
            return f"{self.title}, told the lengths"
        system = SYSTEMS[self.system]
        stated = system.passes or self.steps
        if stated is None:
            return self.title
        own = config.own_steps(stated)
        unit = " passes" if system.passes else ""
        steps = f"{own}{unit}" if own == stated else f"{own}{unit}; paper: {stated}"
        return f"{self.title} ({steps}{', until settled' if system.until_settled else ''})"

    @property
    def key(self) -> str:
        """The key of the row in the paper's values."""
        return self.title if self.steps is None else f"{self.title} ({self.steps})"

    def own_steps(self, config: ReproduceConfig) -> int:
        """Our number of steps; where the row states none, that of the system."""
        return config.own_steps(self.steps or steps_of(SYSTEMS[self.system]) or paper.STEPS)


def all_pairs(
    rows: Sequence[RowSpec], columns: Sequence[TestSetColumn]
) -> Callable[[ReproduceConfig], list[OutputRequest]]:
    """Requests for every row on every test set."""
    return lambda config: [
        OutputRequest(row.system, column.set, row.own_steps(config)) for row in rows for column in columns
    ]


def jobs_of(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> list[Job]:
    """The systems to run, and on which test sets."""
    jobs = dict.fromkeys(Job(one.system, one.set) for one in requests if SYSTEMS[one.system].derive is None)
    return [job for job in jobs if written.has(job.system, job.set) and written.is_selected(job.system)]


def texts_to_read(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> JudgeTexts:
    """Texts for NLL, the two-sample test and keyword fit."""
    materials = [written.material(*one) for one in _judged(written, requests)]
    read = [text for material in materials for text in texts_to_judge(material)]
    return JudgeTexts(read, [text for material in materials for text in swapped_texts_to_judge(material)])


def texts_to_score(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> JudgeTexts:
    """Texts for NLL and its ratio to the human references."""
    materials = [written.material(*one) for one in _judged(written, requests)]
    return JudgeTexts(scored=[text for material in materials for text in texts_to_judge(material)])


def _judged(written: WrittenOutputs, requests: Iterable[OutputRequest]) -> list[OutputRequest]:
    return [one for one in requests if SYSTEMS[one.system].is_judged and written.has(one.system, one.set)]


@dataclass(frozen=True)
class TableMetric:
    """A metric of ``evaluation`` as a table shows it: title, unit, which way is better, and the paper's values."""

    name: str
    title: str
    unit: str
    better: str
    paper: paper.PaperValues


def ratio_to_human(
    measurements: Measurements,
    published: paper.PaperValues,
    rows: Sequence[RowSpec],
    columns: Sequence[TestSetColumn],
) -> Grid:
    """NLL divided by that of the human references, which makes different judges comparable."""
    stated = {
        name: tuple(None if value is None else value / paper.HUMAN_NLL for value in values)
        for name, values in published.items()
    }
    metric = TableMetric("nll_token_to_human", "NLL as a ratio to the human reference", "", CLOSEST, stated)
    return grid(measurements, metric, rows, columns)


def grid(
    measurements: Measurements, metric: TableMetric, rows: Sequence[RowSpec], columns: Sequence[TestSetColumn]
) -> Grid:
    """One metric of all rows on all test sets; rows without any value are left out."""
    config = measurements.config

    def find(row: RowSpec, column: TestSetColumn) -> Figure | None:
        return measurements.figures(row.system, column.set, row.own_steps(config)).get(metric.name)

    made = (
        TableRow(
            row.shown(config),
            row.system,
            tuple(_cell(metric, row, i, find(row, column)) for i, column in enumerate(columns)),
            measurements.written.absence(row.system) or "",
        )
        for row in rows
    )
    titles = tuple(column.title for column in columns)
    kept = tuple(row for row in made if any(c.ours is not None or c.paper is not None for c in row.cells))
    return Grid(metric.name, metric.title, metric.unit, metric.better, titles, kept)


def _cell(metric: TableMetric, row: RowSpec, index: int, found: Figure | None) -> TableCell:
    stated = metric.paper.get(row.key, ())
    return cell_of(found, stated[index] if index < len(stated) else None)


def cell_of(found: Figure | None, published: float | None) -> TableCell:
    """Our figure beside the value of the paper."""
    if found is None:
        return TableCell(paper=published)
    return TableCell(found.value, found.low, found.high, published, found.signature, found.num_inputs)


def judge_name(measurements: Measurements) -> str:
    """The name of the judge of fluency."""
    return measurements.scores.judge if measurements.scores else "no judge"


def nll(measurements: Measurements, published: paper.PaperValues) -> TableMetric:
    """NLL per token by the judge."""
    title = f"NLL per token by {judge_name(measurements)}; the paper's by GPT-2"
    return TableMetric("nll_token", title, "nats", "", published)


def judge_notes(measurements: Measurements) -> list[str]:
    """Notes for readers of NLL values."""
    if measurements.scores is None:
        return ["There was no judge, so we have no NLL. Get a judge with: redraft pull smollm2"]
    judge = measurements.scores.judge
    own = f"{judge} is also the target of the systems named after it, which favours them here: use another judge."
    other = "The judge is not the paper's GPT-2: compare ratios to the human reference, not NLL itself. "
    if Path(judge).name == "gpt2":
        other = ""
    return [
        *([own] if judge in {recipe.target for recipe in RECIPES.values()} else []),
        f"{other}The paper states the human NLL only for infilling ({paper.HUMAN_NLL}); its ratios here use that value "
        "for both tasks.",
    ]
