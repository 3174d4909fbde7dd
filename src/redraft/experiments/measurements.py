"""Outputs of the systems that a run has, and their figures, computed on demand."""

from collections.abc import Mapping, Sequence

from redraft.batch import Input
from redraft.evaluation.evaluate import Judged, Material, figures, metrics_of
from redraft.evaluation.metric import Bootstrap, Figure
from redraft.evaluation.outputs import SystemOutput
from redraft.experiments import run_systems
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.inputs import TestSets
from redraft.experiments.judge_scores import ScoreFile
from redraft.experiments.run_systems import Job, OutputRecord
from redraft.experiments.systems import SYSTEMS, absence, choose
from redraft.models.pack import Pack

FiguresByName = Mapping[str, Figure]
_NOT_SELECTED = "not selected"


class WrittenOutputs:
    """The outputs of a run: which systems have any for which test set, why others have none, and their texts."""

    def __init__(self, config: ReproduceConfig, pack: Pack, sets: TestSets):
        self.config, self.pack, self.sets = config, pack, sets
        # Looked up once: opening a pack hashes its files.
        self._absent = {name: absence(system, pack) for name, system in SYSTEMS.items()}
        # Systems that --systems leaves out are not run now, but the outputs of an earlier run are shown.
        self._not_selected = {
            name: {test_set for test_set in sets if self._is_complete(name, test_set)}
            for name in set(SYSTEMS) - set(choose(config.systems))
        }
        self._records: dict[tuple[str, str], list[OutputRecord]] = {}

    def _is_complete(self, system: str, test_set: str) -> bool:
        if SYSTEMS[system].derive is not None:
            return True
        return run_systems.is_complete(self.config, Job(system, test_set), self.sets)

    def absence(self, system: str) -> str | None:
        """Why a system has no outputs; None if it has."""
        has_none = system in self._not_selected and not self._not_selected[system]
        return self._absent[system] or (_NOT_SELECTED if has_none else None)

    def accepts(self, system: str, test_set: str) -> bool:
        """Whether a system can be run on a test set."""
        most = SYSTEMS[system].most_keywords
        return most is None or all(len(item.constraints.keywords) <= most for item in self.sets[test_set])

    def has(self, system: str, test_set: str) -> bool:
        """Whether a system has, or will have, outputs for a test set."""
        is_there = test_set in self._not_selected.get(system, (test_set,))
        return is_there and self.absence(system) is None and self.accepts(system, test_set)

    def is_selected(self, system: str) -> bool:
        """Whether a system is run now."""
        return system not in self._not_selected

    def why_missing(self, system: str, test_set: str) -> str:
        """Why a system has no outputs for a test set."""
        return self.absence(system) or (_NOT_SELECTED if self.accepts(system, test_set) else "one keyword only")

    def inputs(self, system: str, test_set: str) -> Sequence[Input]:
        """The inputs that a system takes of a test set."""
        return run_systems.inputs_of(self.config, Job(system, test_set), self.sets)

    def records(self, system: str, test_set: str) -> list[OutputRecord]:
        """The records of a system, in the order of the test set."""
        key = system, test_set
        if key not in self._records:
            self._records[key] = run_systems.records(self.config.outputs(*key), self.inputs(*key))
        return self._records[key]

    def outputs(self, system: str, test_set: str, steps: int | None = None) -> list[SystemOutput]:
        """The outputs of a system for a test set, by default after all its steps."""
        derive = SYSTEMS[system].derive
        if derive is not None:
            return derive(self.inputs(system, test_set))
        path = self.config.outputs(system, test_set)
        return run_systems.outputs_after(self.records(system, test_set), steps or self.config.steps, path)

    def material(self, system: str, test_set: str, steps: int, judged: Judged | None = None) -> Material:
        """The material for the metrics of a system, with the scores of the judge if there are any."""
        found = self.outputs(system, test_set, steps)
        return Material(
            found,
            constraints=[item.constraints for item in self.inputs(system, test_set)],
            references=[one.references for one in found],
            judged=judged if SYSTEMS[system].is_judged else None,
        )


class Measurements:
    """The figures of all systems on all test sets of a run. ``scores`` are those of the judge; None without a judge."""

    def __init__(self, written: WrittenOutputs, scores: ScoreFile | None):
        self.written, self.scores = written, scores
        self.config, self.pack = written.config, written.pack
        self._figures: dict[tuple[str, str, int], FiguresByName] = {}

    def figures(self, system: str, test_set: str, steps: int | None = None) -> FiguresByName:
        """All figures of a system on a test set; empty if it has no outputs."""
        if not self.written.has(system, test_set):
            return {}
        key = system, test_set, steps or self.config.steps
        if key not in self._figures:
            judged = None if self.scores is None else self.scores.judged
            found = figures(metrics_of(self.written.material(*key, judged)).metrics, Bootstrap())
            self._figures[key] = {figure.name: figure for figure in found}
        return self._figures[key]
