"""Processes that train one model together, as ``accelerate launch`` starts them; usually there is one.

Each computes the gradient of its share of a batch, and the sum of all is everybody's. So a step is the same step
whatever the number of processes, up to the order of additions, and a run can be resumed with another number.
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
    """Which part of every batch a process computes."""

    index: int = 0
    num: int = 1

    def of(self, rows: _Rows) -> _Rows:
        """Rows stand by length, so that each share has its long and its short ones."""
        taken: _Rows = rows[self.index :: self.num]  # type: ignore[index]
        return taken


WHOLE = Share()


@dataclass(frozen=True)
class Processes:
    """All of them, seen from one. The first is the one that validates and writes files."""

    share: Share = WHOLE

    @property
    def is_first(self) -> bool:
        return self.share.index == 0

    def sum(self, value: float) -> float:
        """The sum of what each of them gives."""
        return float(self._reduced(torch.tensor(value, dtype=torch.float64)))

    def agree(self, value: float) -> float:
        """What the first of them gives."""
        return self.sum(value if self.is_first else 0.0)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the sum of all gradients; one whose share was empty has none of its own."""
        if self.share.num == 1:
            return
        wanted = list(parameters)
        kinds = torch.tensor([_kind(parameter) for parameter in wanted])
        for parameter, kind in zip(wanted, self._reduced(kinds, largest=True).tolist(), strict=True):
            if kind != _ABSENT:
                grad = parameter.grad if parameter.grad is not None else _nothing(parameter, sparse=kind == _SPARSE)
                parameter.grad = self._reduced(grad)

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """What the first leaves in a cache the others find there."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()

    def wait(self) -> None:
        """Until all have come here."""
        self.sum(0.0)

    def _reduced(self, value: Tensor, *, largest: bool = False) -> Tensor:
        if self.share.num > 1:
            kind = torch.distributed.ReduceOp.MAX if largest else torch.distributed.ReduceOp.SUM
            torch.distributed.all_reduce(value, kind)
        return value


def join() -> Processes:
    """The processes that were started together with this one."""
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


def _nothing(parameter: nn.Parameter, *, sparse: bool) -> Tensor:
    if not sparse:
        return torch.zeros_like(parameter)
    rows, *rest = parameter.shape
    return torch.sparse_coo_tensor(
        torch.empty(1, 0, dtype=torch.long), torch.empty(0, *rest), (rows, *rest), check_invariants=False
    )
