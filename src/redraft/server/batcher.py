"""The queue of a server: one thread does all work, and requests that wait and are alike are written together."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from redraft.errors import RedraftError

_LOG = logging.getLogger("redraft")
_GATHER = 0.005  # seconds in which requests that come together find each other


class BusyError(RedraftError):
    """Raised when the queue is full."""


class ClosingError(RedraftError):
    """Raised for requests that wait or come when the server stops."""


class _Request(Protocol):
    """What the queue knows of a request: with which others it can be written, and how much work it is."""

    @property
    def key(self) -> Hashable: ...

    @property
    def num_chains(self) -> int: ...


RequestT = TypeVar("RequestT", bound=_Request)


class Ticket(Generic[RequestT]):
    """A request in the queue. ``answer`` gets the result. The worker thread calls ``listen`` with the progress."""

    def __init__(self, request: RequestT, listen: Callable[[Any], None] = lambda _: None):
        self.request, self.listen = request, listen
        self.answer: Future[Any] = Future()
        self.is_wanted = True  # False once nobody waits for the answer

    def watch(self, progress: Any) -> bool:
        """Pass on what was done. False stops the work."""
        if self.is_wanted:
            self.listen(progress)
        return self.is_wanted


class Batcher(Generic[RequestT]):
    """Does the work of tickets in the order in which they came; those with equal keys are worked on together.

    ``work`` takes the tickets of a batch and returns their results. If it fails with a batch, each ticket is worked on
    alone, so that nobody gets the error of another. A batch has up to ``most_together`` chains, but at least one
    request. ``observe`` is called with the number of its requests.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Ticket[RequestT]]], Sequence[Any]],
        *,
        most_waiting: int,
        most_together: int,
        observe: Callable[[int], None] = lambda _: None,
    ):
        self._work, self._observe = work, observe
        self._most_waiting, self._most_together = most_waiting, most_together
        self._waiting: deque[Ticket[RequestT]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="redraft-writer", daemon=True)

    def start(self) -> None:
        """Start the thread that works."""
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def submit(self, ticket: Ticket[RequestT]) -> None:
        """Put a ticket into the queue; refused if the queue is full or closed."""
        with self._changed:
            if self._is_closed:
                raise ClosingError("the server is stopping")
            if len(self._waiting) >= self._most_waiting:
                raise BusyError(f"{len(self._waiting)} requests are waiting; try again later")
            self._waiting.append(ticket)
            self._changed.notify()

    def withdraw(self, ticket: Ticket[RequestT]) -> None:
        """Stop the work on a ticket, or take it out of the queue."""
        with self._changed:
            ticket.is_wanted = False
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                ticket.answer.cancel()

    def close(self) -> None:
        """Take no more tickets, and turn away those that wait. What runs is finished."""
        with self._changed:
            self._is_closed = True
            left, self._waiting = list(self._waiting), deque()
            self._changed.notify()
        for ticket in left:
            _fail(ticket, ClosingError("the server is stopping"))

    def join(self) -> None:
        """Wait until what runs is finished."""
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            if batch:
                self._observe(len(batch))
                self._answer(batch)

    def _take(self) -> list[Ticket[RequestT]] | None:
        """The next batch; None once the queue is closed. It is empty if all that waited have gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            self._changed.wait_for(lambda: self._is_closed, timeout=_GATHER)
            if not self._waiting:
                return None if self._is_closed else []
            first = self._waiting[0].request
            alike = [one for one in self._waiting if one.request.key == first.key]
            taken = alike[: max(1, self._most_together // first.num_chains)]
            for one in taken:
                self._waiting.remove(one)
        return [one for one in taken if one.answer.set_running_or_notify_cancel()]

    def _answer(self, batch: Sequence[Ticket[RequestT]]) -> None:
        try:
            results = self._work(batch)
        except Exception as error:
            if len(batch) > 1:
                for ticket in batch:
                    self._answer([ticket])
                return
            if not isinstance(error, RedraftError):
                _LOG.exception("a request failed")
            batch[0].answer.set_exception(error)
            return
        for ticket, result in zip(batch, results, strict=True):
            ticket.answer.set_result(result)


def _fail(ticket: Ticket[Any], error: Exception) -> None:
    if ticket.answer.set_running_or_notify_cancel():
        ticket.answer.set_exception(error)
