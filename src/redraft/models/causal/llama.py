"""The Llama network, which SmolLM2 uses, without transformers, which takes seconds to import.

It computes what ``transformers.LlamaForCausalLM`` computes, from the same files. It is faster: rows that continue the
same cached tokens share the cache instead of copying it, and projections of the same input are one matrix product.
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
from redraft.models.causal.file_tokenizer import TOKENIZER, TOKENIZER_CONFIG, FileTokenizer
from redraft.models.causal.line import Tokens
from redraft.models.causal.network import KvCache, NetworkOutput, TokenRow, by_cache
from redraft.models.precision import precision_name
from redraft.models.threads import side_by_side

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# The only supported values of these settings. Models with other values run on transformers.
_FIXED = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
_PREFIX_BLOCK = 512  # tokens of a prefix read in one call: attention grows with the square of this number
_HEAD_ROWS = 32  # rows of logits that are computed together, so that they stay in the processor's cache
UNREAD = -1  # token of a row of a decoder that reads nothing in a step
_MASKED = -1e30  # added to the attention score of a masked key

Weight = Tensor | EightBits
PrepareWeight = Callable[[Tensor], Weight]


class _LayerWeights(NamedTuple):
    """The weights of a layer. Projections of the same input are stacked."""

    input_norm: Tensor
    qkv: Weight
    output: Weight
    mlp_norm: Tensor
    gate_up: Weight
    down: Weight


class _Rotation(NamedTuple):
    """Cosines and signed sines of rotary angles, [..., head size]."""

    cos: Tensor
    sin: Tensor

    def for_heads(self) -> "_Rotation":
        """The same for vectors with a dimension of heads before the last one."""
        return _Rotation(self.cos[..., None, :], self.sin[..., None, :])


def _linear(x: Tensor, weight: Weight) -> Tensor:
    return weight.product(x) if isinstance(weight, EightBits) else functional.linear(x, weight)


class Llama:
    """The network in a folder that ``can_load`` accepts.

    With ``torch.int8`` the matrices of the layers and the head are in 8 bits; everything else is float32.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, adapter: Adapter | None = None):
        config = _config(folder)
        stored = load_file(folder / WEIGHTS)
        merged = adapter.merged(stored) if adapter else stored
        weights = {name: value.to(torch.float32 if dtype == torch.int8 else dtype) for name, value in merged.items()}
        self.precision = precision_name(dtype)
        self.max_tokens: int | None = config["max_position_embeddings"]
        self._num_heads, self._num_kv_heads = config["num_attention_heads"], _num_kv_heads(config)
        self._head_size = config.get("head_dim") or config["hidden_size"] // self._num_heads
        self._eps = config["rms_norm_eps"]
        self._frequencies = _theta(config) ** -(torch.arange(0, self._head_size, 2) / self._head_size)
        self._embedding = weights["model.embed_tokens.weight"]
        self.num_tokens = len(self._embedding)
        self._norm = weights["model.norm.weight"]
        head = self._embedding if config.get("tie_word_embeddings") else weights["lm_head.weight"]
        num_layers = config["num_hidden_layers"]
        shape = ((self._num_heads + 2 * self._num_kv_heads) * self._head_size, config["hidden_size"])
        prepare: PrepareWeight = EightBits.of if dtype == torch.int8 else Tensor.contiguous
        self._layers = [_layer_weights(weights, f"model.layers.{i}.", shape, prepare) for i in range(num_layers)]
        self._head = prepare(head)
        if f"model.layers.{num_layers}.input_layernorm.weight" in weights:
            raise ValueError(f"there are more than {num_layers} layers")
        if not self._eps > 0:
            raise ValueError(f"rms_norm_eps is {self._eps}")

    @property
    def no_prefix(self) -> KvCache:
        """The cache of no tokens."""
        nothing = self._embedding.new_zeros(len(self._layers), self._num_kv_heads, 0, self._head_size)
        return KvCache(nothing, nothing)

    @torch.inference_mode()
    def begin(self, tokens: Tokens) -> tuple[Tensor, KvCache]:
        empty = cache = self.no_prefix
        for first in range(0, len(tokens), _PREFIX_BLOCK):
            logits, added = self.run([TokenRow(tokens[first : first + _PREFIX_BLOCK], empty, 0)], cache)
            cache = cache.then(KvCache(added.keys[0], added.values[0]))
        return logits[0, -1], cache

    @torch.inference_mode()
    def run(self, rows: Sequence[TokenRow], prefix: KvCache) -> NetworkOutput:
        ids, _ = padded([row.tokens for row in rows])
        first_positions = torch.tensor([[prefix.num_tokens + row.num_cached] for row in rows])
        rotation = self._rotation(first_positions + torch.arange(ids.shape[1])).for_heads()
        caches = [
            (same, prefix.then(rows[same[0]].cache.first(rows[same[0]].num_cached))) for same in by_cache(rows).values()
        ]
        hidden = self._embedding[ids]
        keys, values = [], []
        for number, layer in enumerate(self._layers):
            normed = self._normed(hidden, layer.input_norm)
            attended, key, value = self._attention(layer, normed, rotation, caches, number)
            hidden = self._feed_forward(layer, hidden + _linear(attended, layer.output))
            keys.append(key)
            values.append(value)
        return self._logits(hidden), KvCache(torch.stack(keys, 1), torch.stack(values, 1))

    def decoder(self, prefix: KvCache, num_rows: int, max_tokens: int) -> "LlamaDecoder":
        """Rows that continue the same prefix and are read token by token."""
        return LlamaDecoder(prefix, num_rows, max_tokens)

    @torch.inference_mode()
    def step(self, steps: Sequence[tuple["LlamaDecoder", Sequence[int]]]) -> list[Tensor]:
        """Read the next token of the rows of several decoders in one pass.

        Returns the logits [rows, vocabulary] of the token after it for each decoder, without the rows whose token is
        ``UNREAD``: they read nothing in this step. Attention is computed for each
        decoder alone, so in 8 bits they do not depend on the other decoders. With floating-point weights, the last bit
        may. Every thread takes a part of each decoder's rows.
        """
        rows = [decoder.begin_step(ids) for decoder, ids in steps]
        num = torch.get_num_threads()
        parts = [[(i, one.part(number, num)) for i, one in enumerate(rows)] for number in range(num)]
        parts = [filled for part in parts if (filled := [(i, one) for i, one in part if len(one.ids)])]
        found: list[list[Tensor]] = [[] for _ in steps]
        results = side_by_side(self._step_part, [[one for _, one in part] for part in parts])
        for part, logits in zip(parts, results, strict=True):
            for (i, _), added in zip(part, logits, strict=True):
                found[i].append(added)
        return [one.decoder.end_step(one, torch.cat(logits)) for one, logits in zip(rows, found, strict=True)]

    def _step_part(self, part: Sequence["_DecoderRows"]) -> list[Tensor]:
        """Logits of the next token for rows of several decoders."""
        hidden = self._embedding[torch.cat([one.ids for one in part])]
        sizes = [len(one.ids) for one in part]
        rotations = [self._rotation(one.decoder.positions(one.slots)).for_heads() for one in part]
        for number, layer in enumerate(self._layers):
            projected = self._qkv(layer, self._normed(hidden, layer.input_norm))
            by_decoder = zip(*(torch.split(one, sizes) for one in projected), strict=True)
            attended = [
                one.decoder.attend(number, one.slots, query, key, value, rotation)
                for one, (query, key, value), rotation in zip(part, by_decoder, rotations, strict=True)
            ]
            hidden = self._feed_forward(layer, hidden + _linear(torch.cat(attended), layer.output))
        return list(torch.split(self._logits(hidden), sizes))

    def _rotation(self, positions: Tensor) -> _Rotation:
        """Rotary position embedding of positions [...], for vectors [..., head size]."""
        angles = positions[..., None] * self._frequencies
        cos, sin = angles.cos(), angles.sin()
        return _Rotation(torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1))

    def _qkv(self, layer: _LayerWeights, normed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project [..., hidden size] to queries, keys and values, each [..., heads, head size]."""
        qkv = _linear(normed, layer.qkv).view(*normed.shape[:-1], -1, self._head_size)
        query, key, value = torch.split(qkv, [self._num_heads, self._num_kv_heads, self._num_kv_heads], -2)
        return query, key, value

    def _feed_forward(self, layer: _LayerWeights, hidden: Tensor) -> Tensor:
        gate, up = _linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, -1)
        return hidden + _linear(functional.silu(gate) * up, layer.down)

    def _logits(self, hidden: Tensor) -> Tensor:
        """Scores [..., vocabulary] of the next token."""
        normed = self._normed(hidden, self._norm)
        found = normed.new_empty(*normed.shape[:-1], self.num_tokens)
        for rows, scores in zip(
            torch.split(normed.flatten(0, -2), _HEAD_ROWS), torch.split(found.flatten(0, -2), _HEAD_ROWS), strict=True
        ):
            scores.copy_(_linear(rows, self._head))
        return found

    def _attention(
        self,
        layer: _LayerWeights,
        normed: Tensor,
        rotation: _Rotation,
        caches: Sequence[tuple[list[int], KvCache]],
        number: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Grouped-query attention to the caches and to the rows themselves.

        Returns the attended values [rows, tokens, heads x head size] and the rows' keys and values.
        """
        rows, time, _ = normed.shape
        query, key, value = self._qkv(layer, normed)
        query, key = _rotated(query, rotation), _rotated(key, rotation)
        # Query heads that share a key head are stacked: [rows, kv heads, heads per kv head x tokens, head size].
        query = query.view(rows, time, self._num_kv_heads, -1, self._head_size).permute(0, 2, 3, 1, 4).flatten(2, 3)
        key, value = key.transpose(1, 2), value.transpose(1, 2)
        scores = query @ key.transpose(2, 3) * self._head_size**-0.5
        scores = scores + _causal_mask(time, scores).repeat(query.shape[2] // time, 1)
        if len(caches) == 1:
            attended = _attend(query, scores, value, caches[0][1], number)
        else:
            attended = torch.empty_like(query)
            for same, cache in caches:
                attended[same] = _attend(query[same], scores[same], value[same], cache, number)
        heads_last = attended.view(rows, self._num_kv_heads, -1, time, self._head_size).permute(0, 3, 1, 2, 4)
        return heads_last.reshape(rows, time, -1), key, value

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[-1:], weight, self._eps)


class LlamaDecoder:
    """Rows that continue the same prefix and are read one token at a time. A row can continue another one.

    Each row has a slot of the cache. Rows keep their slots as long as possible, since copying a cache is expensive.
    """

    def __init__(self, prefix: KvCache, num_rows: int, max_tokens: int):
        self._prefix = prefix
        layers, heads, _, size = prefix.keys.shape
        self._own = KvCache(*(part.new_zeros(layers, num_rows, heads, max_tokens, size) for part in prefix))
        self._slots = list(range(num_rows))  # of each row
        self._num_read = torch.zeros(num_rows, dtype=torch.long)  # tokens in each slot
        self._places: list[int] = []  # of the rows that read, among their slots

    def positions(self, slots: Tensor) -> Tensor:
        """Where the next tokens of slots stand in the text."""
        return self._prefix.num_tokens + self._num_read[slots]

    def begin_step(self, ids: Sequence[int]) -> "_DecoderRows":
        """The rows that read a token, in the order of their slots."""
        reading = sorted((slot, token) for slot, token in zip(self._slots, ids, strict=True) if token != UNREAD)
        place = {slot: i for i, (slot, _) in enumerate(reading)}
        self._places = [place[slot] for slot in self._slots if slot in place]
        slots, tokens = torch.tensor(reading).view(-1, 2).unbind(1)
        return _DecoderRows(self, tokens, slots)

    def attend(
        self, layer: int, slots: Tensor, query: Tensor, key: Tensor, value: Tensor, rotation: _Rotation
    ) -> Tensor:
        """Cache keys and values of the tokens that some slots read, and attend; all are [slots, heads, head size]."""
        rows, kv_heads, size = key.shape
        at = self._num_read[slots]
        longest = int(at.max())
        key, query = _rotated(key, rotation), _rotated(query, rotation).reshape(rows, kv_heads, -1, size)
        for cached, new in zip(self._own, (key, value), strict=True):
            cached[layer].index_put_((slots, torch.arange(kv_heads)[:, None], at), new.transpose(0, 1))
        are_neighbours = int(slots[-1] - slots[0]) == rows - 1  # as all slots are; a view of them costs nothing
        chosen = slice(int(slots[0]), int(slots[-1]) + 1) if are_neighbours else slots
        keys, values = (cached[layer, chosen, :, : longest + 1] for cached in self._own)
        scores = query @ keys.transpose(2, 3) * size**-0.5
        if not (at == longest).all():
            scores.masked_fill_((torch.arange(longest + 1) > at[:, None])[:, None, None], _MASKED)
        return _attend(query, scores, values, self._prefix, layer).reshape(rows, -1)

    def end_step(self, rows: "_DecoderRows", found: Tensor) -> Tensor:
        """What was found for each slot by row, after a token of each has been read."""
        self._num_read[rows.slots] += 1
        return found[torch.tensor(self._places)]

    @torch.inference_mode()
    def select(self, rows: Sequence[int], lengths: Sequence[int] | None = None) -> None:
        """Continue with these rows, in this order. A row may be repeated, and may be cut to a length in tokens."""
        wanted = [self._slots[row] for row in rows]
        # The first row that wants a used slot keeps it if it is among the first ones; others get the slots left over.
        kept = {slot: i for i, slot in reversed(list(enumerate(wanted))) if slot < len(rows)}
        left_over = iter(slot for slot in range(len(rows)) if slot not in kept)
        self._slots = [slot if kept.get(slot) == i else next(left_over) for i, slot in enumerate(wanted)]
        num_read = torch.tensor(lengths) if lengths is not None else self._num_read[wanted]
        longest = int(num_read.max())
        moves = [(old, new) for old, new in zip(wanted, self._slots, strict=True) if old != new]
        if moves:
            sources, destinations = map(list, zip(*moves, strict=True))
            for part in self._own:
                part[:, destinations, :, :longest] = part[:, sources, :, :longest]
        self._num_read = torch.empty(len(rows), dtype=torch.long)
        self._num_read[torch.tensor(self._slots)] = num_read


class _DecoderRows(NamedTuple):
    """The next tokens of some slots of a decoder."""

    decoder: LlamaDecoder
    ids: Tensor
    slots: Tensor

    def part(self, number: int, num_parts: int) -> "_DecoderRows":
        """One of several parts, some of them empty where there are few slots."""
        first, last = (len(self.ids) * at // num_parts for at in (number, number + 1))
        return _DecoderRows(self.decoder, self.ids[first:last], self.slots[first:last])


def _attend(query: Tensor, scores: Tensor, value: Tensor, cache: KvCache, number: int) -> Tensor:
    """Attend to a cache that all rows share and to the rows' own tokens, whose scores are given.

    ``query`` is [rows, kv heads, queries, head size], and so is the result.
    """
    rows, kv_heads, queries, size = query.shape
    together = query.transpose(0, 1).reshape(kv_heads, rows * queries, size)
    cache_scores = together @ cache.keys[number].transpose(1, 2) * size**-0.5
    cache_scores = cache_scores.view(kv_heads, rows, queries, -1).transpose(0, 1)
    weights = torch.cat([cache_scores, scores], -1).float().softmax(-1).to(query.dtype)
    to_cache, to_own = torch.split(weights, [cache_scores.shape[-1], scores.shape[-1]], -1)
    flat = to_cache.transpose(0, 1).reshape(kv_heads, rows * queries, -1)
    from_cache = (flat @ cache.values[number]).view(kv_heads, rows, queries, size).transpose(0, 1)
    return from_cache + to_own @ value


def _rotated(vectors: Tensor, rotation: _Rotation) -> Tensor:
    """Apply rotary embedding. The two halves of a vector are the real and imaginary parts of complex numbers."""
    single = vectors.float()
    half = vectors.shape[-1] // 2
    return torch.addcmul(single * rotation.cos, single.roll(half, -1), rotation.sin).to(vectors.dtype)


def _causal_mask(time: int, like: Tensor) -> Tensor:
    return torch.full((time, time), _MASKED, dtype=like.dtype).triu(1)


def _layer_weights(
    weights: Mapping[str, Tensor], prefix: str, qkv_shape: tuple[int, int], prepare: PrepareWeight
) -> _LayerWeights:
    def joined(*names: str) -> Tensor:
        return torch.cat([weights[f"{prefix}{name}.weight"] for name in names])

    qkv = joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    if qkv.shape != qkv_shape:
        raise ValueError(f"the number of heads does not match weights of shape {tuple(qkv.shape)}")
    return _LayerWeights(
        input_norm=weights[f"{prefix}input_layernorm.weight"],
        qkv=prepare(qkv),
        output=prepare(weights[f"{prefix}self_attn.o_proj.weight"]),
        mlp_norm=weights[f"{prefix}post_attention_layernorm.weight"],
        gate_up=prepare(joined("mlp.gate_proj", "mlp.up_proj")),
        down=prepare(weights[f"{prefix}mlp.down_proj.weight"]),
    )


def can_load(folder: Path) -> bool:
    """Return whether a folder holds a model that this network supports, and a ``tokenizer.json``."""
    if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)):
        return False
    try:
        config = _config(folder)
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        kind = rope.get("rope_type", rope.get("type", "default"))  # older files have the shorter name
    except (OSError, ValueError, AttributeError):
        return False  # loading with transformers reports what is wrong
    return (
        "quantization_config" not in config
        and kind == "default"
        and all(config.get(name, value) == value for name, value in _FIXED.items())
    )


def load(folder: Path, dtype: torch.dtype, adapter: Adapter | None = None) -> tuple[Llama, FileTokenizer]:
    """Load the network and tokenizer of a folder, with an adapter merged into the weights if one is given."""
    try:
        tokenizer = FileTokenizer(folder)
    except Exception as error:  # the tokenizers package raises plain Exception
        raise InputError(f"{folder} has no readable tokenizer ({error}); fetch {TOKENIZER} again") from error
    try:
        return Llama(folder, dtype, adapter), tokenizer
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(
            f"{folder / WEIGHTS} does not hold the model that {CONFIG} describes: {reason(error)}"
        ) from error


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return config


def _theta(config: Mapping[str, Any]) -> float:
    return float((config.get("rope_parameters") or config).get("rope_theta", 10000.0))


def _num_kv_heads(config: Mapping[str, Any]) -> int:
    """The number of key-value heads. It defaults to the number of query heads."""
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])
