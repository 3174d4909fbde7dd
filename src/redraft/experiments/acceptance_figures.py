"""Figures 2 and 3: acceptance rates, and NLL and Self-BLEU against the number of steps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.experiments import paper_values as paper
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.experiment import (
    Experiment,
    ExperimentKind,
    OutputRequest,
    RowSpec,
    TableMetric,
    all_pairs,
    cell_of,
    grid,
    judge_name,
    judge_notes,
    texts_to_score,
)
from redraft.experiments.inputs import KEYWORDS
from redraft.experiments.measurements import Measurements
from redraft.experiments.pictures import colour_of, new_figure, save, short_title, tidy
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.systems import HUMAN

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

FIGURE2 = (RowSpec("L-MCMC", "l-mcmc"), RowSpec("L-MCMC-C", "l-mcmc-c"))
FIGURE3 = (RowSpec("X-MCMC", "x-mcmc"), RowSpec("X-MCMC-C", "x-mcmc-c"))
_ACTIONS = ("replace", "insert")
_MOST = KEYWORDS[-1]  # four keywords: the test set of Figure 2 b and c
_LOGS = (
    "The paper shows acceptance only as curves; its values here are from the authors' logs of ten inputs with four "
    "keywords. Drawing the old word again counts as not accepted, as in those logs."
)


def _requests(config: ReproduceConfig) -> list[OutputRequest]:
    steps = [OutputRequest(row.system, _MOST.set, own) for row in FIGURE2 for own in config.checkpoints]
    return [*all_pairs(FIGURE2, KEYWORDS)(config), *steps, OutputRequest(HUMAN, _MOST.set, config.steps)]


def _acceptance(measurements: Measurements, row_specs: Sequence[RowSpec]) -> tuple[Grid, ...]:
    def logged(action: str) -> paper.PaperValues:
        return {name: (None, None, None, rates[action]) for name, rates in paper.LOGGED_ACCEPTANCE.items()}

    metrics = [TableMetric(f"acceptance_{a}", f"Accepted: {a}", "%", "higher", logged(a)) for a in _ACTIONS]
    return tuple(grid(measurements, metric, row_specs, KEYWORDS) for metric in metrics)


def _along_steps(measurements: Measurements, metric: TableMetric) -> Grid:
    """A metric against the number of steps, and its value for the human references."""
    steps = measurements.config.checkpoints
    stated = {measurements.config.own_steps(s): s for s in (50, 200)}

    def cell(row: RowSpec, own: int) -> TableCell:
        key = f"{row.title} ({stated.get(own)})"
        published = metric.paper[key][len(KEYWORDS) - 1] if key in metric.paper else None
        return cell_of(measurements.figures(row.system, _MOST.set, own).get(metric.name), published)

    row_specs = (*FIGURE2, RowSpec("Human Reference", HUMAN))
    rows = tuple(
        TableRow(
            row.title,
            row.system,
            tuple(cell(row, own) for own in steps),
            measurements.written.absence(row.system) or "",
        )
        for row in row_specs
    )
    columns = tuple(f"{own} steps" for own in steps)
    return Grid(metric.name, metric.title, metric.unit, metric.better, columns, rows)


def _figure2(experiment: Experiment, measurements: Measurements) -> Result:
    about = f"against steps, {_MOST.title}"
    nll_title = f"NLL per token by {judge_name(measurements)} {about}"
    metrics = (
        TableMetric("nll_token", nll_title, "nats", "", paper.TABLE1["nll"]),
        TableMetric("self_bleu4", f"Self-BLEU-4 {about}", "%", "lower", paper.TABLE1["self_bleu4"]),
    )
    steps = tuple(_along_steps(measurements, metric) for metric in metrics)
    notes = (
        _LOGS,
        "The paper's points in b and c are those of its Table 1, after 50 and 200 steps, scaled to our steps.",
        *judge_notes(measurements),
    )
    alt = (
        "Three plots: acceptance of replacements and insertions against the number of keywords; NLL against Self-BLEU "
        "with the number of steps beside the line; NLL and Self-BLEU against steps."
    )
    return Result(
        experiment.name, experiment.title, (*_acceptance(measurements, FIGURE2), *steps), notes=notes, alt=alt
    )


def _figure3(experiment: Experiment, measurements: Measurements) -> Result:
    alt = "Acceptance of replacements and insertions of the XLNet systems against the number of keywords."
    return Result(experiment.name, experiment.title, _acceptance(measurements, FIGURE3), notes=(_LOGS,), alt=alt)


def _draw2(result: Result, path: Path) -> None:
    figure = new_figure(15, 5)
    first, second, third = figure.subplots(1, 3, gridspec_kw={"wspace": 0.08})
    replace, insert, nll, self_bleu = result.grids
    _draw_acceptance(first, (replace, insert), "(a) acceptance")
    _draw_against(second, nll, self_bleu)
    _draw_steps(third, nll, self_bleu)
    figure.suptitle(result.title, fontweight="bold")
    save(figure, path)


def _draw3(result: Result, path: Path) -> None:
    figure = new_figure(6, 4.8)
    _draw_acceptance(figure.subplots(), result.grids, result.title)
    save(figure, path)


def _draw_acceptance(axes: "Axes", grids: Sequence[Grid], title: str) -> None:
    colour = 0
    for metric, style in zip(grids, ("-", "--"), strict=True):
        action = metric.metric.removeprefix("acceptance_")
        for row in metric.rows:
            points = [(x, c.ours) for x, c in enumerate(row.cells) if c.ours is not None]
            logged = [(x, c.paper) for x, c in enumerate(row.cells) if c.paper is not None]
            label = f"{short_title(row)}, {action}"
            axes.plot(*_split(points), style, marker="o", color=colour_of(colour), label=label)
            axes.plot(*_split(logged), "D", color=colour_of(colour), fillstyle="none")
            colour += 1
    axes.set_xticks(range(len(grids[0].columns)), grids[0].columns)
    axes.set(xlabel="keywords", ylabel="accepted, %", ylim=(0, 100))
    axes.set_title(f"{title} (hollow: authors' logs)", fontsize=10)
    _legend_below(axes, axes.get_legend_handles_labels()[0])
    tidy(axes)


def _draw_against(axes: "Axes", nll: Grid, self_bleu: Grid) -> None:
    for index, (first, second) in enumerate(zip(nll.rows, self_bleu.rows, strict=True)):
        found = list(zip(first.cells, second.cells, nll.columns, strict=True))
        ours = [(x.ours, y.ours, name) for x, y, name in found if x.ours is not None and y.ours is not None]
        stated = [(x.paper, y.paper) for x, y, _ in found if x.paper is not None and y.paper is not None]
        axes.plot(*_split([(x, y) for x, y, _ in ours]), "-o", color=colour_of(index), label=short_title(first))
        axes.plot(*_split(stated), "D", color=colour_of(index), fillstyle="none")
        if first.system == HUMAN:
            continue
        # Label every other point, since some are close together; one system above its line, the other below.
        side = {"xytext": (-4, -10), "ha": "right"} if index % 2 else {"xytext": (4, 4)}
        for x, y, name in ours[::2]:
            steps = name.removesuffix(" steps")
            axes.annotate(steps, (x, y), textcoords="offset points", fontsize=7, color=colour_of(index), **side)
    axes.set(xlabel=nll.title.partition(" against")[0], ylabel="Self-BLEU-4, %")
    axes.set_title("(b) NLL against Self-BLEU (hollow: paper, by GPT-2)", fontsize=10)
    _legend_below(axes, axes.get_legend_handles_labels()[0])
    tidy(axes)


def _draw_steps(axes: "Axes", nll: Grid, self_bleu: Grid) -> None:
    steps = [int(column.removesuffix(" steps")) for column in nll.columns]
    twin = axes.twinx()
    for plot, one, style, name in ((axes, nll, "-", "NLL"), (twin, self_bleu, "--", "Self-BLEU")):
        for index, row in enumerate(row for row in one.rows if row.system != HUMAN):
            points = [(x, c.ours) for x, c in zip(steps, row.cells, strict=True) if c.ours is not None]
            plot.plot(*_split(points), style, marker="o", color=colour_of(index), label=f"{short_title(row)}, {name}")
    axes.set(xlabel="steps", ylabel="NLL per token")
    twin.set_ylabel("Self-BLEU-4, %")
    axes.set_title("(c) NLL (solid) and Self-BLEU (dashed)", fontsize=10)
    _legend_below(axes, [*axes.get_lines(), *twin.get_lines()])
    tidy(axes)
    twin.spines["top"].set_visible(False)


def _legend_below(axes: "Axes", lines: Sequence["Artist"]) -> None:
    """Put the legend below the axes, where it covers no curve."""
    axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=7, frameon=False)


def _split(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


_FIGURE = ExperimentKind.FIGURE
EXPERIMENTS = (
    Experiment(_FIGURE, 2, "acceptance, fluency, diversity and steps", _figure2, _draw2, _requests, texts_to_score),
    Experiment(_FIGURE, 3, "acceptance of the XLNet systems", _figure3, _draw3, all_pairs(FIGURE3, KEYWORDS)),
)
