"""The precision that models compute in."""

import os
from typing import TYPE_CHECKING

from redraft.errors import InputError

if TYPE_CHECKING:
    import torch

PRECISION = "REDRAFT_PRECISION"  # environment variable: float32 or bfloat16


def compute_dtype() -> "torch.dtype":
    """Return bfloat16 where the processor has fast instructions for it, otherwise float32.

    The choice depends on the processor's capabilities and is never measured, so a model gives the same scores in
    every run on a machine. Set ``REDRAFT_PRECISION`` to get the same scores on every machine.
    """
    import torch

    if wanted := os.environ.get(PRECISION):
        if wanted not in ("float32", "bfloat16"):
            raise InputError(f"{PRECISION}={wanted} is no precision of redraft; set it to float32 or bfloat16")
        return torch.float32 if wanted == "float32" else torch.bfloat16
    capabilities = torch.cpu.get_capabilities()
    return torch.bfloat16 if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else torch.float32


def precision_name(dtype: "torch.dtype") -> str:
    """Return the name used in signatures and model cards: float32, bfloat16 or int8."""
    return str(dtype).removeprefix("torch.")
