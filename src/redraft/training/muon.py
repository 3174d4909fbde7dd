"""The Muon optimizer: each momentum matrix is replaced by the nearest orthogonal one, so all directions move equally.

The size of a step depends only on the learning rate, as with Adam, so both share one rate: Muon updates the matrices
inside the layers, Adam the embeddings and vectors.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

_STEP_RMS = 1.0  # root mean square of a step divided by the learning rate; about 0.2 for Adam, Muon tolerates more
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # a quintic that drives singular values to about 1 in five iterations
_NUM_ITERATIONS = 5
_MATRICES = (".q", ".k", ".v", ".o", ".r", "layer_1.weight", "layer_2.weight")  # inside the layers of an XLNet


def optimizers(network: nn.Module, precision: torch.dtype = torch.float32) -> list[torch.optim.Optimizer]:
    """The optimizers of an XLNet: Muon for its matrices, with products in that precision, and Adam for the rest."""
    inside = [p for name, p in network.named_parameters() if name.endswith(_MATRICES)]
    others = [p for name, p in network.named_parameters() if not name.endswith(_MATRICES)]
    return [Muon(inside, precision=precision), torch.optim.AdamW(others, betas=(0.9, 0.98), fused=True)]


class Muon(torch.optim.Optimizer):
    """Muon. A parameter with more than two axes is treated as a matrix: the first axis by the others."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        precision: torch.dtype = torch.float32,
    ):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._precision = precision

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters; matrices of the same shape are orthogonalised in one batch."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(tuple(parameter.flatten(1).shape), []).append(parameter)
            for shape, parameters in by_shape.items():
                self._update(parameters, group, _STEP_RMS * max(shape) ** 0.5)

    def _update(self, parameters: list[Tensor], group: dict[str, Any], scale: float) -> None:
        moving = torch.stack([self._momentum(parameter, group["momentum"]) for parameter in parameters])
        for parameter, update in zip(parameters, orthogonal(moving.to(self._precision)), strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(update.view_as(parameter), alpha=-group["lr"] * scale)

    def _momentum(self, parameter: Tensor, momentum: float) -> Tensor:
        state, grad = self.state[parameter], parameter.grad
        if grad is None:
            raise ValueError("a parameter without a gradient cannot be updated")
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].lerp_(grad, 1 - momentum)
        return grad.lerp(state["momentum"], momentum).flatten(1)  # Nesterov momentum


def orthogonal(matrices: Tensor) -> Tensor:
    """Approximately orthogonal matrices nearest to the given ones [n, rows, columns], by Newton-Schulz iteration."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_NUM_ITERATIONS):
        square = x @ x.transpose(1, 2)
        x = a * x + torch.baddbmm(square, square, square, beta=b, alpha=c) @ x
    result: Tensor = x.transpose(1, 2) if tall else x
    return result
