"""Llama's network, which SmolLM2 has, without transformers: that alone takes seconds to import.

It computes what ``transformers.LlamaForCausalLM`` computes, from the same files. Rows that go on from the same past
read it where it lies instead of a copy each, and products with the same input are one product.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from redraft.errors import InputError, reason
from redraft.models.batching import padded
from redraft.models.causal.adapter import Adapter
from redraft.models.causal.eight_bits import EightBits
from redraft.models.causal.line import Tokens
from redraft.models.causal.network import Output, Past, Row, by_past
from redraft.models.precision import precision_name

CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
# Settings that this network computes; any other value is transformers' to run.
_FIXED = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
_BEGIN_TOKENS = 512  # of a context that are read at once: all of them would look at each other
_HIDDEN = -1e30  # added to the score of what may not be seen


Weight = Tensor | EightBits
Prepare = Callable[[Tensor], Weight]  # for products


class _Layer(NamedTuple):
    """The weights of a layer; projections that read the same input are stacked."""

    input_norm: Tensor
    qkv: Weight
    output: Weight
    mlp_norm: Tensor
    gate_up: Weight
    down: Weight


def _linear(x: Tensor, weight: Weight) -> Tensor:
    return weight.product(x) if isinstance(weight, EightBits) else functional.linear(x, weight)


class Llama:
    """The network of a folder that ``can_load``. With ``torch.int8`` its matrices are in 8 bits, all else is not."""

    def __init__(self, folder: Path, dtype: torch.dtype, adapter: Adapter | None = None):
        config = _config(folder)
        stored = load_file(folder / WEIGHTS)
        merged = adapter.merged(stored) if adapter else stored
        weights = {name: value.to(torch.float32 if dtype == torch.int8 else dtype) for name, value in merged.items()}
        self.precision = precision_name(dtype)
        self.max_tokens: int | None = config["max_position_embeddings"]
        self._heads, self._groups = config["num_attention_heads"], _key_value_heads(config)
        self._size = config.get("head_dim") or config["hidden_size"] // self._heads
        self._eps = config["rms_norm_eps"]
        self._frequencies = _theta(config) ** -(torch.arange(0, self._size, 2) / self._size)
        self._embedding = weights["model.embed_tokens.weight"]
        self.num_tokens = len(self._embedding)
        self._norm = weights["model.norm.weight"]
        head = self._embedding if config.get("tie_word_embeddings") else weights["lm_head.weight"]
        num_layers = config["num_hidden_layers"]
        shape = ((self._heads + 2 * self._groups) * self._size, config["hidden_size"])
        prepare: Prepare = EightBits.of if dtype == torch.int8 else Tensor.contiguous
        self._layers = [_layer(weights, f"model.layers.{i}.", shape, prepare) for i in range(num_layers)]
        self._head = prepare(head)
        if f"model.layers.{num_layers}.input_layernorm.weight" in weights:
            raise ValueError(f"there are more than {num_layers} layers")
        if not self._eps > 0:
            raise ValueError(f"rms_norm_eps is {self._eps}")

    @torch.inference_mode()
    def begin(self, tokens: Tokens) -> tuple[Tensor, Past]:
        nothing = self._embedding.new_zeros(len(self._layers), self._groups, 0, self._size)
        empty = past = Past(nothing, nothing)
        for first in range(0, len(tokens), _BEGIN_TOKENS):
            logits, added = self.run([Row(tokens[first : first + _BEGIN_TOKENS], empty, 0)], past)
            past = past.then(Past(added.keys[0], added.values[0]))
        return logits[0, -1], past

    @torch.inference_mode()
    def run(self, rows: Sequence[Row], start: Past) -> Output:
        ids, _ = padded([row.tokens for row in rows])
        positions = torch.tensor([[start.keys.shape[2] + row.kept] for row in rows]) + torch.arange(ids.shape[1])
        angles = positions[..., None] * self._frequencies
        turn = torch.polar(torch.ones_like(angles), angles)[:, :, None]  # [rows, tokens, 1, size / 2]
        shared = [(same, start.then(rows[same[0]].past.first(rows[same[0]].kept))) for same in by_past(rows).values()]
        hidden = self._embedding[ids]
        keys, values = [], []
        for number, layer in enumerate(self._layers):
            mixed, key, value = self._attend(layer, self._normed(hidden, layer.input_norm), turn, shared, number)
            hidden = hidden + _linear(mixed, layer.output)
            gate, inner = _linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, -1)
            hidden = hidden + _linear(functional.silu(gate) * inner, layer.down)
            keys.append(key)
            values.append(value)
        logits = _linear(self._normed(hidden, self._norm), self._head)
        return logits, Past(torch.stack(keys, 1), torch.stack(values, 1))

    def decoder(self, start: Past, num_rows: int, max_tokens: int) -> "LlamaDecoder":
        """Rows that all begin after the same start and are then read token by token."""
        return LlamaDecoder(self, start, num_rows, max_tokens)

    @torch.inference_mode()
    def step(self, ids: Tensor, position: int, keys: Tensor, values: Tensor) -> Tensor:
        """Read one token of each row [rows] at a position; scores [rows, vocabulary] of the next.

        ``keys`` and ``values`` [layers, rows, groups, tokens, size] hold what was read before; the token's are added.
        """
        rows = len(ids)
        angles = position * self._frequencies
        turn = torch.polar(torch.ones_like(angles), angles)
        hidden = self._embedding[ids]
        for number, layer in enumerate(self._layers):
            asked = _linear(self._normed(hidden, layer.input_norm), layer.qkv).view(rows, -1, self._size)
            query, key, value = torch.split(asked, [self._heads, self._groups, self._groups], 1)
            keys[number, :, :, position], values[number, :, :, position] = _turned(key, turn), value
            query = _turned(query, turn).reshape(rows, self._groups, -1, self._size)
            scores = query @ keys[number, :, :, : position + 1].transpose(2, 3) * self._size**-0.5
            weights = scores.float().softmax(-1).to(hidden.dtype)
            mixed = (weights @ values[number, :, :, : position + 1]).reshape(rows, -1)
            hidden = hidden + _linear(mixed, layer.output)
            gate, inner = _linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, -1)
            hidden = hidden + _linear(functional.silu(gate) * inner, layer.down)
        return _linear(self._normed(hidden, self._norm), self._head)

    def _attend(
        self, layer: _Layer, hidden: Tensor, turn: Tensor, shared: Sequence[tuple[list[int], Past]], number: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the tokens take from those before them, [rows, tokens, heads x size], and their keys and values."""
        rows, time, _ = hidden.shape
        asked = _linear(hidden, layer.qkv).view(rows, time, -1, self._size)
        query, key, value = torch.split(asked, [self._heads, self._groups, self._groups], 2)
        query, key = _turned(query, turn), _turned(key, turn)
        # Heads of a group ask the same keys: [rows, groups, heads of a group x tokens, size].
        query = query.view(rows, time, self._groups, -1, self._size).permute(0, 2, 3, 1, 4).flatten(2, 3)
        key, value = key.transpose(1, 2), value.transpose(1, 2)
        own = query @ key.transpose(2, 3) * self._size**-0.5
        own = own + _causal(time, own).repeat(query.shape[2] // time, 1)
        if len(shared) == 1:
            mixed = _mix(query, own, value, shared[0][1], number)
        else:
            mixed = torch.empty_like(query)
            for same, past in shared:
                mixed[same] = _mix(query[same], own[same], value[same], past, number)
        heads_last = mixed.view(rows, self._groups, -1, time, self._size).permute(0, 3, 1, 2, 4)
        return heads_last.reshape(rows, time, -1), key, value

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[-1:], weight, self._eps)


