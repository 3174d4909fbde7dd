"""Stopping on Ctrl-C: the signal sets a flag, which is checked where work can stop safely.

Worker processes end with the process that started them.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
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


def end_with_parent() -> None:
    """End this process as soon as the one that started it ends. A worker would otherwise wait for work forever."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
