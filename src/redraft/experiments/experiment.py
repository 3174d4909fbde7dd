"""What an experiment is: the systems and sets that it looks at, and how it makes a result of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from redraft.evaluation.evaluate import swapped_texts_to_judge, texts_to_judge
from redraft.evaluation.metric import Figure
from redraft.experiments import paper
from redraft.experiments.bench import Bench
from redraft.experiments.outputs import HUMAN, TEMPLATE, Job
from redraft.experiments.result import CLOSEST, Grid, Result, TableCell, TableRow
from redraft.experiments.run import ReproduceConfig
from redraft.experiments.scores import JudgeTexts
from redraft.experiments.sets import TestSetColumn
from redraft.recipes import RECIPES


@dataclass(frozen=True)
class RowSpec:
    """A row of the paper, the system that stands for it, and its steps where the paper states them."""

    title: str
    system: str
    steps: int | None = None

    def shown(self, run: ReproduceConfig) -> str:
        """The row's title with our steps, and the paper's where they differ."""
        if self.steps is None:
            return self.title
        own = run.own_steps(self.steps)
        steps = str(own) if own == self.steps else f"{own}; in full {self.steps}"
        return f"{self.title} ({steps})"

    @property
    def key(self) -> str:
        """What the paper's figures are filed under."""
        return self.title if self.steps is None else f"{self.title} ({self.steps})"

    def own_steps(self, run: ReproduceConfig) -> int:
        return run.own_steps(self.steps or paper.STEPS)


class OutputRequest(NamedTuple):
    """A system's outputs for a set after some steps."""

    system: str
    set: str
    steps: int


BuildResult = Callable[[Bench], Result]
DrawPicture = Callable[[Result, Bench, Path], None]


@dataclass(frozen=True)
class Experiment:
    """``looks`` says what is needed, ``judged`` which texts the judge must score, ``draw`` makes the picture."""

    name: str
    looks: Callable[[ReproduceConfig], Iterable[OutputRequest]]
    build: BuildResult
    judged: Callable[[Bench, Iterable[OutputRequest]], JudgeTexts]
    draw: DrawPicture


def all_pairs(
    lines: Sequence[RowSpec], columns: Sequence[TestSetColumn]
) -> Callable[[ReproduceConfig], list[OutputRequest]]:
    """Every line on every set."""
    return lambda run: [
        OutputRequest(line.system, column.set, line.own_steps(run)) for line in lines for column in columns
    ]


def jobs_of(bench: Bench, looks: Iterable[OutputRequest]) -> list[Job]:
    """The systems to run, on which sets: those that are there."""
    jobs = dict.fromkeys(Job(look.system, look.set) for look in looks if look.system not in (HUMAN, TEMPLATE))
    return [job for job in jobs if bench.has(job.system, job.set) and not bench.is_left_out(job.system)]


def texts_to_read(bench: Bench, looks: Iterable[OutputRequest]) -> JudgeTexts:
    """For NLL, the two-sample test and keyword fit."""
    materials = [bench.material(*look) for look in _judged(bench, looks)]
    read = [text for material in materials for text in texts_to_judge(material)]
    return JudgeTexts(read, [text for material in materials for text in swapped_texts_to_judge(material)])


def texts_to_score(bench: Bench, looks: Iterable[OutputRequest]) -> JudgeTexts:
    """For NLL and its ratio to the human references."""
    materials = [bench.material(*look) for look in _judged(bench, looks)]
    return JudgeTexts(scored=[text for material in materials for text in texts_to_judge(material)])


def _judged(bench: Bench, looks: Iterable[OutputRequest]) -> list[OutputRequest]:
    return [look for look in looks if look.system != TEMPLATE and bench.has(look.system, look.set)]


def nothing(bench: Bench, looks: Iterable[OutputRequest]) -> JudgeTexts:
    """For experiments without a judge."""
    return JudgeTexts()


@dataclass(frozen=True)
class TableMetric:
    """A metric of ``evaluation``, what a table calls it, which way is better, and the paper's figures for it."""

    name: str
    title: str
    unit: str
    better: str
    paper: paper.PaperValues


def ratio_to_human(
    bench: Bench, published: paper.PaperValues, lines: Sequence[RowSpec], columns: Sequence[TestSetColumn]
) -> Grid:
    """NLL over that of the human references: what different judges say can be compared so."""
    stated = {
        name: tuple(None if value is None else value / paper.HUMAN_NLL for value in values)
        for name, values in published.items()
    }
    metric = TableMetric("nll_token_to_human", "NLL as a ratio to the human reference", "", CLOSEST, stated)
    return grid(bench, metric, lines, columns)


def grid(bench: Bench, metric: TableMetric, lines: Sequence[RowSpec], columns: Sequence[TestSetColumn]) -> Grid:
    """One metric of all lines on all sets."""

    def find(line: RowSpec, column: TestSetColumn) -> Figure | None:
        return bench.figures(line.system, column.set, line.own_steps(bench.run)).get(metric.name)

    rows = (
        TableRow(
            line.shown(bench.run),
            line.system,
            tuple(_cell(metric, line, i, find(line, column)) for i, column in enumerate(columns)),
            bench.absence(line.system) or "",
        )
        for line in lines
    )
    titles = tuple(column.title for column in columns)
    # A row says something if there is a figure of ours or of the paper's in it.
    told = tuple(row for row in rows if any(c.ours is not None or c.paper is not None for c in row.cells))
    return Grid(metric.name, metric.title, metric.unit, metric.better, titles, told)


def _cell(metric: TableMetric, line: RowSpec, index: int, found: Figure | None) -> TableCell:
    stated = metric.paper.get(line.key, ())
    published = stated[index] if index < len(stated) else None
    if found is None:
        return TableCell(paper=published)
    return TableCell(found.value, found.low, found.high, published, found.signature)


def judge_name(bench: Bench) -> str:
    """Who scores fluency."""
    return bench.scores.judge if bench.scores else "no judge"


def nll(bench: Bench, published: paper.PaperValues) -> TableMetric:
    return TableMetric(
        "nll_token", f"NLL per token by {judge_name(bench)}; the paper's by GPT-2", "nats", "", published
    )


def judge_notes(bench: Bench) -> list[str]:
    """What a reader of NLL figures must know."""
    if bench.scores is None:
        return ["There was no judge, so there is no NLL of ours. Fetch one with: redraft pull smollm2"]
    own = [f"{bench.scores.judge} decides in the systems named after it, which flatters them here: take another judge."]
    other = "The judge is not the paper's GPT-2: compare ratios to the human reference, not NLL itself. "
    if Path(bench.scores.judge).name == "gpt2":
        other = ""
    return [
        *(own if bench.scores.judge in {recipe.target for recipe in RECIPES.values()} else []),
        f"{other}The paper states the human NLL for infilling alone ({paper.HUMAN_NLL}); its ratios here take that "
        "figure for both tasks.",
    ]