class LlamaDecoder:
    """Rows of one length that are read a token at a time. A row may take over another's past."""

    def __init__(self, network: Llama, start: Past, num_rows: int, max_tokens: int):
        self._network, self._position = network, start.keys.shape[2]
        self._keys, self._values = (
            torch.cat([part, part.new_zeros(*part.shape[:2], max_tokens, part.shape[3])], 2)[:, None].repeat(
                1, num_rows, 1, 1, 1
            )
            for part in start
        )

    def step(self, ids: Sequence[int]) -> Tensor:
        """Read the next token of each row; scores [rows, vocabulary] of what comes after it."""
        logits = self._network.step(torch.tensor(ids), self._position, self._keys, self._values)
        self._position += 1
        return logits

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows, in this order; one may come several times."""
        index = torch.tensor(rows)
        self._keys, self._values = self._keys.index_select(1, index), self._values.index_select(1, index)


def _mix(query: Tensor, own: Tensor, value: Tensor, past: Past, number: int) -> Tensor:
    """Values of a past that all rows share and of the rows' own tokens, by their scores; the shape of ``query``."""
    rows, groups, asks, size = query.shape
    together = query.transpose(0, 1).reshape(groups, rows * asks, size)
    before = (together @ past.keys[number].transpose(1, 2) * size**-0.5).view(groups, rows, asks, -1).transpose(0, 1)
    weights = torch.cat([before, own], -1).float().softmax(-1).to(query.dtype)
    there, here = torch.split(weights, [before.shape[-1], own.shape[-1]], -1)
    flat = there.transpose(0, 1).reshape(groups, rows * asks, -1)
    return (flat @ past.values[number]).view(groups, rows, asks, size).transpose(0, 1) + here @ value


