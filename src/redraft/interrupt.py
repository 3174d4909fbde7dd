"""How a person stops redraft: Ctrl-C is noted, and asked for where work can be left."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C sets a flag instead of raising, so that work ends at a good place; a second one raises."""
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
