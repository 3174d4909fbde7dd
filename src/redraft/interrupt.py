"""Stopping on Ctrl-C: the signal sets a flag, which is checked where work can stop safely."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C set a flag instead of raising, so that work stops at a safe point. A second Ctrl-C raises."""
    stopped = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # only the main thread can handle signals
        yield stopped.is_set
        return
    try:
        yield stopped.is_set
    finally:
        signal.signal(signal.SIGINT, before)
