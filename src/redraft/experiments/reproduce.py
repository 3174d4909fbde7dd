"""All tables and figures of the paper, run again: only what is missing is run, then every page is made anew."""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redraft.errors import InputError, OutputError
from redraft.evaluation.judge import find_judge, load_judge
from redraft.experiments import curves, maps, models, pages, samples, sets, tables
from redraft.experiments.bench import Bench
from redraft.experiments.experiment import Experiment, OutputRequest, jobs_of
from redraft.experiments.outputs import ProgressListener, units_missing, write_missing
from redraft.experiments.result import Result, to_json
from redraft.experiments.run import ReproduceConfig
from redraft.experiments.scores import UNITS, JudgeTexts, ScoreFile
from redraft.experiments.systems import SYSTEMS, choose
from redraft.files import replacing, sha256
from redraft.models.pack import Pack, open_pack
from redraft.models.pull import SOURCES
from redraft.version import VERSION

ALL = "all"
ABOUT, _LOCK = "run.json", ".lock"
_ORDER = ("table1", "table2", "table3", "table4", "table5", "table6", "table7", "table8", "table9")
_FOUND = {one.name: one for module in (tables, models, samples, curves, maps) for one in module.EXPERIMENTS}
EXPERIMENTS = {name: _FOUND[name] for name in (*_ORDER, "figure2", "figure3", "figure4")}


@dataclass(frozen=True)
class Reproduction:
    """What was made, and the systems that were not run, with the reason."""

    results: Sequence[Result]
    absent: Mapping[str, str]


def choose_experiments(names: Sequence[str]) -> list[Experiment]:
    """The experiments of some names, in the paper's order."""
    if unknown := [name for name in names if name not in (*EXPERIMENTS, ALL)]:
        raise InputError(f"there is no {unknown[0]!r} to rerun; choose {ALL} or some of: {', '.join(EXPERIMENTS)}")
    return [one for name, one in EXPERIMENTS.items() if ALL in names or name in names]


def reproduce(run: ReproduceConfig, names: Sequence[str], watch: ProgressListener) -> Reproduction | None:
    """Run what is missing and write every page; None where it was stopped, to be gone on with."""
    experiments = choose_experiments(names)
    choose(run.systems)
    pack = open_pack(run.pack)
    _try_judge(run)
    looks = list(dict.fromkeys(look for one in experiments for look in one.looks(run)))
    found = sets.make_sets((look.set for look in looks), run.data, run.num, run.seed)
    if any(one.name == "table5" for one in experiments):
        sets.source(run.data, sets.VALIDATION)
    _claim(run, pack)
    bench = Bench(run, pack, found, None)
    _begin(bench, looks, watch)
    if not write_missing(run, jobs_of(bench, looks), found, pack, watch):
        return None
    with _alone(run.out):
        if run.judge:
            bench.scores = ScoreFile(_scores_path(run, run.judge), run.judge)
            if not bench.scores.add(_judged(bench, experiments), watch):
                return None
        watch.say("making the pages")
        results = []
        for one in experiments:
            results.append(one.build(bench))
            _write(results[-1], one, bench)
        _write_index(bench)
    return Reproduction(results, {name: why for name in SYSTEMS if (why := bench.absence(name))})


def _try_judge(run: ReproduceConfig) -> None:
    """Refuse a judge that cannot be loaded before hours of work; one that was pulled or has scored here can be."""
    if run.judge:
        find_judge(run.judge)
        if run.judge not in SOURCES and not _scores_path(run, run.judge).exists():
            load_judge(run.judge)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Several processes may write outputs, each of its own system; scores and pages are made by one after the other."""
    with (out / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _begin(bench: Bench, looks: Sequence[OutputRequest], watch: ProgressListener) -> None:
    """Tell how much there is to do; of the texts that the judge may find new, all."""
    run = bench.run
    num_texts = sum(len(bench.sets[look.set]) for look in looks if bench.has(look.system, look.set)) if run.judge else 0
    watch.begin(units_missing(run, jobs_of(bench, looks), bench.sets) + num_texts * UNITS)


def _judged(bench: Bench, experiments: Sequence[Experiment]) -> JudgeTexts:
    found = [one.judged(bench, one.looks(bench.run)) for one in experiments]
    return JudgeTexts([text for one in found for text in one.read], [text for one in found for text in one.scored])


def _claim(run: ReproduceConfig, pack: Pack) -> None:
    """Say in the folder what is run there; refuse a folder of another run: outputs must not be mixed."""
    about = {
        "redraft": VERSION,
        "pack": f"{pack.name}@{pack.fingerprint}",
        "steps": run.steps,
        "seed": run.seed,
        "test": _test_sha256(run.data / sets.TEST),
    }
    path = run.out / ABOUT
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            # Without a test file there are no outputs that could be mixed.
            pairs = [(key, kept[key], value) for key, value in about.items() if kept[key] or key != "test"]
            other = [f"{key} {before}, now {now}" for key, before, now in pairs if before != now]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path} is not of redraft reproduce ({error}); choose another --out") from error
        if other:
            raise OutputError(f"{run.out} holds a rerun of other settings ({'; '.join(other)}); choose another --out")
    else:
        _write_file(path, json.dumps(about, indent=1) + "\n")


def _test_sha256(path: Path) -> str:
    """Of the test sentences; tables of models alone do without them."""
    return sha256(path)[:12] if path.is_file() else ""


def _scores_path(run: ReproduceConfig, judge: str) -> Path:
    """The file of a judge's scores; those of one name are told apart by where they are."""
    name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in Path(judge).name)
    if judge not in SOURCES:
        folder = Path(judge).expanduser()
        whole = str(folder.resolve()) if folder.exists() else judge
        name += f"-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return run.out / "scores" / f"{name}.jsonl"


def _write(result: Result, experiment: Experiment, bench: Bench) -> None:
    out = bench.run.out
    _write_file(out / f"{result.name}.json", to_json(result))
    _write_file(out / f"{result.name}.csv", pages.as_csv(result))
    _write_file(out / f"{result.name}.md", pages.markdown(result))
    with replacing(out / f"{result.name}.png") as partial:
        experiment.draw(result, bench, partial)


def _write_index(bench: Bench) -> None:
    """The page that leads to all others, those of earlier runs too."""
    run = bench.run
    names = [name for name in EXPERIMENTS if (run.out / f"{name}.json").exists()]
    lines = [
        "# The paper's tables and figures, rerun",
        "",
        f"redraft {VERSION}, pack {bench.pack.name}@{bench.pack.fingerprint}, {run.steps} steps, seed {run.seed}. "
        "Each page says how many inputs it is of and who judged.",
        "",
        *(f"- [{name}]({name}.md), [CSV]({name}.csv)" for name in names),
        "",
        "| system | |",
        "|---|---|",
        *(f"| {name} | {_has_run(bench, name)} |" for name in SYSTEMS),
    ]
    _write_file(run.out / "README.md", "\n".join(lines) + "\n")


def _has_run(bench: Bench, system: str) -> str:
    return "run" if (bench.run.out / "outputs" / system).exists() else bench.absence(system) or "not run here"


def _write_file(path: Path, content: str) -> None:
    with replacing(path) as partial:
        partial.write_text(content, encoding="utf-8")
