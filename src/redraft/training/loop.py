"""The one training loop.

It knows nothing of what it trains. A task gives batches as a function of the step number and a loss; the loop adds
the schedule, checkpoints, validation, the log and the progress bar. Everything random in a step is seeded from the
step number, so a run that was killed and resumed ends with the same weights as one that never stopped. Started by
``accelerate launch``, several processes share each batch.
"""

import csv
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from redraft.errors import InputError, OutputError, reason
from redraft.files import replacing
from redraft.interrupt import stop_on_interrupt
from redraft.training.processes import WHOLE, Processes, Share, join
from redraft.training.progress import Progress

CHECKPOINT, BEST, LOG = "checkpoint.pt", "best.safetensors", "log.csv"
_FIELDS = ("step", "tokens", "seconds", "tokens_per_second", "learning_rate", "train_loss", "valid_loss", "valid_parts")


class TrainingTask(Protocol):
    """What can be trained."""

    @property
    def module(self) -> nn.Module: ...

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Whatever must be equal for a run to be resumed."""

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        """Summed loss over a share of the step's batch, and the number of tokens in it; 0 and 0 if it is empty.

        What is drawn at random must be drawn for the whole batch, or it would hang on the number of shares.
        """

    def validate(self) -> Mapping[str, float]:
        """Losses on held-out data by what they are of; their mean tells which weights are best."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast. Learning rate: up over ``warmup``, then down along a cosine to a hundredth."""

    num_tokens: int
    learning_rate: float
    warmup: float = 0.01
    clip: float = 1.0
    validate_every: int = 2_000_000
    checkpoint_seconds: float = 300.0
    seed: int = 0

    def rate(self, tokens: int) -> float:
        done = min(1.0, tokens / self.num_tokens)
        if done < self.warmup:
            return self.learning_rate * max(done / self.warmup, 0.01)
        cosine = 0.5 * (1 + math.cos(math.pi * (done - self.warmup) / (1 - self.warmup)))
        return self.learning_rate * (0.01 + 0.99 * cosine)


