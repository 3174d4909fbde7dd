"""The queue: order, what is put together, whose error is whose, and its end."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from redraft.server.batcher import Batcher, BusyError, ClosingError, Ticket


@dataclass(frozen=True)
class _Request:
    name: str
    key: str = "same"
    num_chains: int = 1


class _Worker:
    """Work that waits until it may go on, and notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.started, self.may_end = threading.Event(), threading.Event()

    def __call__(self, tickets: Sequence[Ticket[_Request]]) -> list[str]:
        self.batches.append([ticket.request.name for ticket in tickets])
        self.started.set()
        assert self.may_end.wait(20)
        if any(ticket.request.name == "bad" for ticket in tickets):
            raise ValueError("bad")
        return [ticket.request.name.upper() for ticket in tickets]


def _begun(worker: _Worker, **settings: Any) -> Batcher[_Request]:
    """A queue whose worker is busy with a first request."""
    batcher: Batcher[_Request] = Batcher(worker, **{"most_waiting": 10, "most_together": 4, **settings})
    batcher.start()
    batcher.submit(Ticket(_Request("first")))
    assert worker.started.wait(20)
    return batcher


def _submitted(batcher: Batcher[_Request], *requests: _Request) -> list[Ticket[_Request]]:
    tickets = [Ticket(request) for request in requests]
    for ticket in tickets:
        batcher.submit(ticket)
    return tickets


def test_what_is_alike_is_put_together() -> None:
    worker = _Worker()
    batcher = _begun(worker)
    tickets = _submitted(
        batcher, _Request("a"), _Request("b", "other"), _Request("c"), *(_Request(name) for name in "defg")
    )
    worker.may_end.set()
    assert [ticket.answer.result(20) for ticket in tickets] == list("ABCDEFG")
    assert worker.batches == [["first"], ["a", "c", "d", "e"], ["b"], ["f", "g"]]


def test_a_batch_has_a_number_of_chains() -> None:
    worker = _Worker()
    batcher = _begun(worker)
    tickets = _submitted(batcher, *(_Request(name, "three", 3) for name in "ab"), *(_Request(n, "9", 9) for n in "cd"))
    worker.may_end.set()
    assert [ticket.answer.result(20) for ticket in tickets] == list("ABCD")
    assert worker.batches[1:] == [["a"], ["b"], ["c"], ["d"]]


def test_an_error_is_that_of_its_request_alone(caplog: pytest.LogCaptureFixture) -> None:
    worker = _Worker()
    batcher = _begun(worker)
    good, bad = _submitted(batcher, _Request("good"), _Request("bad"))
    worker.may_end.set()
    assert good.answer.result(20) == "GOOD"
    with pytest.raises(ValueError, match="bad"):
        bad.answer.result(20)
    assert "a request failed" in caplog.text  # the operator sees an error that is not the client's


def test_a_full_queue_refuses_until_there_is_room() -> None:
    worker = _Worker()
    batcher = _begun(worker, most_waiting=1)
    (waiting,) = _submitted(batcher, _Request("a"))
    with pytest.raises(BusyError):
        batcher.submit(Ticket(_Request("b")))
    batcher.withdraw(waiting)
    assert waiting.answer.cancelled()
    (other,) = _submitted(batcher, _Request("c"))
    worker.may_end.set()
    assert other.answer.result(20) == "C"
    assert worker.batches == [["first"], ["c"]]


def test_a_request_that_was_cancelled_does_no_harm() -> None:
    worker = _Worker()
    batcher = _begun(worker)
    cancelled, other = _submitted(batcher, _Request("a"), _Request("b"))
    cancelled.answer.cancel()  # as asyncio does, without the queue
    worker.may_end.set()
    assert other.answer.result(20) == "B"


def test_what_is_withdrawn_while_it_runs_is_told_to_stop() -> None:
    heard: list[object] = []
    ticket = Ticket(_Request("a"), heard.append)
    assert ticket.watch(1)
    Batcher(_Worker(), most_waiting=1, most_together=1).withdraw(ticket)
    assert not ticket.watch(2)
    assert heard == [1]


def test_a_queue_that_is_closed_finishes_what_runs() -> None:
    worker = _Worker()
    batcher = _begun(worker)
    (waiting,) = _submitted(batcher, _Request("a"))
    batcher.close()
    with pytest.raises(ClosingError):
        waiting.answer.result(20)
    with pytest.raises(ClosingError):
        batcher.submit(Ticket(_Request("b")))
    worker.may_end.set()
    batcher.join()
    assert worker.batches == [["first"]]
