"""The output layer of a language model with a large vocabulary.

Logits are computed in blocks, never all at once. Training can use a sampled softmax.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

_COLUMNS, _ROWS = 1600, 512  # of a block of logits
_TRAINED_ROWS = 256  # of a block in training, which has all columns


def log_prob_of(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Log-probability of one target per row: [n, d], [n] and the layer's [v, d], [v] to [n]."""
    if bias is None:
        bias = weight.new_zeros(len(weight))
    return picked_logits(hidden, target, weight, bias) - log_sum_exp(hidden, weight, bias)


def picked_logits(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Logits of one target per row, [n], in float32."""
    picked: Tensor = (hidden.float() * weight[target].float()).sum(1) + bias[target].float()
    return picked


def log_sum_exp(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Log-sum-exp over all columns, [n], in float32.

    It is computed in blocks that fit into the processor's cache. log_softmax needs one pass, logsumexp four.
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
    """The columns of a sampled softmax: pieces that stand for the whole vocabulary in a training step."""

    ids: Tensor  # ascending
    log_weights: Tensor  # log of the number of pieces that each stands for


def sample_columns(target: Tensor, size: int, frequent: int, num: int, generator: torch.Generator) -> Columns:
    """Choose the frequent pieces, the targets of the batch, and a uniform sample of ``num`` other pieces.

    The expected sum over these columns is the sum of the full softmax, for every row of the batch: frequent pieces and
    targets have weight 1, and the sample is weighted by the inverse of its share. Ids are frequency ranks.
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


# Gives the probability mass of the soft targets for a slice of rows, [n, v]. A row may sum to less than 1.
SoftTargets = Callable[[slice], Tensor]


def cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, soft: SoftTargets | None = None
) -> Tensor:
    """Summed cross-entropy: [n, d], the layer's [v, d], its bias [v] or None, and targets [n] to a scalar.

    With ``soft`` targets, the probability mass that a row lacks to 1 goes to its hard target.
    """
    loss: Tensor = _SummedCrossEntropy.apply(hidden, weight, bias, target, soft)  # type: ignore[no-untyped-call]
    return loss


class _SummedCrossEntropy(torch.autograd.Function):
    """Sum of -log softmax(hidden @ weight.T + bias)[target], with its gradient computed in the same pass.

    All logits would be the largest array of the model. They are computed in blocks and turned into the gradient in
    place. This is possible because backward only scales the sum by one number.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, soft: SoftTargets | None
    ) -> Tensor:
        # Cast once: under autocast every product would cast its operands again.
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
    """The gradient of a block's loss with respect to its logits [n, v], and the loss."""
    logits = (hidden @ weight.T).float()
    if bias is not None:
        logits += bias
    torch.log_softmax(logits, 1, out=logits)
    hard = torch.ones(len(target))
    loss = torch.zeros(())
    if soft is not None:
        hard -= soft.sum(1)
        loss = -torch.dot(logits.view(-1), soft.view(-1))  # without an array of the products
    loss = loss - (logits.gather(1, target[:, None]).squeeze(1) * hard).sum()
    residual = logits.exp_()
    residual[torch.arange(len(target)), target] -= hard
    if soft is not None:
        residual -= soft
    return residual, loss
