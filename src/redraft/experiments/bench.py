"""What the tables are made from: every figure of a system on a set, computed when it is first asked for."""

from collections.abc import Callable, Mapping

from redraft.evaluation.evaluate import Judged, Material, figures, metrics_of
from redraft.evaluation.metric import Bootstrap, Figure
from redraft.evaluation.outputs import SystemOutput
from redraft.experiments import outputs
from redraft.experiments.outputs import HUMAN, TEMPLATE, Job, OutputRecord
from redraft.experiments.run import ReproduceConfig
from redraft.experiments.scores import ScoreFile
from redraft.experiments.sets import TestSets
from redraft.experiments.systems import SYSTEMS, absence, choose
from redraft.models.pack import Pack

FiguresByName = Mapping[str, Figure]


class Bench:
    """A run, its sets, its outputs as far as they are written, and its judge's scores."""

    def __init__(self, run: ReproduceConfig, pack: Pack, sets: TestSets, scores: ScoreFile | None):
        self.run, self.pack, self.sets, self.scores = run, pack, sets, scores
        # Looked up once: to open a pack is to hash it.
        self._absent = {name: absence(system, pack) for name, system in SYSTEMS.items()}
        # Not to be run now; what an earlier run has written of them is shown all the same.
        self._left_out = {
            name: {test_set for test_set in sets if outputs.is_complete(run, Job(name, test_set), sets)}
            for name in set(SYSTEMS) - set(choose(run.systems))
        }
        self._records: dict[tuple[str, str], list[OutputRecord]] = {}
        self._figures: dict[tuple[str, str, int], FiguresByName] = {}

    def absence(self, system: str) -> str | None:
        """Why there is nothing of a system; None where there is."""
        left_out = system in self._left_out and not self._left_out[system]
        return self._absent.get(system) or ("left out" if left_out else None)

    def takes(self, system: str, test_set: str) -> bool:
        """Whether a system can be run on a set."""
        most = SYSTEMS[system].most_keywords if system in SYSTEMS else None
        return most is None or all(len(item.constraints.keywords) <= most for item in self.sets[test_set])

    def has(self, system: str, test_set: str) -> bool:
        """Whether there is or will be something of a system for a set."""
        is_there = test_set in self._left_out.get(system, (test_set,))
        return is_there and self.absence(system) is None and self.takes(system, test_set)

    def is_left_out(self, system: str) -> bool:
        """Whether a system is not to be run now."""
        return system in self._left_out

    def lack(self, system: str, test_set: str) -> str:
        """Why there is nothing of a system for a set."""
        return self.absence(system) or ("left out" if self.takes(system, test_set) else "one keyword only")

    def records(self, system: str, test_set: str) -> list[OutputRecord]:
        """A system's records, in the order of the set."""
        key = system, test_set
        if key not in self._records:
            self._records[key] = outputs.records(self.run.outputs(*key), self.sets[test_set])
        return self._records[key]

    def outputs(self, system: str, test_set: str, steps: int | None = None) -> list[SystemOutput]:
        """What a system wrote, by default after all its steps; the references for the human row."""
        pseudo: Mapping[str, Callable[..., list[SystemOutput]]] = {
            HUMAN: outputs.references,
            TEMPLATE: outputs.templates,
        }
        if system in pseudo:
            return pseudo[system](self.sets[test_set])
        path = self.run.outputs(system, test_set)
        return outputs.outputs_after(self.records(system, test_set), steps or self.run.steps, path)

    def figures(self, system: str, test_set: str, steps: int | None = None) -> FiguresByName:
        """All figures of a system on a set; none where it is not there."""
        if not self.has(system, test_set):
            return {}
        key = system, test_set, steps or self.run.steps
        if key not in self._figures:
            found = figures(metrics_of(self.material(*key)).metrics, Bootstrap())
            self._figures[key] = {figure.name: figure for figure in found}
        return self._figures[key]

    def material(self, system: str, test_set: str, steps: int) -> Material:
        """What a system is measured on, with the judge's scores as far as they are there."""
        found = self.outputs(system, test_set, steps)
        return Material(
            found,
            constraints=[item.constraints for item in self.sets[test_set]],
            references=[one.references for one in found],
            judged=self._judged() if system != TEMPLATE else None,
        )

    def _judged(self) -> Judged | None:
        return None if self.scores is None else self.scores.judged
