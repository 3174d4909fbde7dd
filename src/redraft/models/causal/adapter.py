"""Low-rank adapters in the layout of peft: what training adds to the linear layers of a causal model.

A layer's weight W becomes W + alpha / rank x B A.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from redraft.errors import PackError, reason
from redraft.files import replacing

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
ABOUT = "infiller.json"  # what peft has no place for
_PREFIX = "base_model.model."


class LowRank(NamedTuple):
    """The two factors of a change: ``down`` [rank, in] and ``up`` [out, rank]."""

    down: Tensor
    up: Tensor


@dataclass(frozen=True)
class Adapter:
    """What to add to which layers of which model; ``base_hash`` identifies the files of the model."""

    rank: int
    alpha: float
    base: str
    base_hash: str
    layers: Mapping[str, LowRank]  # by the layer's name in the model's files, without ".weight"
    styles: tuple[str, ...] = ()  # that the infiller was trained on, the most frequent first

    def merged(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A model's weights with the adapter in them."""
        result = dict(weights)
        for name, (down, up) in self.layers.items():
            old = result.get(f"{name}.weight")
            if old is None or old.shape != (up.shape[0], down.shape[1]):
                raise PackError(f"the adapter changes {name}, which {self.base} does not have in that shape")
            result[f"{name}.weight"] = (old.float() + self.alpha / self.rank * (up.float() @ down.float())).to(
                old.dtype
            )
        return result


def save_adapter(adapter: Adapter, folder: Path) -> None:
    """Write an adapter in bfloat16."""
    tensors = {}
    for name, (down, up) in adapter.layers.items():
        tensors[f"{_PREFIX}{name}.lora_A.weight"] = down.detach().to(torch.bfloat16).contiguous()
        tensors[f"{_PREFIX}{name}.lora_B.weight"] = up.detach().to(torch.bfloat16).contiguous()
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": adapter.base,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in adapter.layers}),
    }
    about = {"base_hash": adapter.base_hash, "styles": list(adapter.styles)}
    with replacing(folder / ADAPTER_WEIGHTS) as path:
        save_file(tensors, path)
    for name, content in ((ADAPTER_CONFIG, config), (ABOUT, about)):
        with replacing(folder / name) as path:
            path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load_adapter(folder: Path) -> Adapter:
    """An adapter that redraft or peft wrote."""
    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8")) if (folder / ABOUT).exists() else {}
        tensors = load_file(folder / ADAPTER_WEIGHTS)
        names = [name.removeprefix(_PREFIX).removesuffix(".lora_A.weight") for name in tensors if ".lora_A." in name]
        layers = {
            name: LowRank(tensors[f"{_PREFIX}{name}.lora_A.weight"], tensors[f"{_PREFIX}{name}.lora_B.weight"])
            for name in names
        }
        found = Adapter(
            int(config["r"]),
            float(config["lora_alpha"]),
            str(config["base_model_name_or_path"]),
            str(about.get("base_hash", "")),
            layers,
            tuple(map(str, about.get("styles", ()))),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise PackError(f"{folder} does not hold an adapter that can be read: {reason(error)}") from error
    if not layers or 2 * len(layers) != len(tensors):
        raise PackError(f"{folder / ADAPTER_WEIGHTS} does not hold pairs of low-rank factors alone")
    if odd := [name for name, (down, up) in layers.items() if len(down) != found.rank or up.shape[1] != found.rank]:
        raise PackError(f"{folder / ADAPTER_WEIGHTS} is not of rank {found.rank}, as {ADAPTER_CONFIG} says ({odd[0]})")
    return found
