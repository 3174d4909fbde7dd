"""Figures 2 and 3: how often revisions are accepted, and what more steps buy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.experiments import paper
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import (
    Experiment,
    OutputRequest,
    RowSpec,
    TableMetric,
    all_pairs,
    grid,
    judge_name,
    judge_notes,
    nothing,
    texts_to_score,
)
from redraft.experiments.outputs import HUMAN
from redraft.experiments.pictures import colour_of, new_figure, save, short_title, tidy
from redraft.experiments.result import Grid, Result, TableCell, TableRow
from redraft.experiments.run import ReproduceConfig
from redraft.experiments.sets import KEYWORDS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

FIGURE2 = (RowSpec("L-MCMC", "l-mcmc"), RowSpec("L-MCMC-C", "l-mcmc-c"))
FIGURE3 = (RowSpec("X-MCMC", "x-mcmc"), RowSpec("X-MCMC-C", "x-mcmc-c"))
_ACTIONS = ("replace", "insert")
_MOST = KEYWORDS[-1]  # the set of Figure 2 b and c: four keywords
_LOGS = (
    "The paper prints acceptance as curves alone; its figures here are from the authors' logs of ten inputs with four "
    "keywords. Drawing the word that stood there again counts as not accepted, as in those logs."
)


def _looks(run: ReproduceConfig) -> list[OutputRequest]:
    steps = [OutputRequest(line.system, _MOST.set, own) for line in FIGURE2 for own in run.checkpoints]
    return [*all_pairs(FIGURE2, KEYWORDS)(run), *steps, OutputRequest(HUMAN, _MOST.set, run.steps)]


def _acceptance(bench: Bench, lines: Sequence[RowSpec]) -> tuple[Grid, ...]:
    def logged(action: str) -> paper.PaperValues:
        return {name: (None, None, None, rates[action]) for name, rates in paper.LOGGED_ACCEPTANCE.items()}

    metrics = [TableMetric(f"acceptance_{a}", f"Accepted: {a}", "%", "higher", logged(a)) for a in _ACTIONS]
    return tuple(grid(bench, metric, lines, KEYWORDS) for metric in metrics)


def _along_steps(bench: Bench, metric: TableMetric) -> Grid:
    """A metric after fewer and more steps, and that of the human references."""
    steps = bench.run.checkpoints
    stated = {bench.run.own_steps(s): s for s in (50, 200)}

    def cell(line: RowSpec, own: int) -> TableCell:
        key = f"{line.title} ({stated.get(own)})"
        value = metric.paper[key][len(KEYWORDS) - 1] if key in metric.paper else None
        found = bench.figures(line.system, _MOST.set, own).get(metric.name)
        return (
            TableCell(found.value, found.low, found.high, value, found.signature) if found else TableCell(paper=value)
        )

    lines = (*FIGURE2, RowSpec("Human Reference", HUMAN))
    rows = tuple(
        TableRow(line.title, line.system, tuple(cell(line, own) for own in steps), bench.absence(line.system) or "")
        for line in lines
    )
    columns = tuple(f"{own} steps" for own in steps)
    return Grid(metric.name, metric.title, metric.unit, metric.better, columns, rows)


def _figure2(bench: Bench) -> Result:
    about = f"after so many steps, {_MOST.title}"
    nll_title = f"NLL per token by {judge_name(bench)} {about}"
    metrics = (
        TableMetric("nll_token", nll_title, "nats", "", paper.TABLE1["nll"]),
        TableMetric("self_bleu4", f"Self-BLEU-4 {about}", "%", "lower", paper.TABLE1["self_bleu4"]),
    )
    steps = tuple(_along_steps(bench, metric) for metric in metrics)
    notes = (
        _LOGS,
        "The paper's points in b and c are those of its Table 1, after 50 and 200 steps or our share of them.",
        *judge_notes(bench),
    )
    alt = (
        "Three plots: acceptance of replacements and insertions against the number of keywords; NLL against Self-BLEU "
        "with the steps beside the line; NLL and Self-BLEU against steps."
    )
    title = "Figure 2: acceptance, fluency, diversity and steps"
    return Result("figure2", title, (*_acceptance(bench, FIGURE2), *steps), notes=notes, alt=alt)


def _figure3(bench: Bench) -> Result:
    alt = "Acceptance of replacements and insertions of the XLNet systems against the number of keywords."
    title = "Figure 3: acceptance of the XLNet systems"
    return Result("figure3", title, _acceptance(bench, FIGURE3), notes=(_LOGS,), alt=alt)


def _draw2(result: Result, bench: Bench, path: Path) -> None:
    figure = new_figure(15, 5)
    first, second, third = figure.subplots(1, 3, gridspec_kw={"wspace": 0.08})
    replace, insert, nll, self_bleu = result.grids
    _draw_acceptance(first, (replace, insert), "(a) acceptance")
    _draw_against(second, nll, self_bleu)
    _draw_steps(third, nll, self_bleu)
    figure.suptitle(result.title, fontweight="bold")
    save(figure, path)


def _draw3(result: Result, bench: Bench, path: Path) -> None:
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
        # The steps of every other point: some are too near to each other; one system's above its line, one's below.
        side = {"xytext": (-4, -10), "ha": "right"} if index % 2 else {"xytext": (4, 4)}
        for x, y, name in ours[::2]:
            steps = name.removesuffix(" steps")
            axes.annotate(steps, (x, y), textcoords="offset points", fontsize=7, color=colour_of(index), **side)
    axes.set(xlabel=nll.title.partition(" after")[0], ylabel="Self-BLEU-4, %")
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
    """A legend where no curve can be."""
    axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=7, frameon=False)


def _split(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


EXPERIMENTS = (
    Experiment("figure2", _looks, _figure2, texts_to_score, _draw2),
    Experiment("figure3", all_pairs(FIGURE3, KEYWORDS), _figure3, nothing, _draw3),
)
