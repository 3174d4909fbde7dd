"""XLNet for single sentences. One set of weights reads in three orders.

A language model has two streams. The *content* stream encodes each piece together with the pieces it may see. The
*query* stream encodes a position and what may be seen from it, but not the piece itself; its last layer predicts the
piece. The order decides what may be seen: all pieces before (forward), all pieces after (backward), or all pieces that
are not masked (masked).

With ``one_stream`` the content stream itself predicts the next piece, forward and backward, as in other language
models. It sees everything that the next query would see, so a second stream would only cost time. A checkpoint has to
be trained for one way or the other.

Parameters have the names and shapes of ``transformers.XLNetLMHeadModel``, and the results are the same, so checkpoints
can be exchanged. This implementation is faster, because each order has a computation of its own:

* Forward and backward, the query at position t + 1 sees what the content at position t sees. Both streams go through
  every matrix product together, under one triangular mask. The content stream stops before the last layer.
* Masked, no position sees the content of a masked piece. Its query takes its place in a single stream.
* Relative position keys are computed once for the batch, not once per sentence.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.errors import InputError
from redraft.models.output_layer import Columns, SoftTargets, cross_entropy, log_prob_of

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": functional.gelu, "relu": functional.relu}
# The only supported values of these settings.
_FIXED = {"attn_type": "bi", "bi_data": False, "clamp_len": -1, "same_length": False, "untie_r": True}
_SIZES = ("vocab_size", "d_model", "n_layer", "n_head", "d_inner")
_INIT_STD = 0.02
_MASKED = -1e30  # added to the attention score of a masked key


class ReadingOrder(enum.Enum):
    """What a piece is predicted from: the pieces before it, the pieces after it, or both."""

    FORWARD = "forward"
    BACKWARD = "backward"
    MASKED = "masked"


@dataclass(frozen=True)
class XlnetConfig:
    """Shape of a model, with the names of ``transformers.XLNetConfig``. There is no dropout: data is plentiful."""

    vocab_size: int
    d_model: int = 256
    n_layer: int = 6
    n_head: int = 4
    d_inner: int = 1024
    ff_activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    one_stream: bool = False  # whether the content stream predicts, forward and backward

    def __post_init__(self) -> None:
        if self.d_model % self.n_head:
            raise InputError(f"the width of a layer must be a multiple of its {self.n_head} heads, not {self.d_model}")

    @classmethod
    def read(cls, config: dict[str, Any]) -> "XlnetConfig":
        """Take the fields of this class from a checkpoint's configuration."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__ if name in config})

    @classmethod
    def supports(cls, config: dict[str, Any]) -> bool:
        """Return whether this module computes what transformers would for a configuration."""
        return config.get("model_type") == "xlnet" and not cls.unsupported(config)

    @staticmethod
    def unsupported(config: dict[str, Any]) -> list[str]:
        """The settings of an XLNet that this module does not support, each with its value."""
        if unknown := [name for name in _SIZES if type(config.get(name)) is not int or config[name] < 1]:
            return [f"{name}: {config.get(name)}" for name in unknown]
        other = [name for name, value in _FIXED.items() if config.get(name, value) != value]
        if config.get("ff_activation", "gelu") not in _ACTIVATIONS:
            other.append("ff_activation")
        heads = config["n_head"]
        size = config.get("d_head") or config["d_model"] // heads
        if config["d_model"] % heads or size * heads != config["d_model"]:
            other.append("n_head")
        return [f"{name}: {config[name]}" for name in other]


class Memory(NamedTuple):
    """Cached keys and values of pieces that were read before, padded in front so that they end together."""

    key: Tensor  # [layers, heads, sentences, pieces, head size]
    value: Tensor
    real: Tensor  # [sentences, pieces], false for padding

    def layer(self, number: int) -> "_LayerMemory":
        return self.key[number], self.value[number]


_LayerMemory = tuple[Tensor, Tensor]


