"""A Llama with trainable LoRA adapters and frozen weights.

Products with the frozen weights can use 8 bits, as in SwitchBack (Wortsman et al., 2023): the input and the gradient
are quantised per row, the weights per channel, and sums are 32-bit integers. The adapters and their gradients are in
single precision.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from redraft.models.causal.adapter import Adapter, LowRank
from redraft.models.causal.eight_bits import EightBits
from redraft.models.causal.llama import CONFIG, WEIGHTS
from redraft.models.precision import compute_dtype

_CHUNK = 256  # rows of logits at once
Product = Callable[[Tensor], Tensor]


class FrozenProduct:
    """Products with a frozen weight, in 8 bits or in single precision."""

    def __init__(self, weight: Tensor, *, eight_bits: bool):
        if eight_bits:
            self.product: Product = EightBits.of(weight).product  # x W^T
            self.gradient: Product = EightBits.of(weight.t()).product  # grad W
        else:
            self.product = lambda x: x @ weight.t()
            self.gradient = lambda grad: grad @ weight


class _Adapted(torch.autograd.Function):
    """x W^T + scale (x A^T) B^T with W frozen; A and B are stacked over the projections that share their input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, down: Tensor, product: FrozenProduct, scale: float, *ups: Tensor) -> Tensor:
        result, low = product.product(x), x @ down.t()
        rank, start = low.shape[1] // len(ups), 0
        for i, up in enumerate(ups):
            part = result[:, start : start + len(up)]
            part.addmm_(low[:, i * rank : (i + 1) * rank], up.t(), alpha=scale)
            start += len(up)
        ctx.save_for_backward(x, low, down, *ups)
        ctx.product, ctx.scale = product, scale
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        x, low, down, *ups = ctx.saved_tensors
        rank, start = low.shape[1] // len(ups), 0
        grad_low, grad_ups = torch.empty_like(low), []
        for i, up in enumerate(ups):
            part, columns = grad[:, start : start + len(up)], slice(i * rank, (i + 1) * rank)
            grad_low[:, columns] = part @ up
            grad_ups.append((part.t() @ low[:, columns]).mul_(ctx.scale))
            start += len(up)
        grad_low.mul_(ctx.scale)
        grad_x = ctx.product.gradient(grad.contiguous()).addmm_(grad_low, down) if ctx.needs_input_grad[0] else None
        return grad_x, grad_low.t() @ x, None, None, *grad_ups


class _Projections(nn.Module):
    """Frozen projections that share one input, and their adapters."""

    def __init__(self, weights: Mapping[str, Tensor], rank: int, scale: float, *, eight_bits: bool):
        super().__init__()
        self.names, self._scale = tuple(weights), scale
        self._frozen = [
            FrozenProduct(torch.cat(list(weights.values())), eight_bits=eight_bits)
        ]  # in a list, so that it is not part of the state dict
        width = next(iter(weights.values())).shape[1]
        self.down = nn.Parameter(torch.empty(len(weights) * rank, width).uniform_(-1, 1).mul_(width**-0.5))
        self.ups = nn.ParameterList([nn.Parameter(torch.zeros(len(weight), rank)) for weight in weights.values()])

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = _Adapted.apply(x, self.down, self._frozen[0], self._scale, *self.ups)  # type: ignore[no-untyped-call]
        return found


