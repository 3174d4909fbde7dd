"""The one training loop.

The loop is independent of the model. A task provides batches as a function of the step number and a loss; the loop
adds the schedule, checkpoints, validation, the log and the progress bar. All randomness of a step is seeded from the
step number, so a run that was killed and resumed ends with the same weights as an uninterrupted one. Under
``accelerate launch`` several processes share each batch.
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
    """A model to train, with its data and optimizers."""

    @property
    def module(self) -> nn.Module: ...

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that must be unchanged for a run to be resumed."""

    def loss(self, step: int, share: Share = WHOLE) -> tuple[Tensor, int]:
        """Summed loss over a share of the step's batch, and its number of tokens; 0 and 0 if the share is empty.

        Random draws are made for the whole batch, so that they do not depend on the number of shares.
        """

    def validate(self) -> Mapping[str, float]:
        """Named losses on held-out data; their mean selects the best weights."""


@dataclass(frozen=True)
class Schedule:
    """Length of training and learning rate: linear warm-up, then a cosine decay to a hundredth of the peak."""

    num_tokens: int
    learning_rate: float
    warmup: float = 0.01  # fraction of the tokens
    clip: float = 1.0  # maximum norm of the gradient
    validate_every: int = 2_000_000  # tokens
    checkpoint_seconds: float = 300.0
    seed: int = 0

    def rate(self, tokens: int) -> float:
        """Learning rate after a number of tokens."""
        done = min(1.0, tokens / self.num_tokens)
        if done < self.warmup:
            return self.learning_rate * max(done / self.warmup, 0.01)
        cosine = 0.5 * (1 + math.cos(math.pi * (done - self.warmup) / (1 - self.warmup)))
        return self.learning_rate * (0.01 + 0.99 * cosine)


@dataclass
class _Run:
    """State of a run, saved with each checkpoint."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    next_validation: int = 0
    best: float = math.inf
    train_loss: float = math.nan  # smoothed, per token
    validated: int = 0  # step of the last validation
    is_whole: bool = True  # false while weights are being changed
    planned: int = 0  # tokens of the schedule so far


def train(task: TrainingTask, schedule: Schedule, out: Path, *, quiet: bool = False) -> float:
    """Train to the end of the schedule and return the best validation loss. Call again to resume.

    An interrupt takes effect at the end of a step, so that the checkpoint is a state of an uninterrupted run.
    """
    processes = join()
    run = _resume(task, schedule, out)
    log = _Log(out / LOG, run.validated) if processes.is_first else None
    saved_at = time.monotonic()
    quiet = quiet or not processes.is_first
    with stop_on_interrupt() as stopped, Progress(schedule.num_tokens, out.name, quiet=quiet) as progress:
        if run.planned not in (0, schedule.num_tokens):
            progress.warn(f"the schedule changed from {run.planned:,} to {schedule.num_tokens:,} tokens")
        run.planned = schedule.num_tokens
        try:
            while True:
                if run.validated < run.step and run.tokens >= min(run.next_validation, schedule.num_tokens):
                    _validate(task, schedule, run, processes, out, log)
                if run.tokens >= schedule.num_tokens:
                    break
                if stopped():
                    raise KeyboardInterrupt
                _step(task, schedule, run, processes)
                progress.update(run.tokens, loss=run.train_loss, best=run.best)
                if processes.is_first and time.monotonic() - saved_at > schedule.checkpoint_seconds:
                    _save(task, schedule, run, out)
                    saved_at = time.monotonic()
        finally:
            if processes.is_first and run.is_whole:  # after half a step the previous checkpoint is kept
                _save(task, schedule, run, out)
    processes.wait()  # until the files exist
    return run.best


def _step(task: TrainingTask, schedule: Schedule, run: _Run, processes: Processes) -> None:
    started = time.perf_counter()
    # Dropout uses the global generator; each share of a batch gets its own seed.
    torch.manual_seed(schedule.seed * 1_000_003 + run.step + (processes.share.index << 40))
    task.module.train()
    rate = schedule.rate(run.tokens)
    total, own_tokens = task.loss(run.step, processes.share)
    num_tokens = int(processes.sum(own_tokens))
    if own_tokens:
        (total / num_tokens).backward()  # type: ignore[no-untyped-call]
    processes.sum_gradients(task.module.parameters())
    dense = [p for p in task.module.parameters() if p.grad is not None and not p.grad.is_sparse]
    nn.utils.clip_grad_norm_(dense, schedule.clip)
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
    task: TrainingTask, schedule: Schedule, run: _Run, processes: Processes, out: Path, log: "_Log | None"
) -> None:
    """Validate in the first process; the others wait for the result."""
    task.module.eval()
    with torch.inference_mode():
        parts = task.validate() if processes.is_first else {}
        loss = processes.agree(sum(parts.values()) / max(1, len(parts)))
    if loss < run.best:
        if processes.is_first:
            with replacing(out / BEST) as path:
                save_file(task.module.state_dict(), path)
        run.best = loss  # after writing: a checkpoint must not refer to weights that are not on disk
    while run.next_validation <= run.tokens:
        run.next_validation += schedule.validate_every
    run.validated = run.step
    if log:
        log.write(run, schedule.rate(run.tokens), loss, parts)


def _save(task: TrainingTask, schedule: Schedule, run: _Run, out: Path) -> None:
    checkpoint = {
        "settings": {**task.settings, "learning_rate": schedule.learning_rate, "seed": schedule.seed},
        "run": vars(run),
        "module": task.module.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in task.optimizers],
    }
    with replacing(out / CHECKPOINT) as path, path.open("wb") as file:
        try:
            torch.save(checkpoint, file)
        except RuntimeError as error:  # torch's error for a full disk
            why = reason(error.__context__ or error)
            raise OutputError(f"cannot write {out / CHECKPOINT}: {why}; free some space and run again") from error


def _resume(task: TrainingTask, schedule: Schedule, out: Path) -> _Run:
    if not (out / CHECKPOINT).exists():
        return _Run()
    checkpoint = torch.load(out / CHECKPOINT, weights_only=True)
    wanted = {**task.settings, "learning_rate": schedule.learning_rate, "seed": schedule.seed}
    if checkpoint["settings"] != wanted:
        changed = sorted(key for key in wanted if checkpoint["settings"].get(key) != wanted[key])
        raise InputError(f"{out} holds a run with other settings ({', '.join(changed)}); choose another --out folder")
    task.module.load_state_dict(checkpoint["module"])
    for optimizer, state in zip(task.optimizers, checkpoint["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    return _Run(**checkpoint["run"])


class _Log:
    """A CSV file with a row per validation. A resumed run drops the rows after its checkpoint and writes them again."""

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