class _RelativeAttention(nn.Module):
    def __init__(self, config: XlnetConfig):
        super().__init__()
        heads, size = config.n_head, config.d_model // config.n_head
        self.q, self.k, self.v, self.o, self.r = (
            nn.Parameter(torch.empty(config.d_model, heads, size).normal_(std=_INIT_STD)) for _ in range(5)
        )
        self.r_r_bias, self.r_s_bias, self.r_w_bias = (nn.Parameter(torch.zeros(heads, size)) for _ in range(3))
        self.seg_embed = nn.Parameter(torch.zeros(2, heads, size))  # unused with one segment; part of the checkpoint
        self.layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def keys_values(self, content: Tensor) -> _LayerMemory:
        """Project [rows, time, d] to keys and values, each [heads, rows, time, head size].

        Heads are always the first axis. Then one copy of the queries serves the products with the keys of each row,
        with the memory that rows share, and with the position keys that all share.
        """
        heads, size = self.q.shape[1:]
        weights = torch.cat([self.k.flatten(1), self.v.flatten(1)], 1)
        both = (content.reshape(-1, content.shape[-1]) @ weights).view(*content.shape[:2], 2, heads, size)
        key, value = both.permute(2, 3, 0, 1, 4).contiguous()
        return key, value

    def forward(
        self,
        hidden: Tensor,
        own: _LayerMemory,
        distances: Tensor,
        mask: Tensor,
        memory: _LayerMemory | None = None,
        *,
        ahead: int = 0,
    ) -> Tensor:
        """Attend from the streams ``hidden`` [rows, streams x time, d] to keys and values. Returns the same shape.

        Streams are one position apart; ``ahead`` is the offset of the first stream to the keys. ``distances`` are the
        sinusoids of ``_distance_range``. ``mask`` [1, rows, streams x time, keys] is added to the scores.
        """
        rows, num_queries, d_model = hidden.shape
        heads, size = self.q.shape[1:]
        scale = size**-0.5
        # The bias of the content scores is added here, which saves a pass over the queries.
        query = torch.addmm((self.r_w_bias * scale).flatten(), hidden.reshape(-1, d_model), (self.q * scale).flatten(1))
        query = query.view(rows, num_queries, heads, size).permute(2, 0, 1, 3).contiguous()
        scores = _content_scores(query, own[0], memory and memory[0])
        by_position = scores.view(heads, rows, -1, own[0].shape[2], scores.shape[-1])
        by_position += self._position_scores(query, distances, own[0].shape[2], ahead)
        scores += mask
        attended = _weighted_values(torch.softmax(scores, -1), own[1], memory and memory[1])
        output = attended.permute(1, 2, 0, 3).reshape(-1, d_model) @ self.o.flatten(1).T
        result: Tensor = self.layer_norm(output.view(rows, num_queries, d_model) + hidden)
        return result

    def _position_scores(self, query: Tensor, distances: Tensor, time: int, ahead: int) -> Tensor:
        """Scores by relative position, [heads, rows, streams, time, keys]. Queries include the content bias."""
        heads, rows, num_queries, size = query.shape
        keys = (distances @ self.r.flatten(1)).view(-1, heads, size).permute(1, 2, 0)
        bias = ((self.r_r_bias - self.r_w_bias) * size**-0.5)[:, None] @ keys
        # One product per head serves every sentence of the batch.
        scores = torch.baddbmm(bias, query.view(heads, rows * num_queries, size), keys)
        # Query t and key c need the column of their distance, time - t - ahead + c. This is the relative shift of
        # Transformer-XL, as a strided view instead of a copy.
        span = keys.shape[2]
        shape = (heads, rows, num_queries // time, time, span - time)
        strides = (rows * num_queries * span, num_queries * span, time * span - 1, span - 1, 1)
        shifted: Tensor = scores.as_strided(shape, strides, time - ahead)
        return shifted


def _content_scores(query: Tensor, own: Tensor, memory: Tensor | None) -> Tensor:
    """Products of queries [heads, rows, queries, size] with the keys of the memory, if any, and of their rows."""
    scores = query @ own.transpose(-1, -2)
    if memory is None:
        return scores
    # The rows of a sentence share its memory: one product serves all their queries.
    heads, rows, num_queries, size = query.shape
    shared = query.view(heads, memory.shape[1], -1, size) @ memory.transpose(-1, -2)
    return torch.cat([shared.view(heads, rows, num_queries, -1), scores], -1)


def _weighted_values(attention: Tensor, own: Tensor, memory: Tensor | None) -> Tensor:
    """Values [heads, rows, keys, size] weighted by attention [heads, rows, queries, keys]."""
    if memory is None:
        return attention @ own
    heads, rows, num_queries, keys = attention.shape
    past, size = memory.shape[2:]
    to_memory = attention.view(heads * memory.shape[1], -1, keys)[..., :past]
    shared = torch.bmm(to_memory, memory.reshape(-1, past, size)).view(heads * rows, num_queries, size)
    to_own = attention.view(heads * rows, num_queries, keys)[..., past:]
    return torch.baddbmm(shared, to_own, own.reshape(heads * rows, -1, size)).view(heads, rows, num_queries, size)


class _FeedForward(nn.Module):
    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.layer_1 = nn.Linear(config.d_model, config.d_inner)
        self.layer_2 = nn.Linear(config.d_inner, config.d_model)
        self._activation = _ACTIVATIONS[config.ff_activation]

    def forward(self, hidden: Tensor) -> Tensor:
        result: Tensor = self.layer_norm(self.layer_2(self._activation(self.layer_1(hidden))) + hidden)
        return result


class _XlnetLayer(nn.Module):
    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.rel_attn = _RelativeAttention(config)
        self.ff = _FeedForward(config)

    def forward(
        self,
        hidden: Tensor,
        content: Tensor,
        distances: Tensor,
        mask: Tensor,
        memory: _LayerMemory | None = None,
        *,
        ahead: int = 0,
    ) -> tuple[Tensor, _LayerMemory]:
        """Transform the streams ``hidden``, which attend to ``content``.

        Also returns the keys and values of ``content``. See ``_RelativeAttention.forward`` for the other arguments.
        """
        own = self.rel_attn.keys_values(content)
        return self.ff(self.rel_attn(hidden, own, distances, mask, memory, ahead=ahead)), own


class XlnetLayers(nn.Module):
    """A stack of layers without embeddings."""

    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.layer = nn.ModuleList(_XlnetLayer(config) for _ in range(config.n_layer))

    def both_sides(self, hidden: Tensor, real: Tensor) -> Tensor:
        """Transform [rows, time, d], attending in both directions. Positions that are not ``real`` are masked."""
        distances = _sinusoids(_distance_range(hidden.shape[1]), hidden)
        mask = _mask(~real)[None, :, None, :]
        for layer in self.layer:
            hidden, _ = layer(hidden, hidden, distances, mask)
        return hidden


class XlnetTransformer(XlnetLayers):
    """Layers and embeddings, without a head."""

    def __init__(self, config: XlnetConfig):
        super().__init__(config)
        self._one_stream = config.one_stream
        self.word_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.mask_emb = nn.Parameter(torch.zeros(1, 1, config.d_model))

    def forward(self, ids: Tensor, real: Tensor, masked: Tensor | None = None) -> Tensor:
        """Encode pieces from both sides: ids [rows, time] to [rows, time, d].

        Positions that are not ``real`` or are ``masked`` are not seen. At masked positions the result is the query
        stream, which predicts the piece.
        """
        hidden: Tensor = self.word_embedding(ids)
        if masked is not None:
            hidden = torch.where(masked[..., None], self.mask_emb, hidden)
            real = real & ~masked
        return self.both_sides(hidden, real)

    def causal(self, ids: Tensor, *, backward: bool = False, memory: Memory | None = None) -> tuple[Tensor, Memory]:
        """Encode pieces in reading order, each seen by the later ones: ids [rows, time].

        Returns the predicting stream [rows, time, d], whose entry t predicts piece t + 1, and the keys and values of
        these pieces (without the given memory). Rows that share a sentence of the memory are adjacent.
        """
        rows, time = ids.shape
        hidden: Tensor = self.word_embedding(ids)
        if not self._one_stream:
            hidden = torch.cat([hidden, self.mask_emb.expand(rows, time, -1)], 1)
        past = 0 if memory is None else memory.key.shape[3]
        distances = _sinusoids(_distance_range(time, past) * (-1 if backward else 1), hidden)
        mask = _causal_mask(rows, time, memory)
        kept: list[_LayerMemory] = []
        for number, layer in enumerate(self.layer):
            # The last layer needs the query stream only: the content stream predicts nothing.
            queries_only = number == len(self.layer) - 1 and not self._one_stream
            streams = hidden[:, time:] if queries_only else hidden
            layer_mask = mask[:, :, : streams.shape[1]]
            layer_memory = None if memory is None else memory.layer(number)
            hidden, own = layer(streams, hidden[:, :time], distances, layer_mask, layer_memory, ahead=int(queries_only))
            kept.append(own)
        key, value = (torch.stack(part) for part in zip(*kept, strict=True))
        return hidden, Memory(key, value, torch.ones(rows, time, dtype=torch.bool))


def _distance_range(time: int, past: int = 0) -> Tensor:
    """Relative distances from past + time, the largest, down to 1 - time."""
    return torch.arange(past + time, -time, -1)


def _sinusoids(distances: Tensor, like: Tensor) -> Tensor:
    """Sinusoidal embeddings of distances: [n] to [n, d], with the width and precision of ``like`` [rows, time, d]."""
    size = like.shape[-1]
    frequencies = 10000.0 ** -(torch.arange(0, size, 2) / size)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1).to(like.dtype)


