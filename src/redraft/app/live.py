"""What a person sees while redraft works, and how they stop it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text


class LiveLine:
    """One line with the step and the best draft so far; nothing where standard error is no terminal."""

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


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C sets a flag instead of raising, so that the best so far is returned; a second one raises."""
    stopped = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread: Ctrl-C is not ours to handle
        yield stopped.is_set
        return
    try:
        yield stopped.is_set
    finally:
        signal.signal(signal.SIGINT, before)
