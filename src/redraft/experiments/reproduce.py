"""Reproduce the tables and figures of the paper: run the missing outputs, then rewrite every page."""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redraft.errors import InputError, OutputError
from redraft.evaluation.judge import find_judge, load_judge
from redraft.experiments import (
    acceptance_figures,
    inputs,
    metric_tables,
    model_tables,
    pages,
    prior_maps,
    sample_tables,
)
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.experiment import Experiment, ExperimentKind, OutputRequest, jobs_of
from redraft.experiments.judge_scores import UNITS, JudgeTexts, ScoreFile
from redraft.experiments.kept import KEPT, keep, unpack
from redraft.experiments.measurements import Measurements, WrittenOutputs
from redraft.experiments.result import Result, to_json
from redraft.experiments.run_systems import Job, ProgressListener, units_missing
from redraft.experiments.systems import SYSTEMS, choose
from redraft.experiments.workers import write_in_processes
from redraft.files import replacing, sha256
from redraft.models.pack import Pack, open_pack
from redraft.models.pull import SOURCES
from redraft.version import VERSION

ALL = "all"
ABOUT, _LOCK = "run.json", ".lock"
_MODULES = (metric_tables, sample_tables, model_tables, acceptance_figures, prior_maps)


def _in_paper_order(experiments: Sequence[Experiment]) -> dict[str, Experiment]:
    """The experiments by name: tables, then figures, each by number."""
    kinds = list(ExperimentKind)
    return {one.name: one for one in sorted(experiments, key=lambda one: (kinds.index(one.kind), one.number))}


EXPERIMENTS = _in_paper_order([one for module in _MODULES for one in module.EXPERIMENTS])


@dataclass(frozen=True)
class Reproduction:
    """The results, and the systems that were not run, with the reason."""

    results: Sequence[Result]
    absent: Mapping[str, str]


def choose_experiments(names: Sequence[str]) -> list[Experiment]:
    """The experiments with these names, in the order of the paper."""
    if unknown := [name for name in names if name not in (*EXPERIMENTS, ALL)]:
        raise InputError(f"there is no {unknown[0]!r} to rerun; choose {ALL} or some of: {', '.join(EXPERIMENTS)}")
    return [one for name, one in EXPERIMENTS.items() if ALL in names or name in names]


def reproduce(config: ReproduceConfig, names: Sequence[str], listener: ProgressListener) -> Reproduction | None:
    """Run the missing outputs and write every page; None if stopped. Call again to resume."""
    experiments = choose_experiments(names)
    choose(config.systems)
    choose(tuple(name for name, _ in config.fewer))
    pack = open_pack(config.pack)
    _try_judge(config)
    requests = list(dict.fromkeys(request for one in experiments for request in one.requests(config)))
    sets = inputs.make_sets((request.set for request in requests), config.test_file, config.num, config.seed)
    for path in dict.fromkeys(path for one in experiments for path in one.data_files):
        inputs.source(config.data, path)
    _claim(config, pack)
    _restore(config)
    written = WrittenOutputs(config, pack, sets)
    listener.begin(_units(written, requests))
    if not write_in_processes(config, jobs_of(written, requests), sets, pack, listener):
        return None
    with _alone(config.out):
        _keep(written, requests)
        scores = None
        if config.judge:
            scores = ScoreFile(_scores_path(config, config.judge), config.judge)
            if not scores.add(_texts(written, experiments), listener):
                return None
        listener.say("making the pages")
        results = _write_results(experiments, Measurements(written, scores))
        _write_index(written)
    return Reproduction(results, {name: why for name in SYSTEMS if (why := written.absence(name))})