def _mask(masked: Tensor) -> Tensor:
    return torch.zeros(masked.shape).masked_fill_(masked, _MASKED)


def _causal_mask(rows: int, time: int, memory: Memory | None) -> Tensor:
    """[1, 1 or rows, 2 x time, keys]: in either stream, query t sees the keys up to t and all of the memory."""
    own = _mask(torch.ones(time, time, dtype=torch.bool).triu(1)).repeat(2, 1)[None, None]
    if memory is None:
        return own
    past = _mask(~memory.real).repeat_interleave(rows // len(memory.real), 0)[None, :, None, :]
    return torch.cat([past.expand(-1, -1, 2 * time, -1), own.expand(-1, rows, -1, -1)], -1)


class _Bias(nn.Module):
    """The bias of the output layer. Its weights are the embeddings."""

    def __init__(self, size: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))


class XlnetLM(nn.Module):
    """The network: ids in, predictions out. See redraft.models.xlnet.reader for its use on sentences."""

    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.config = config
        self.transformer = XlnetTransformer(config)
        self.lm_loss = _Bias(config.vocab_size)
        self.apply(initialise)
        nn.init.normal_(self.transformer.mask_emb, std=_INIT_STD)

    def with_streams(self, num: int) -> "XlnetLM":
        """The same weights with one stream or two. They have to be trained again for the new number."""
        network = XlnetLM(replace(self.config, one_stream=num == 1))
        network.load_state_dict(self.state_dict())
        return network

    def forward(self, hidden: Tensor) -> Tensor:
        """Predicting states [..., d] to logits [..., pieces]."""
        return functional.linear(hidden, self.transformer.word_embedding.weight, self.lm_loss.bias)

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Log-probability of one piece per row: [n, d] and [n] to [n]."""
        return log_prob_of(hidden, target, self.transformer.word_embedding.weight, self.lm_loss.bias)

    def loss(
        self, hidden: Tensor, target: Tensor, columns: Columns | None = None, soft: SoftTargets | None = None
    ) -> Tensor:
        """Summed negative log-likelihood: [n, d] and [n] to a scalar.

        ``columns`` make it a sampled softmax, which is cheaper. ``soft`` are soft targets over the columns.
        """
        weight: Tensor = self.transformer.word_embedding.weight
        bias: Tensor = self.lm_loss.bias
        if columns is not None:
            weight, bias = weight[columns.ids], bias[columns.ids] + columns.log_weights
            target = torch.searchsorted(columns.ids, target)
        return cross_entropy(hidden, weight, bias, target, soft)


def initialise(module: nn.Module) -> None:
    """Initialise the weights of a linear layer or of embeddings."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_INIT_STD)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