class _Layer(nn.Module):
    """The projections of a layer, grouped by input, and its two norms."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str, rank: int, scale: float, *, eight_bits: bool):
        super().__init__()

        def projections(*names: str) -> _Projections:
            chosen = {f"{prefix}.{name}": weights[f"{prefix}.{name}.weight"] for name in names}
            return _Projections(chosen, rank, scale, eight_bits=eight_bits)

        self.norms = [weights[f"{prefix}.{name}_layernorm.weight"] for name in ("input", "post_attention")]
        self.self_attn = projections("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        self.self_attn_out = projections("self_attn.o_proj")
        self.mlp = projections("mlp.gate_proj", "mlp.up_proj")
        self.mlp_out = projections("mlp.down_proj")


class LoraLlama(nn.Module):
    """The network of a folder with an adapter on every linear layer. Only the adapters are parameters."""

    def __init__(self, folder: Path, rank: int, alpha: float, *, eight_bits: bool = False):
        super().__init__()
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        self.rank, self.alpha = rank, alpha
        self._heads = config["num_attention_heads"]
        self._key_heads = config.get("num_key_value_heads") or self._heads
        self._size = config.get("head_dim") or config["hidden_size"] // self._heads
        self._eps = config["rms_norm_eps"]
        theta = float((config.get("rope_parameters") or config).get("rope_theta", 10000.0))
        self._frequencies = [theta ** -(torch.arange(0, self._size, 2) / self._size)]
        weights = {name: value.float() for name, value in load_file(folder / WEIGHTS).items()}
        embedding = weights["model.embed_tokens.weight"]
        head = embedding if config.get("tie_word_embeddings") else weights["lm_head.weight"]
        self._frozen = {"embedding": embedding, "head": head, "norm": weights["model.norm.weight"]}
        self._train_head = head.to(compute_dtype())
        self.layers = nn.ModuleList()
        for number in range(config["num_hidden_layers"]):
            self.layers.append(_Layer(weights, f"model.layers.{number}", rank, alpha / rank, eight_bits=eight_bits))

    def hidden(self, ids: Tensor) -> Tensor:
        """Normalised last hidden states [rows, tokens, size]. Padding must follow the text."""
        rows, time = ids.shape
        angles = torch.arange(time)[:, None] * self._frequencies[0]
        cos, sin = (torch.cat([part, part], 1)[:, None] for part in (angles.cos(), angles.sin()))  # [time, 1, size]
        split = [self._heads * self._size, self._key_heads * self._size, self._key_heads * self._size]
        hidden = self._frozen["embedding"][ids].flatten(0, 1)
        for layer in self.layers:
            assert isinstance(layer, _Layer)
            qkv = layer.self_attn(self._normed(hidden, layer.norms[0])).view(rows, time, -1)
            q, k, v = (part.view(rows, time, -1, self._size) for part in torch.split(qkv, split, 2))
            q, k = (_rotated(part, cos, sin) for part in (q, k))
            mixed = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True
            )
            hidden = hidden + layer.self_attn_out(mixed.transpose(1, 2).reshape(rows * time, -1))
            gate, up = layer.mlp(self._normed(hidden, layer.norms[1])).chunk(2, 1)
            hidden = hidden + layer.mlp_out(functional.silu(gate) * up)
        return self._normed(hidden, self._frozen["norm"]).view(rows, time, -1)

    def nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Negative log-probability [tokens] of the next tokens, given states [tokens, size]."""
        head = self._train_head if hidden.requires_grad else self._frozen["head"]
        found: Tensor = _CrossEntropy.apply(hidden, targets, head)  # type: ignore[no-untyped-call]
        return found

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[-1:], weight, self._eps)

    @property
    def num_tokens(self) -> int:
        """Size of the token vocabulary."""
        return len(self._frozen["embedding"])

    def deltas(self) -> dict[str, LowRank]:
        """The adapters by layer name."""
        return {
            name: LowRank(down, up)
            for module in self.modules()
            if isinstance(module, _Projections)
            for name, down, up in zip(module.names, torch.split(module.down, self.rank), module.ups, strict=True)
        }

    @torch.no_grad()
    def start_from(self, adapter: Adapter) -> None:
        """Copy the weights of an adapter."""
        for name, (down, up) in self.deltas().items():
            down.copy_(adapter.layers[name].down)
            up.copy_(adapter.layers[name].up)


class _CrossEntropy(torch.autograd.Function):
    """Cross entropy of each token with a frozen output layer, in chunks; gradients are computed in the forward pass.

    Products are in the precision of the output layer, sums in single precision.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, targets: Tensor, head: Tensor) -> Tensor:
        found, grads = [], []
        for states, wanted in zip(torch.split(hidden, _CHUNK), torch.split(targets, _CHUNK), strict=True):
            logits = (states.to(head.dtype) @ head.t()).float()
            log_wanted = logits.gather(1, wanted[:, None])
            top = logits.amax(1, keepdim=True)
            probs = logits.sub_(top).exp_()
            sums = probs.sum(1, keepdim=True)
            found.append((sums.log() + top - log_wanted)[:, 0])
            if hidden.requires_grad:
                expected = probs.div_(sums).to(head.dtype) @ head
                grads.append(expected.float().sub_(head[wanted]))
        ctx.save_for_backward(torch.cat(grads) if grads else hidden.new_empty(0))
        return torch.cat(found) if found else hidden.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return ctx.saved_tensors[0] * grads[0][:, None], None, None


def _rotated(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of vectors [rows, time, heads, size]; the halves are real and imaginary parts."""
    left, right = vectors.chunk(2, -1)
    return vectors * cos + torch.cat([-right, left], -1) * sin
