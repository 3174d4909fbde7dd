"""Independent pieces of work side by side, each on one core.

Torch shares every single product out among the cores. For products as small as those of a compact model that hardly
helps; whole pieces of work do not wait for each other. The results are those of one after the other.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Barrier
from typing import TypeVar

import torch

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Work], _Result], parts: Sequence[_Work]) -> list[_Result]:
    """``work`` of each part, without gradients; on as many cores as torch may use."""
    num = torch.get_num_threads()
    if num == 1 or len(parts) < 2:
        with torch.inference_mode():
            return [work(part) for part in parts]
    return list(_pool(num).map(torch.inference_mode()(work), parts))


@lru_cache(maxsize=1)
def _pool(num: int) -> ThreadPoolExecutor:
    all_there = Barrier(num)

    def begin() -> None:
        torch.get_num_threads()  # the first look at it takes over everybody's number, so it comes first
        torch.set_num_threads(1)
        all_there.wait()

    pool = ThreadPoolExecutor(num, "redraft", begin)
    for begun in [pool.submit(torch.get_num_threads) for _ in range(num)]:
        begun.result()
    torch.set_num_threads(num)  # what a thread sets for itself is also what later ones begin with
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has none of the threads