@dataclass
class _Run:
    """Where a run stands. Saved and restored as a whole."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    next_validation: int = 0
    best: float = math.inf
    train_loss: float = math.nan  # smoothed, per token
    validated: int = 0  # the step after which that was done last
    is_whole: bool = True  # false while weights are changed
    planned: int = 0  # the tokens that the schedule was made for


def train(task: TrainingTask, plan: Schedule, out: Path, *, quiet: bool = False) -> float:
    """Train until the plan's tokens are seen; return the best validation loss. Call again to resume.

    An interrupt waits for the end of a step: what is saved is a state that an undisturbed run would have had, too.
    """
    processes = join()
    run = _resume(task, plan, out)
    log = _Log(out / LOG, run.validated) if processes.is_first else None
    saved_at = time.monotonic()
    quiet = quiet or not processes.is_first
    with stop_on_interrupt() as stopped, Progress(plan.num_tokens, out.name, quiet=quiet) as progress:
        if run.planned not in (0, plan.num_tokens):
            progress.tell(
                f"the rate goes on along a schedule of {plan.num_tokens:,} tokens; so far it was one of {run.planned:,}"
            )
        run.planned = plan.num_tokens
        try:
            while True:
                if run.validated < run.step and run.tokens >= min(run.next_validation, plan.num_tokens):
                    _validate(task, plan, run, processes, out, log)
                if run.tokens >= plan.num_tokens:
                    break
                if stopped():
                    raise KeyboardInterrupt
                _step(task, plan, run, processes)
                progress.update(run.tokens, loss=run.train_loss, best=run.best)
                if processes.is_first and time.monotonic() - saved_at > plan.checkpoint_seconds:
                    _save(task, plan, run, out)
                    saved_at = time.monotonic()
        finally:
            if processes.is_first and run.is_whole:  # half a step is nothing to go on from: the older one stands
                _save(task, plan, run, out)
    processes.wait()  # the files are there for all
    return run.best


def _step(task: TrainingTask, plan: Schedule, run: _Run, processes: Processes) -> None:
    started = time.perf_counter()
    # Dropout has no generator of its own; the shares of a batch are not dropped alike.
    torch.manual_seed(plan.seed * 1_000_003 + run.step + (processes.share.index << 40))
    task.module.train()
    rate = plan.rate(run.tokens)
    total, own_tokens = task.loss(run.step, processes.share)
    num_tokens = int(processes.sum(own_tokens))
    if own_tokens:
        (total / num_tokens).backward()  # type: ignore[no-untyped-call]
    processes.sum_gradients(task.module.parameters())
    dense = [p for p in task.module.parameters() if p.grad is not None and not p.grad.is_sparse]
    nn.utils.clip_grad_norm_(dense, plan.clip)
    run.is_whole = False
    for optimizer in task.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
    mean = processes.sum(total.item()) / num_tokens
    run.train_loss = mean if math.isnan(run.train_loss) else 0.99 * run.train_loss + 0.01 * mean
    run.step += 1
    run.tokens += num_tokens
    run.is_whole = True
    run.seconds += time.perf_counter() - started


def _validate(
    task: TrainingTask, plan: Schedule, run: _Run, processes: Processes, out: Path, log: "_Log | None"
) -> None:
    """Done by the first process; the others wait for its result."""
    task.module.eval()
    with torch.inference_mode():
        parts = task.validate() if processes.is_first else {}
        loss = processes.agree(sum(parts.values()) / max(1, len(parts)))
    if loss < run.best:
        if processes.is_first:
            with replacing(out / BEST) as path:
                save_file(task.module.state_dict(), path)
        run.best = loss  # only now: a checkpoint must not know of weights that were not written
    while run.next_validation <= run.tokens:
        run.next_validation += plan.validate_every
    run.validated = run.step
    if log:
        log.write(run, plan.rate(run.tokens), loss, parts)


def _save(task: TrainingTask, plan: Schedule, run: _Run, out: Path) -> None:
    checkpoint = {
        "settings": {**task.settings, "learning_rate": plan.learning_rate, "seed": plan.seed},
        "run": vars(run),
        "module": task.module.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in task.optimizers],
    }
    with replacing(out / CHECKPOINT) as path, path.open("wb") as file:
        try:
            torch.save(checkpoint, file)
        except RuntimeError as error:  # what torch makes of a full disk
            told = reason(error.__context__ or error)
            raise OutputError(f"cannot write {out / CHECKPOINT}: {told}; free some space and run again") from error


def _resume(task: TrainingTask, plan: Schedule, out: Path) -> _Run:
    if not (out / CHECKPOINT).exists():
        return _Run()
    checkpoint = torch.load(out / CHECKPOINT, weights_only=True)
    wanted = {**task.settings, "learning_rate": plan.learning_rate, "seed": plan.seed}
    if checkpoint["settings"] != wanted:
        changed = sorted(key for key in wanted if checkpoint["settings"].get(key) != wanted[key])
        raise InputError(f"{out} holds a run with other settings ({', '.join(changed)}); choose another --out folder")
    task.module.load_state_dict(checkpoint["module"])
    for optimizer, state in zip(task.optimizers, checkpoint["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    return _Run(**checkpoint["run"])


class _Log:
    """One CSV row a validation. Rows later than the checkpoint are dropped on resuming: they will come again."""

    def __init__(self, path: Path, step: int):
        self._path = path
        rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                rows = [row for row in csv.DictReader(file) if int(row["step"]) <= step]
        with replacing(path) as partial, partial.open("w", newline="") as file:
            writer = csv.DictWriter(file, _FIELDS)
            writer.writeheader()
            writer.writerows(rows)

    def write(self, run: _Run, rate: float, valid_loss: float, parts: Mapping[str, float]) -> None:
        speed = run.tokens / max(run.seconds, 1e-9)
        row = (run.step, run.tokens, f"{run.seconds:.1f}", f"{speed:.0f}", f"{rate:.3g}")
        with self._path.open("a", newline="") as file:
            named = " ".join(f"{name}={value:.4f}" for name, value in parts.items())
            csv.writer(file).writerow([*row, f"{run.train_loss:.4f}", f"{valid_loss:.4f}", named])
