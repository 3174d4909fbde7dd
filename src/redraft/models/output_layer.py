"""The output layer of a language model with many words or pieces."""

import torch
from torch import Tensor

_COLUMNS = 800  # whose logits are computed together


def log_prob_of(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Log-probability of one target a row; [n, d], [n] and the layer's [v, d], [v] to [n].

    The sums over all columns are taken some columns at a time, while these are in the cache; log_softmax does it in one
    pass where logsumexp takes four.
    """
    if bias is None:
        bias = weight.new_zeros(len(weight))
    log_sums = []
    for rows, some in zip(torch.split(weight, _COLUMNS), torch.split(bias, _COLUMNS), strict=True):
        logits = torch.addmm(some, hidden, rows.T)
        first = logits[:, 0].clone()
        log_sums.append(first - torch.log_softmax(logits, 1, out=logits)[:, 0])
    picked: Tensor = (hidden * weight[target]).sum(1) + bias[target]
    return picked - torch.stack(log_sums).logsumexp(0)
