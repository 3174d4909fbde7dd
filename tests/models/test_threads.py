"""Parallel work gives the results of sequential work."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import torch

from redraft.models import threads
from redraft.models.threads import one_core, side_by_side


@pytest.fixture(params=[1, 2, 3])
def num_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_and_without_gradients(num_threads: int) -> None:
    weight = torch.eye(3, requires_grad=True)
    results = side_by_side(lambda number: number * weight, range(7))
    assert [float(result.trace()) for result in results] == [3.0 * number for number in range(7)]
    assert not any(result.requires_grad for result in results)


def test_each_part_has_one_core_and_the_caller_keeps_its_own(num_threads: int) -> None:
    meeting = threading.Barrier(num_threads, timeout=30)

    def meet(_: int) -> int:
        meeting.wait()  # nobody comes here who has to wait for another's part
        return torch.get_num_threads()

    assert side_by_side(meet, range(2 * num_threads)) == [1] * (2 * num_threads)
    assert torch.get_num_threads() == num_threads
    side_by_side(lambda _: torch.ones(400, 400) @ torch.ones(400, 400), range(4))
    assert torch.get_num_threads() == num_threads


def test_one_part_stays_with_the_caller(num_threads: int) -> None:
    assert side_by_side(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]
    assert side_by_side(lambda _: 1, []) == []


def test_what_goes_wrong_is_told(num_threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda number: 1 // number, [1, 0, 2])
    assert side_by_side(lambda number: -number, [1, 2, 3]) == [-1, -2, -3]


def test_threads_are_not_made_anew(num_threads: int) -> None:
    before = threads._pool(num_threads)
    side_by_side(lambda number: -number, [1, 2, 3])
    assert threads._pool(num_threads) is before


def test_a_fork_makes_threads_of_its_own() -> None:
    forking = """
import os, torch
from redraft.models.threads import one_core, side_by_side
torch.set_num_threads(2)
negated = lambda: side_by_side(lambda number: -number, [1, 2, 3]) == [-1, -2, -3]
assert negated()
child = os.fork()
if child == 0:
    os._exit(0 if negated() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", forking], check=True, timeout=60)


def test_a_block_on_one_core_gives_the_others_back_even_after_an_error(num_threads: int) -> None:
    def fails() -> None:
        with one_core():
            assert torch.get_num_threads() == 1
            assert side_by_side(lambda number: number, range(3)) == [0, 1, 2]
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fails()
    assert torch.get_num_threads() == num_threads