def _try_judge(config: ReproduceConfig) -> None:
    """Refuse a judge that cannot be loaded before hours of work; one that was pulled or has scores here is trusted."""
    if config.judge:
        find_judge(config.judge)
        if config.judge not in SOURCES and not _scores_path(config, config.judge).exists():
            load_judge(config.judge)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Lock the folder. Processes may write outputs of different systems at once, but scores and pages one at a time."""
    with (out / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _restore(config: ReproduceConfig) -> None:
    """Unpack kept outputs where there are no others, such as in a copy of published results."""
    if (config.out / KEPT).is_dir():
        with _alone(config.out):
            unpack(config.out / KEPT, config.out)


def _keep(written: WrittenOutputs, requests: Sequence[OutputRequest]) -> None:
    """Keep the outputs of the requests, with those of earlier runs."""
    jobs = dict.fromkeys(Job(one.system, one.set) for one in requests if SYSTEMS[one.system].derive is None)
    there = [job for job in jobs if written.has(job.system, job.set)]
    found = {job: written.records(job.system, job.set) for job in there}
    keep(written.config.out, found, written.sets)


def _units(written: WrittenOutputs, requests: Sequence[OutputRequest]) -> int:
    """Units of work that are left, counting every text as new to the judge."""
    config = written.config
    units = units_missing(config, jobs_of(written, requests), written.sets)
    if not config.judge:
        return units
    return units + UNITS * sum(
        len(written.inputs(one.system, one.set)) for one in requests if written.has(one.system, one.set)
    )


def _texts(written: WrittenOutputs, experiments: Sequence[Experiment]) -> JudgeTexts:
    found = [one.judged(written, one.requests(written.config)) for one in experiments]
    return JudgeTexts([text for one in found for text in one.read], [text for one in found for text in one.scored])


def _claim(config: ReproduceConfig, pack: Pack) -> None:
    """Record the run in the folder; refuse the folder of a different run, since outputs must not be mixed."""
    about = {
        "redraft": VERSION,
        "pack": f"{pack.name}@{pack.fingerprint}",
        "steps": config.steps,
        "seed": config.seed,
        "test": _test_sha256(config.test_file),
    }
    path = config.out / ABOUT
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            # Without a test file there are no outputs to mix.
            pairs = [(key, kept[key], value) for key, value in about.items() if kept[key] or key != "test"]
            other = [f"{key} {before}, now {now}" for key, before, now in pairs if before != now]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path} was not written by redraft reproduce ({error}); choose another --out") from error
        if other:
            raise OutputError(
                f"{config.out} holds a run with other settings ({'; '.join(other)}); choose another --out"
            )
    else:
        _write_file(path, json.dumps(about, indent=1) + "\n")


def _test_sha256(path: Path) -> str:
    """Hash of the test sentences; empty without them: tables about models do not need them."""
    return sha256(path)[:12] if path.is_file() else ""


def _scores_path(config: ReproduceConfig, judge: str) -> Path:
    """The file of a judge's scores. Judges of the same name are distinguished by their location."""
    name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in Path(judge).name)
    if judge not in SOURCES:
        folder = Path(judge).expanduser()
        whole = str(folder.resolve()) if folder.exists() else judge
        name += f"-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return config.out / "scores" / f"{name}.jsonl"


def _write_results(experiments: Sequence[Experiment], measurements: Measurements) -> list[Result]:
    results = []
    for one in experiments:
        result = one.build(one, measurements)
        _write(result, one, measurements.config.out)
        results.append(result)
    return results


def _write(result: Result, experiment: Experiment, out: Path) -> None:
    _write_file(out / f"{result.name}.json", to_json(result))
    _write_file(out / f"{result.name}.csv", pages.as_csv(result))
    _write_file(out / f"{result.name}.md", pages.markdown(result))
    with replacing(out / f"{result.name}.png") as partial:
        experiment.draw(result, partial)


def _write_index(written: WrittenOutputs) -> None:
    """The page that links to all others, including those of earlier runs."""
    config = written.config
    names = [name for name in EXPERIMENTS if (config.out / f"{name}.json").exists()]
    lines = [
        "# The paper's tables and figures, reproduced",
        "",
        f"redraft {VERSION}, pack {written.pack.name}@{written.pack.fingerprint}, {config.steps} steps, "
        f"seed {config.seed}, test sentences from {config.test_file.name}. Each page states its number of inputs "
        "and its judge.",
        "",
        *(f"- [{name}]({name}.md), [CSV]({name}.csv)" for name in names),
        "",
        "| system | |",
        "|---|---|",
        *(f"| {name} | {_state(written, name)} |" for name in SYSTEMS),
    ]
    _write_file(config.out / "README.md", "\n".join(lines) + "\n")


def _state(written: WrittenOutputs, system: str) -> str:
    if SYSTEMS[system].derive is not None:
        return "from the test sets"
    has_run = (written.config.out / "outputs" / system).exists()
    return "run" if has_run else written.absence(system) or "not run here"


def _write_file(path: Path, content: str) -> None:
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")
