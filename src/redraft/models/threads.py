"""Run independent pieces of work in parallel, each on one core.

Torch splits every single matrix product among the cores. For the small products of a compact model that hardly helps.
Independent pieces of work do not wait for each other. The results are the same as without threads.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Barrier
from typing import TypeVar

import torch

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Work], _Result], parts: Sequence[_Work]) -> list[_Result]:
    """Map ``work`` over parts without gradients, on as many cores as torch may use."""
    num = torch.get_num_threads()
    if num == 1 or len(parts) < 2:
        with torch.inference_mode():
            return [work(part) for part in parts]
    return list(_pool(num).map(torch.inference_mode()(work), parts))


@contextmanager
def one_core() -> Iterator[None]:
    """Compute on one core inside the block: many small steps take longer on several, which wait for each other."""
    num = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num)


@lru_cache(maxsize=1)
def _pool(num: int) -> ThreadPoolExecutor:
    all_started = Barrier(num)

    def begin() -> None:
        torch.get_num_threads()  # the first call in a thread copies the global number, so it comes before the change
        torch.set_num_threads(1)
        all_started.wait()

    pool = ThreadPoolExecutor(num, "redraft", begin)
    for started in [pool.submit(torch.get_num_threads) for _ in range(num)]:
        started.result()
    torch.set_num_threads(num)  # threads that start later copy what a thread has set
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has none of the threads
