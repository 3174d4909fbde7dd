"""What is asked of a rerun, and where its files are."""

import math
from dataclasses import dataclass
from pathlib import Path

from redraft.drafts import Settings
from redraft.errors import InputError
from redraft.experiments import paper
from redraft.models.pack import DEFAULT

# Steps of the paper's chains after which drafts are looked at: its rows of 50 and 60 steps, and points for Figure 2.
_LOOKED_AT = (10, 20, 50, 60, 100, 150, 200)


@dataclass(frozen=True)
class ReproduceConfig:
    """``steps`` stand for the paper's 200: rows of fewer steps take their share of them."""

    data: Path
    out: Path
    num: int = 200
    steps: int = paper.STEPS
    seed: int = 0
    judge: str | None = None
    pack: str = DEFAULT
    systems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("num", 1), ("steps", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} must be at least {least}, not {getattr(self, name)}")

    def own_steps(self, paper_steps: int) -> int:
        """Our steps for a number of the paper's."""
        return math.ceil(paper_steps * self.steps / paper.STEPS)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        return tuple(sorted({self.own_steps(steps) for steps in _LOOKED_AT}))

    def settings(self, paper_steps: int = paper.STEPS) -> Settings:
        """How a system is run that takes so many steps where the paper's chains take 200."""
        return Settings(self.own_steps(paper_steps), seed=self.seed, checkpoints=self.checkpoints)

    def outputs(self, system: str, test_set: str) -> Path:
        return outputs_path(self.out, system, test_set)


def outputs_path(folder: Path, system: str, test_set: str) -> Path:
    """Where the outputs of a system for a set are kept."""
    return folder / "outputs" / system / f"{test_set}.jsonl"