def _turned(vectors: Tensor, turn: Tensor) -> Tensor:
    """Rotated by their position; halves of a vector are the two parts of complex numbers."""
    real, imaginary = vectors.float().chunk(2, -1)
    turned = torch.complex(real, imaginary) * turn
    return torch.cat([turned.real, turned.imag], -1).to(vectors.dtype)


def _causal(time: int, like: Tensor) -> Tensor:
    return torch.full((time, time), _HIDDEN, dtype=like.dtype).triu(1)


def _layer(weights: Mapping[str, Tensor], prefix: str, qkv_shape: tuple[int, int], prepare: Prepare) -> _Layer:
    def joined(*names: str) -> Tensor:
        return torch.cat([weights[f"{prefix}{name}.weight"] for name in names])

    qkv = joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    if qkv.shape != qkv_shape:
        raise ValueError(f"the heads do not fit weights of shape {tuple(qkv.shape)}")
    return _Layer(
        input_norm=weights[f"{prefix}input_layernorm.weight"],
        qkv=prepare(qkv),
        output=prepare(weights[f"{prefix}self_attn.o_proj.weight"]),
        mlp_norm=weights[f"{prefix}post_attention_layernorm.weight"],
        gate_up=prepare(joined("mlp.gate_proj", "mlp.up_proj")),
        down=prepare(weights[f"{prefix}mlp.down_proj.weight"]),
    )


def can_load(folder: Path) -> bool:
    """Whether a folder holds a model that this network computes, and a tokenizer that needs no code of its own."""
    if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)):
        return False
    try:
        config = _config(folder)
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        kind = rope.get("rope_type", rope.get("type", "default"))  # older files have the shorter name
    except (OSError, ValueError, AttributeError):
        return False  # transformers will say what is wrong with it
    return (
        "quantization_config" not in config
        and kind == "default"
        and all(config.get(name, value) == value for name, value in _FIXED.items())
    )


def load(folder: Path, dtype: torch.dtype, adapter: Adapter | None = None) -> tuple[Llama, "FileTokenizer"]:
    """Network and tokenizer of a folder, an adapter merged into the weights."""
    try:
        tokenizer = FileTokenizer(folder)
    except Exception as error:  # what tokenizers raises has no type of its own
        raise InputError(f"{folder} has no tokenizer that can be read ({error}); fetch {TOKENIZER} again") from error
    try:
        return Llama(folder, dtype, adapter), tokenizer
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{folder / WEIGHTS} does not hold the model that {CONFIG} tells of: {reason(error)}"
        ) from error


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return config


def _theta(config: Mapping[str, Any]) -> float:
    return float((config.get("rope_parameters") or config).get("rope_theta", 10000.0))


def _key_value_heads(config: Mapping[str, Any]) -> int:
    """As many as there are heads where the file does not say."""
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


class FileTokenizer:
    """A ``tokenizer.json`` with the methods of a transformers tokenizer that a line of text needs."""

    def __init__(self, folder: Path):
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        named = json.loads((folder / TOKENIZER_CONFIG).read_text(encoding="utf-8"))
        self.bos_token, self.eos_token = (_content(named.get(f"{which}_token")) for which in ("bos", "eos"))
        self.eos_token_id: int | None = self._tokenizer.token_to_id(self.eos_token) if self.eos_token else None

    def encode(self, written: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(written, add_special_tokens=add_special_tokens).ids
        return ids

    def __call__(self, written: Sequence[str], *, add_special_tokens: bool) -> dict[str, list[list[int]]]:
        found = self._tokenizer.encode_batch_fast(list(written), add_special_tokens=add_special_tokens)
        return {"input_ids": [one.ids for one in found]}

    def decode(self, ids: Sequence[int]) -> str:
        written: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return written


def _content(token: Any) -> str | None:
    """A special token as older files write it, with its properties, or alone."""
    content: str | None = token["content"] if isinstance(token, dict) else token
    return content
