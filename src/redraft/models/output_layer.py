"""The output layer of a language model with many pieces: never all logits at once, in training only some of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

_COLUMNS, _ROWS = 1600, 512  # whose logits are computed together
_TRAINED_ROWS = 256  # the same in training, with all columns of the step


def log_prob_of(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Log-probability of one target a row; [n, d], [n] and the layer's [v, d], [v] to [n]."""
    if bias is None:
        bias = weight.new_zeros(len(weight))
    return picked_logits(hidden, target, weight, bias) - log_sum_exp(hidden, weight, bias)


def picked_logits(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Logits of one target a row, [n], in single precision."""
    picked: Tensor = (hidden.float() * weight[target].float()).sum(1) + bias[target].float()
    return picked


def log_sum_exp(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Logarithms of the sums over all columns, [n], in single precision.

    They are taken some rows and columns at a time, while these are in the cache; log_softmax does it in one pass where
    logsumexp takes four.
    """
    if len(hidden) > _ROWS:
        return torch.cat([log_sum_exp(some, weight, bias) for some in torch.split(hidden, _ROWS)])
    log_sums = []
    for rows, some in zip(torch.split(weight, _COLUMNS), torch.split(bias, _COLUMNS), strict=True):
        logits = torch.addmm(some, hidden, rows.T).float()
        first = logits[:, 0].clone()
        log_sums.append(first - torch.log_softmax(logits, 1, out=logits)[:, 0])
    return torch.stack(log_sums).logsumexp(0)


class Columns(NamedTuple):
    """Pieces that stand for the whole vocabulary in a training step."""

    ids: Tensor  # ascending
    log_weights: Tensor  # how many pieces each stands for


def sample_columns(target: Tensor, size: int, frequent: int, num: int, generator: torch.Generator) -> Columns:
    """The frequent pieces, those of the batch, and ``num`` of the others that stand for all of them.

    The sum over these columns has the full softmax's sum as its expectation, for every row of the batch: the first two
    kinds are counted as they are, the others are drawn alike. Ids are ranks, so that small ones are frequent.
    """
    fixed = torch.zeros(size, dtype=torch.bool)
    fixed[:frequent] = True
    fixed[target] = True
    others = (~fixed).nonzero().squeeze(1)
    num = min(num, len(others))
    drawn = others[torch.randperm(len(others), generator=generator)[:num]]
    log_weights = torch.zeros(size)
    log_weights[drawn] = torch.tensor(len(others) / max(num, 1)).log()
    fixed[drawn] = True
    ids = fixed.nonzero().squeeze(1)
    return Columns(ids, log_weights[ids])


Soft = Callable[[slice], Tensor]  # rows of predictions to parts of the distributions that they should give, [n, v]


def cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, soft: Soft | None = None
) -> Tensor:
    """Summed negative log-likelihood; [n, d], the layer's [v, d] and [v] if it has one, and [n] to a scalar.

    ``soft`` tells parts of the distributions that rows should give; what is missing in a row to 1 is its target's.
    """
    loss: Tensor = _SummedCrossEntropy.apply(hidden, weight, bias, target, soft)  # type: ignore[no-untyped-call]
    return loss


class _SummedCrossEntropy(torch.autograd.Function):
    """Sum of -log softmax(hidden @ weight.T + bias)[target], its gradient taken in the same pass.

    The logits would be the largest array of the model. They are computed some rows at a time and become the gradient
    in place while they are in the cache. That is right because the sum is only ever scaled by one number.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, soft: Soft | None
    ) -> Tensor:
        # Cast once: under autocast every product would cast its parts anew.
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else hidden.dtype
        states, columns = hidden.to(dtype), weight.to(dtype)
        loss = torch.zeros(())
        hidden_grad, weight_grad = torch.empty_like(hidden), torch.zeros_like(weight)
        bias_grad = None if bias is None else torch.zeros_like(bias)
        for start in range(0, len(hidden), _TRAINED_ROWS):
            rows = slice(start, start + _TRAINED_ROWS)
            residual, part = _residual(states[rows], columns, bias, target[rows], soft and soft(rows))
            loss += part
            if any(ctx.needs_input_grad):
                rounded = residual.to(dtype)
                hidden_grad[rows] = rounded @ columns
                weight_grad += rounded.T @ states[rows]
                if bias_grad is not None:
                    bias_grad += residual.sum(0)
        ctx.save_for_backward(hidden_grad, weight_grad, bias_grad)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        hidden, weight, bias = ctx.saved_tensors
        return hidden * grads[0], weight * grads[0], None if bias is None else bias * grads[0], None, None


def _residual(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, soft: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradient of a part's loss by its logits [n, v], and the loss."""
    logits = (hidden @ weight.T).float()
    if bias is not None:
        logits += bias
    torch.log_softmax(logits, 1, out=logits)
    hard = torch.ones(len(target))
    loss = torch.zeros(())
    if soft is not None:
        hard -= soft.sum(1)
        loss = -torch.dot(logits.view(-1), soft.view(-1))  # no array of their products
    loss = loss - (logits.gather(1, target[:, None]).squeeze(1) * hard).sum()
    residual = logits.exp_()
    residual[torch.arange(len(target)), target] -= hard
    if soft is not None:
        residual -= soft
    return residual, loss
