"""Data-parallel training with the processes that ``accelerate launch`` starts; usually there is one.

Each process computes the gradient of its share of a batch, and all receive the sum. A step is therefore the same for
any number of processes, up to the order of additions, and a run can be resumed with a different number.
"""

import atexit
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

_Rows = TypeVar("_Rows")  # a list or an array
_ABSENT, _DENSE, _SPARSE = 0, 1, 2  # kinds of gradients


@dataclass(frozen=True)
class Share:
    """The part of every batch that a process computes."""

    index: int = 0
    num: int = 1

    def of(self, rows: _Rows) -> _Rows:
        """Every num-th row. Rows are sorted by length, so each share has long and short ones."""
        taken: _Rows = rows[self.index :: self.num]  # type: ignore[index]
        return taken


WHOLE = Share()


@dataclass(frozen=True)
class Processes:
    """All processes, as seen from one of them. The first one validates and writes files."""

    share: Share = WHOLE

    @property
    def is_first(self) -> bool:
        return self.share.index == 0

    def sum(self, value: float) -> float:
        """The sum of the values of all processes."""
        return float(self._reduced(torch.tensor(value, dtype=torch.float64)))

    def agree(self, value: float) -> float:
        """The value of the first process."""
        return self.sum(value if self.is_first else 0.0)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the sum of all gradients. A process with an empty share contributes none."""
        if self.share.num == 1:
            return
        wanted = list(parameters)
        kinds = torch.tensor([_kind(parameter) for parameter in wanted])
        for parameter, kind in zip(wanted, self._reduced(kinds, largest=True).tolist(), strict=True):
            if kind != _ABSENT:
                grad = (
                    parameter.grad if parameter.grad is not None else _zero_gradient(parameter, sparse=kind == _SPARSE)
                )
                parameter.grad = self._reduced(grad)

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Run the block in the first process, then in the others, which find its result in a cache."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()

    def wait(self) -> None:
        """Wait for all processes."""
        self.sum(0.0)

    def _reduced(self, value: Tensor, *, largest: bool = False) -> Tensor:
        if self.share.num > 1:
            kind = torch.distributed.ReduceOp.MAX if largest else torch.distributed.ReduceOp.SUM
            torch.distributed.all_reduce(value, kind)
        return value


def join() -> Processes:
    """The processes that were launched together with this one."""
    if "LOCAL_RANK" not in os.environ:
        return Processes()
    from accelerate import PartialState  # type: ignore[import-untyped]

    first_time = not torch.distributed.is_initialized()
    state = PartialState(cpu=True)
    if first_time:
        atexit.register(state.destroy_process_group)
    return Processes(Share(state.process_index, state.num_processes))


def _kind(parameter: nn.Parameter) -> int:
    if parameter.grad is None:
        return _ABSENT
    return _SPARSE if parameter.grad.is_sparse else _DENSE


def _zero_gradient(parameter: nn.Parameter, *, sparse: bool) -> Tensor:
    if not sparse:
        return torch.zeros_like(parameter)
    rows, *rest = parameter.shape
    return torch.sparse_coo_tensor(
        torch.empty(1, 0, dtype=torch.long), torch.empty(0, *rest), (rows, *rest), check_invariants=False
    )
