"""Products with weights in 8 bits, for processors that multiply 8-bit integers faster than other numbers.

A weight has a scale for each of its rows, the input one for each of its own; sums are 32-bit integers.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_LEAST = 1e-12  # of a scale: a row of zeros has one, too
_LARGEST = 127


class EightBits(NamedTuple):
    """A weight [out, in] as integers [in, out] and the scale of each output.

    ``in`` must be at least 2: torch 2.13 returns wrong sums of one product.
    """

    ints: Tensor
    scales: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "EightBits":
        scales = weight.float().abs().amax(1).clamp_min(_LEAST) / _LARGEST
        return cls((weight / scales[:, None]).round().to(torch.int8).t().contiguous(), scales)

    def product(self, x: Tensor) -> Tensor:
        """x W^T of an input [..., in] in single precision."""
        rows = x.reshape(-1, x.shape[-1])
        row_scales = rows.abs().amax(1, keepdim=True).clamp_min_(_LEAST).div_(_LARGEST)
        sums = torch._int_mm((rows / row_scales).round_().to(torch.int8), self.ints)
        return sums.to(torch.float32).mul_(row_scales).mul_(self.scales).view(*x.shape[:-1], -1)


def is_fast() -> bool:
    """Whether the processor has instructions for sums of 8-bit products."""
    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_vnni") or able.get("avx_vnni") or able.get("amx_int8"))
