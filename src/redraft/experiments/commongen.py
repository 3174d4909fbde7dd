"""CommonGen: what forms of the concepts in any order are worth, beside the concepts as they are and in their order."""

from dataclasses import dataclass, replace
from pathlib import Path

from redraft import batch
from redraft.batch import Input
from redraft.drafts import Settings
from redraft.errors import InputError, OutputError
from redraft.evaluation.commongen import commongen_set
from redraft.evaluation.evaluate import Judged, Material, figures, metrics_of, texts_to_judge
from redraft.evaluation.judge import load_judge
from redraft.evaluation.metric import Bootstrap, Figure
from redraft.evaluation.outputs import SystemOutput, read_outputs
from redraft.experiments.run_systems import ProgressListener
from redraft.files import replacing
from redraft.records import constraints_of
from redraft.writer import Writer

SOURCE = Path("commongen/dev.tsv")
ARMS = ("forms", "verbatim")
_COLUMNS = {
    "caption_bleu4": "BLEU-4",
    "rouge_l": "ROUGE-L",
    "cider_d": "CIDEr-D",
    "coverage_forms": "concepts covered, %",
    "coverage_forms_all": "sentences with all, %",
    "self_bleu4": "Self-BLEU-4",
    "two_sample_accuracy": "two-sample accuracy, %",
    "length": "words",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class CommonGenRun:
    """What to run: the folders of the data and of the results, the number of sets, the seed, the judge, the style."""

    data: Path
    out: Path
    num: int
    seed: int
    judge: str | None
    style: str | None = None

    def outputs(self, arm: str) -> Path:
        return self.out / "outputs" / f"{arm}.jsonl"


def run_commongen(run: CommonGenRun, writer: Writer, listener: ProgressListener) -> Path | None:
    """Write what is missing for both arms and the table; returns its path, or None if stopped."""
    listener.begin(len(ARMS) * run.num)
    if not all(_write(run, arm, writer, listener) for arm in ARMS):
        return None
    materials = {arm: _material(read_outputs(run.outputs(arm))) for arm in ARMS}
    human = next(iter(materials.values())).human
    rows = {**materials, **({} if human is None else {"first reference": human})}
    judged = _judged(list(materials.values()), run.judge)
    found = {name: _figures(material, judged) for name, material in rows.items()}
    path = run.out / "commongen.md"
    with replacing(path) as partial:
        partial.write_text(_table(found, run), encoding="utf-8")
    return path


def _write(run: CommonGenRun, arm: str, writer: Writer, listener: ProgressListener) -> bool:
    """Write the missing outputs of an arm; returns False if stopped."""
    made = commongen_set(run.data / SOURCE, run.num, verbatim=arm == "verbatim")
    inputs = [Input(i, one["id"], one, constraints_of(one)) for i, one in enumerate(made.inputs, 1)]
    path, settings = run.outputs(arm), Settings(seed=run.seed)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror}") from error
    with batch.results(path) as (file, kept):
        batch.refuse_other_inputs(inputs, kept, path)
        batch.refuse_other_settings(writer, settings, kept, path)
        done = {batch.key_of(line["id"]) for line in kept}
        left = [one for one in inputs if one.key not in done]
        listener.say(f"{arm}: {len(left)} of {len(inputs)} sets")
        listener.advance(len(inputs) - len(left))
        return batch.work(
            writer, settings, left, file, keep_going=lambda _: not listener.stopped(), done=listener.advance
        )


def _material(outputs: list[SystemOutput]) -> Material:
    if not all(one.references for one in outputs):
        raise InputError("the outputs have no references; choose another --out")
    return Material(outputs, [constraints_of(one.input) for one in outputs], [one.references for one in outputs])


def _judged(materials: list[Material], judge: str | None) -> Judged | None:
    if judge is None:
        return None
    found = load_judge(judge)
    texts = list(dict.fromkeys(one for material in materials for one in texts_to_judge(material)))
    return Judged(dict(zip(texts, found.read(texts, lambda _: None), strict=True)), found.settings)


def _figures(material: Material, judged: Judged | None) -> dict[str, Figure]:
    metrics = metrics_of(replace(material, judged=judged)).metrics
    return {one.name: one for one in figures(metrics, Bootstrap())}


def _table(rows: dict[str, dict[str, Figure]], run: CommonGenRun) -> str:
    shown = {name: title for name, title in _COLUMNS.items() if any(name in one for one in rows.values())}
    style = f", style {run.style}" if run.style else ""
    lines = [
        "# CommonGen",
        "",
        f"{run.num} sets of dev, seed {run.seed}{style}. `forms`: each concept in",
        "any form, in any order. `verbatim`: the concepts as they are, in their order. The infiller was trained on",
        "CommonGen's training references, too.",
        "",
        f"| | {' | '.join(shown.values())} |",
        f"|---|{'---|' * len(shown)}",
    ]
    for name, found in rows.items():
        cells = (_cell(found.get(column)) for column in shown)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    has_interval = figure.low is not None and figure.high is not None
    return f"{figure.value:.2f}" + (f" ({figure.low:.2f} to {figure.high:.2f})" if has_interval else "")
