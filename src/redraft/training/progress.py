"""Progress of training: tokens/s, loss, time left. A bar on a terminal, elsewhere a line every 30 seconds."""

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from rich import progress as bar
from rich.console import Console

_PLAIN_EVERY = 30.0  # seconds


class Progress:
    """Shows the progress of a training run on stderr."""

    def __init__(self, total: int, name: str, *, quiet: bool = False):
        self._total, self._name, self._quiet = total, name, quiet
        self._first: tuple[int, float] | None = None
        self._printed = 0.0
        self._bar: bar.Progress | None = None
        console = Console(stderr=True)
        if console.is_terminal and not quiet:
            columns = (bar.TextColumn("{task.description}"), bar.BarColumn(), bar.TaskProgressColumn())
            self._bar = bar.Progress(*columns, bar.TimeRemainingColumn(), console=console)
            self._task = self._bar.add_task(name, total=total)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def warn(self, line: str) -> None:
        """Print a warning about the run."""
        if not self._quiet:
            print(f"{self._name}: {line}", file=sys.stderr, flush=True)

    def update(self, tokens: int, *, loss: float, best: float) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = (tokens, now)  # the speed of a resumed run counts from where it resumed
        speed = (tokens - self._first[0]) / max(now - self._first[1], 1e-9)
        status = f"{self._name}  {speed:,.0f} tokens/s  loss {loss:.3f}  best {best:.3f}"
        if self._bar:
            self._bar.update(self._task, completed=tokens, description=status)
        elif not self._quiet and now - self._printed > _PLAIN_EVERY:
            self._printed = now
            left = f"  {(self._total - tokens) / speed / 60:.0f} min left" if speed else ""
            print(f"{status}  {tokens / self._total:.1%}{left}", file=sys.stderr, flush=True)


def counted(lines: Iterable[str], what: str, *, quiet: bool = False) -> Iterator[str]:
    """Yield the lines and count them on the terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield from lines
        return
    with bar.Progress(
        bar.SpinnerColumn(), bar.TextColumn(what + " {task.completed:,.0f} sentences"), console=console, transient=True
    ) as shown:
        task = shown.add_task(what, total=None)
        for line in lines:
            shown.advance(task)
            yield line
