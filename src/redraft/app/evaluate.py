"""redraft evaluate, redraft testset."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.app.sections import SectionCommand
from redraft.errors import InputError, RedraftError
from redraft.extras import require

if TYPE_CHECKING:
    from redraft.evaluation.evaluate import Judged, Material, Omission
    from redraft.evaluation.metric import Difference, Figure
    from redraft.evaluation.outputs import SystemOutput
    from redraft.evaluation.testsets import TestSet
    from redraft.models.base import Words
    from redraft.sentence import Constraints

_FILE = click.Path(path_type=Path)


@click.command(
    cls=SectionCommand,
    examples=(
        ("redraft evaluate drafts.jsonl", "Measure coverage, diversity and repetition"),
        ("redraft evaluate drafts.jsonl --judge gemma-270m", "Measure fluency too, with a model that was pulled"),
        ("redraft evaluate ours.jsonl --compare theirs.jsonl", "Compare two systems on the same inputs"),
    ),
)
@click.argument("outputs", type=_FILE)
@click.option(
    "--references",
    type=_FILE,
    help="Human texts: JSON lines with id and reference (or references, a list), or one text per line.",
)
@click.option("--judge", metavar="NAME|DIR", help="The causal language model that scores the texts, e.g. gemma-270m.")
@click.option("--compare", type=_FILE, metavar="OTHER.jsonl", help="Report paired differences from another system.")
@click.option(
    "--draws", type=int, default=1000, show_default=True, help="Bootstrap draws for the confidence intervals."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--signatures", is_flag=True, help="Print how each figure was computed.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def evaluate(
    outputs: Path,
    references: Path | None,
    judge: str | None,
    compare: Path | None,
    draws: int,
    seed: int,
    signatures: bool,
    as_json: bool,
) -> None:
    """Measure the texts of a file, with confidence intervals.

    OUTPUTS has a JSON object on each line, with an id and a text, as generate --output writes them. Coverage needs
    outputs that contain their input. BLEU and ratios to human text need references. NLL and keyword fit need a judge.
    The two-sample test (50 %: outputs are indistinguishable from human text) needs references, a judge and 20 texts.
    Metrics that cannot be computed are listed as left out.
    """
    if draws < 1 or seed < 0:
        raise InputError(f"--draws must be at least 1 and --seed at least 0, not {draws} and {seed}")
    require("eval", "lemminflect", "sacrebleu", "sklearn")
    from redraft.evaluation.evaluate import differences, figures, metrics_of
    from redraft.evaluation.metric import Bootstrap
    from redraft.evaluation.outputs import in_order_of, read_outputs

    bootstrap = Bootstrap(draws, seed)
    systems = [read_outputs(outputs)]
    if compare is not None:
        systems.append(in_order_of(systems[0], read_outputs(compare), compare))
    measured = [metrics_of(material) for material in _materials(systems, references, judge)]
    found = figures(measured[0].metrics, bootstrap)
    left_out = measured[0].left_out
    compared = [] if compare is None else differences(measured[0].metrics, measured[1].metrics, bootstrap)
    if as_json:
        result = _as_json(len(systems[0]), found, left_out, compared, compare)
        click.echo(json.dumps(result, ensure_ascii=False, indent=2))
    else:
        _show(found, compared, signatures)
        for omission in left_out:
            click.echo(f"left out: {omission.name}: {omission.reason}", err=True)


@click.group()
def testset() -> None:
    """Make test sets from a file of sentences, for generate --input."""


_SHARED = (
    click.option(
        "--from", "source", type=_FILE, required=True, help="A file with one sentence per line, tokenised or not."
    ),
    click.option("--num", type=int, default=1000, show_default=True, help="Inputs in each set."),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Seed of the random choices; the same seed gives the same sets.",
    ),
    click.option(
        "--out", type=_FILE, required=True, metavar="DIR|FILE", help="A folder, or one .jsonl file for all sets."
    ),
)


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_SHARED):
        command = option(command)
    return command


@testset.command()
@click.option("--k", default="1,2,3,4", show_default=True, help="Numbers of keywords; one set for each.")
@_shared
def keywords(k: str, source: Path, num: int, seed: int, out: Path) -> None:
    """Take content words of each sentence as keywords, in their order."""
    from redraft.evaluation.testsets import keyword_set

    sizes = _numbers("--k", k, 1, 20)
    _make(source, num, seed, out, lambda sentences: [keyword_set(sentences, size, num, seed) for size in sizes])


@testset.command()
@click.option(
    "--strategy",
    type=click.Choice(["random", "middle"]),
    default="random",
    show_default=True,
    help="Mask words at random positions, or one span in the middle.",
)
@click.option("--ratio", default="25,50,75", show_default=True, help="Percentages of words to mask; one set for each.")
@_shared
def infill(strategy: Any, ratio: str, source: Path, num: int, seed: int, out: Path) -> None:
    """Mask words of each sentence: at random positions, or one span in the middle."""
    from redraft.evaluation.testsets import infill_set

    ratios = _numbers("--ratio", ratio, 1, 99)
    _make(source, num, seed, out, lambda sentences: [infill_set(sentences, strategy, r, num, seed) for r in ratios])


@testset.command()
@click.option("--source", type=_FILE, required=True, help="File with concepts, a tab and references on each line.")
@click.option("--num", type=int, metavar="N", help="Number of sets, from the beginning of the file. Default: all.")
@click.option("--verbatim", is_flag=True, help="Ask for the concepts as they are and in their order, to compare.")
@click.option("--out", type=_FILE, required=True, help="Output file, one JSON line per set.")
def commongen(source: Path, num: int | None, verbatim: bool, out: Path) -> None:
    """Ask for the concepts of CommonGen: each in any form, in any order."""
    from redraft.evaluation.commongen import commongen_set
    from redraft.evaluation.testsets import write_sets

    if num is not None and num < 1:
        raise InputError(f"--num must be at least 1, not {num}")
    for path in write_sets([commongen_set(source, num, verbatim=verbatim)], out):
        click.echo(path)


@testset.command(name="held-out")
@click.option("--corpus", type=_FILE, required=True, help="Folder of .txt or .txt.xz files that models are trained on.")
@click.option("--file", "files", multiple=True, metavar="NAME", help="A file of the folder. Repeatable. Default: all.")
@click.option("--out", type=_FILE, required=True, help="Output file, one sentence per line.")
def held_out(corpus: Path, files: tuple[str, ...], out: Path) -> None:
    """Write the sentences of a training corpus that no model is trained on, as the source of test sets."""
    from redraft.evaluation.testsets import held_out_lines
    from redraft.files import replacing

    lines = held_out_lines(corpus, files)
    with replacing(out) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    click.echo(f"{out}: {len(lines):,} sentences")


def _make(source: Path, num: int, seed: int, out: Path, make: Callable[[Sequence["Words"]], list["TestSet"]]) -> None:
    if num < 1 or seed < 0:
        raise InputError(f"--num must be at least 1 and --seed at least 0, not {num} and {seed}")
    from redraft.evaluation.testsets import read_sentences, write_sets

    sets = make(read_sentences(source))
    for path in write_sets(sets, out):
        click.echo(path)


def _numbers(option: str, given: str, least: int, most: int) -> list[int]:
    try:
        numbers = list(dict.fromkeys(int(part) for part in given.split(",")))
    except ValueError as error:
        raise InputError(f"{option} must be whole numbers separated by commas, not {given!r}") from error
    if not all(least <= number <= most for number in numbers):
        raise InputError(f"{option} must be from {least} to {most}, not {given!r}")
    return numbers


def _materials(
    systems: Sequence[Sequence["SystemOutput"]], references: Path | None, judge: str | None
) -> list["Material"]:
    """Collect the material of each system. Files are checked before the judge is loaded, which is slow."""
    from redraft.evaluation.evaluate import Material

    found = [Material(system, _constraints(system), _references(system, references)) for system in systems]
    judged = None if judge is None else _judge(found, judge)
    return [dataclasses.replace(material, judged=judged) for material in found]


def _references(outputs: Sequence["SystemOutput"], path: Path | None) -> list[tuple[str, ...]] | None:
    from redraft.evaluation.outputs import own_references, read_references

    return own_references(outputs) if path is None else read_references(path, [one.id for one in outputs])


def _constraints(outputs: Sequence["SystemOutput"]) -> list["Constraints"] | None:
    """Return the constraints that the outputs were written for; None if no output contains its input."""
    from redraft.records import constraints_of

    if not any(one.input for one in outputs):
        return None
    constraints = []
    for one in outputs:
        try:
            constraints.append(constraints_of(one.input))
        except RedraftError as error:
            raise InputError(f"the input of id {one.id!r}: {error}") from error
    return constraints


def _judge(materials: Sequence["Material"], name: str) -> "Judged":
    """Score every text that is needed, each once, in one batch."""
    from redraft.evaluation.evaluate import Judged, swapped_texts_to_judge, texts_to_judge
    from redraft.evaluation.judge import load_judge

    judge = load_judge(name)
    needed = [one for material in materials for one in (*texts_to_judge(material), *swapped_texts_to_judge(material))]
    texts = list(dict.fromkeys(needed))
    with _progress(f"judged by {judge.name}", len(texts)) as advance:
        readings = judge.read(texts, advance)
    return Judged(dict(zip(texts, readings, strict=True)), judge.settings)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


def _as_json(
    num: int,
    figures: Sequence["Figure"],
    left_out: Sequence["Omission"],
    differences: Sequence["Difference"],
    other: Path | None,
) -> dict[str, Any]:
    result: dict[str, Any] = {"num": num, "figures": [dataclasses.asdict(figure) for figure in figures]}
    result["left_out"] = [omission._asdict() for omission in left_out]
    if other is not None:
        result["compared_with"] = str(other)
        result["differences"] = [dataclasses.asdict(difference) for difference in differences]
    return result


def _show(figures: Sequence["Figure"], differences: Sequence["Difference"], signatures: bool) -> None:
    rows = [(one.name, _number(one.value), _interval(one.low, one.high), one.unit) for one in figures]
    _table(("figure", "value", "95 % interval", "unit"), rows)
    for one in figures:
        if one.details:
            click.echo(f"{one.name}: {'; '.join(one.details)}")
    if differences:
        _table(("difference", "first", "second", "first - second", "95 % interval", "p", "unit"), _rows(differences))
    if signatures:
        click.echo()
        for signature in [one.signature for one in figures] + [one.signature for one in differences]:
            click.echo(signature)


def _rows(differences: Sequence["Difference"]) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            _number(one.first),
            _number(one.second),
            f"{one.value:+.3f}",
            _interval(one.low, one.high),
            "-" if one.p_value is None else f"{one.p_value:.3f}",
            one.unit,
        )
        for one in differences
    ]


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns as wide as they need to be: a pipe or a narrow terminal must not cut a figure."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        name, *numbers = row
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        click.echo("  ".join([name.ljust(widths[0]), *cells]))


def _number(value: float) -> str:
    return f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:.3f} to {high:.3f}"
