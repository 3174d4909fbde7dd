"""Matrix products with 8-bit weights, for processors that have fast 8-bit integer instructions.

Weights have one scale per output. Inputs are quantised on the fly, with one scale per row. Sums are 32-bit integers.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_MIN_SCALE = 1e-12  # keeps the scale of a row of zeros positive
_MAX_INT = 127


class EightBits(NamedTuple):
    """A weight [out, in] as integers [in, out] with one scale per output.

    ``in`` must be at least 2: torch 2.13 returns wrong results for a width of 1.
    """

    ints: Tensor
    scales: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "EightBits":
        """Quantise a weight."""
        scales = weight.float().abs().amax(1).clamp_min(_MIN_SCALE) / _MAX_INT
        return cls((weight / scales[:, None]).round().to(torch.int8).t().contiguous(), scales)

    def product(self, x: Tensor) -> Tensor:
        """Return x W^T for float32 input [..., in]."""
        rows = x.reshape(-1, x.shape[-1])
        largest = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True))  # faster than abs().amax()
        row_scales = largest.clamp_min_(_MIN_SCALE).div_(_MAX_INT)
        sums = torch._int_mm((rows / row_scales).round_().to(torch.int8), self.ints)
        return sums.to(torch.float32).mul_(row_scales).mul_(self.scales).view(*x.shape[:-1], -1)


def is_fast() -> bool:
    """Return whether the processor has instructions for 8-bit dot products."""
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_vnni") or capabilities.get("avx_vnni") or capabilities.get("amx_int8"))
