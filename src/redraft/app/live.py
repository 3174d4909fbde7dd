"""Progress on a terminal."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text


class LiveLine:
    """One line with the step and the best draft so far. Silent unless standard error is a terminal."""

    def __init__(self, steps: int):
        self._steps = steps
        console = Console(stderr=True)
        self._live = Live(console=console, transient=True, refresh_per_second=8) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def count(self, step: int) -> None:
        if self._live:
            self._live.update(Text(f"{step:>6}/{self._steps}", style="dim"))

    def update(self, step: int, best: Any, nll: float) -> None:
        if self._live:
            line = Text(f"{step:>4}/{self._steps}  {nll:5.2f}  ", style="dim", no_wrap=True, overflow="ellipsis")
            self._live.update(line.append(best.text, style="not dim"))
