"""Store weights in 8 bits. Each row of a matrix has integers from -127 to 127 and one scale.

Tensors with more than two axes are matrices of their first axis and all others. Vectors stay float32.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

_SCALE = ".scale"


def quantise(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert matrices to int8, with one float32 scale per row."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim < 2:
            packed[name] = weight.float().contiguous()
            continue
        rows = weight.float().flatten(1)
        scale = rows.abs().amax(1).clamp_min(1e-12) / 127
        packed[name] = (rows / scale[:, None]).round().to(torch.int8).view(weight.shape)
        packed[name + _SCALE] = scale
    return packed


def dequantise(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert back to float32."""
    return {
        name: _scaled(weight, packed[name + _SCALE]) if weight.dtype == torch.int8 else weight.float()
        for name, weight in packed.items()
        if not name.endswith(_SCALE)
    }


def _scaled(weight: Tensor, scale: Tensor) -> Tensor:
    return (weight.flatten(1).float() * scale[:, None]).view(weight.shape)
