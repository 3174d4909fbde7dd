"""Configuration of ``redraft reproduce``, and the layout of its output folder."""

import math
from dataclasses import dataclass
from pathlib import Path

from redraft.drafts import Settings
from redraft.errors import InputError
from redraft.experiments import paper_values as paper
from redraft.models.pack import DEFAULT

_TEST = Path("one-billion-word/test.txt")
# Steps after which drafts are recorded: the rows of 50 and 60 steps, and the points of Figure 2.
_RECORDED = (10, 20, 50, 60, 100, 150, 200)


@dataclass(frozen=True)
class ReproduceConfig:
    """What to reproduce, and with what.

    data      folder with the test and validation sentences
    out       output folder
    num       inputs per test set
    steps     steps of a chain where the paper has 200; rows of fewer steps are scaled accordingly
    judge     name or folder of the judge of fluency; None for none
    systems   systems to run; all by default
    test      file with the test sentences; by default one-billion-word/test.txt in the folder ``data``
    workers   processes that run systems, each with one thread; with 1, this process does, with all its threads
    fewer     systems that take only so many inputs of each test set, the first ones
    """

    data: Path
    out: Path
    num: int = 200
    steps: int = paper.STEPS
    seed: int = 0
    judge: str | None = None
    pack: str = DEFAULT
    systems: tuple[str, ...] = ()
    fewer: tuple[tuple[str, int], ...] = ()
    test: Path | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        for name, least in (("num", 1), ("steps", 1), ("seed", 0), ("workers", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} must be at least {least}, not {getattr(self, name)}")
        for system, num in self.fewer:
            if not 1 <= num <= self.num:
                raise InputError(f"--fewer {system} must be from 1 to the {self.num} inputs of a set, not {num}")

    @property
    def test_file(self) -> Path:
        """The file with the sentences that the test sets are made from."""
        return self.data / _TEST if self.test is None else self.test

    def num_for(self, system: str) -> int:
        """How many inputs of a test set a system takes."""
        return dict(self.fewer).get(system, self.num)

    def own_steps(self, paper_steps: int) -> int:
        """Our number of steps for one of the paper."""
        return math.ceil(paper_steps * self.steps / paper.STEPS)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Steps after which drafts are recorded."""
        return tuple(sorted({self.own_steps(steps) for steps in _RECORDED}))

    def settings(self, paper_steps: int = paper.STEPS) -> Settings:
        """Settings of a system that takes ``paper_steps`` steps when the paper's chains take 200."""
        return Settings(self.own_steps(paper_steps), seed=self.seed, checkpoints=self.checkpoints)

    def settings_of_passes(self, passes: int, *, until_settled: bool) -> Settings:
        """Settings of a system that makes ``passes`` passes over the blanks when the paper's chains take 200 steps."""
        return Settings(passes=self.own_steps(passes), seed=self.seed, until_settled=until_settled)

    def outputs(self, system: str, test_set: str) -> Path:
        return outputs_path(self.out, system, test_set)


def outputs_path(folder: Path, system: str, test_set: str) -> Path:
    """The file of a system's outputs for a test set."""
    return folder / "outputs" / system / f"{test_set}.jsonl"
