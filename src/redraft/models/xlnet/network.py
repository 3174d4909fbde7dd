"""XLNet, written for sentences: one segment, and one set of weights that reads in three orders.

A language model has two streams. The *content* stream knows each piece and what it may see; the *query* stream knows
a piece's place and what is seen from there, and its last layer predicts the piece. What is seen is the order:
everything before (forward), everything after (backward), or everything but the pieces that are asked for (masked).

With ``one_stream`` the content itself predicts the piece that is read next, forward and backward, as other language
models do: what it sees is all that the next query would see, so the second stream only costs time. A checkpoint has to
be trained for the one way or the other.

The parameters have the names and shapes of ``transformers.XLNetLMHeadModel``, and so have the results, so a checkpoint
goes either way. It is faster, because each order is computed in its own shape:

* forward and backward, the query of place t + 1 sees what the content of place t sees, so both streams go through
  every product together under one triangular mask, and the content stops before the last layer;
* masked, nobody sees the content of a piece that is asked for, so its query takes that place in one stream;
* the position keys are computed once for the batch instead of once a sentence.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.errors import InputError
from redraft.models.output_layer import Columns, Soft, cross_entropy, log_prob_of

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": functional.gelu, "relu": functional.relu}
# Settings of an XLNet that this module computes, and no others.
_FIXED = {"attn_type": "bi", "bi_data": False, "clamp_len": -1, "same_length": False, "untie_r": True}
_SIZES = ("vocab_size", "d_model", "n_layer", "n_head", "d_inner")
_INIT_STD = 0.02
_HIDDEN = -1e30  # added to the score of what may not be seen


class ReadingOrder(enum.Enum):
    """What a piece is predicted from: the pieces before it, after it, or both."""

    FORWARD = "forward"
    BACKWARD = "backward"
    MASKED = "masked"


@dataclass(frozen=True)
class XlnetConfig:
    """Shape of a model; the names are those of ``transformers.XLNetConfig``. No dropout: data is plentiful."""

    vocab_size: int
    d_model: int = 256
    n_layer: int = 6
    n_head: int = 4
    d_inner: int = 1024
    ff_activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    one_stream: bool = False  # whether the content predicts what comes next, forward and backward

    def __post_init__(self) -> None:
        if self.d_model % self.n_head:
            raise InputError(f"a layer's width must be a multiple of its {self.n_head} heads, not {self.d_model}")

    @classmethod
    def read(cls, config: dict[str, Any]) -> "XlnetConfig":
        """The part of a checkpoint's configuration that matters here."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__ if name in config})

    @classmethod
    def supports(cls, config: dict[str, Any]) -> bool:
        """Whether this module computes what transformers would for that configuration."""
        return config.get("model_type") == "xlnet" and not cls.unsupported(config)

    @staticmethod
    def unsupported(config: dict[str, Any]) -> list[str]:
        """The settings of an XLNet that this module does not compute, each with its value."""
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
    """Keys and values of pieces that were read before, layer by layer; padded in front, so that they end together."""

    key: Tensor  # [layers, heads, sentences, pieces, size]
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
        """[rows, time, d] to keys and values, each [heads, rows, time, size].

        Heads come first wherever there are some: then one copy serves the products with the keys of each row, with
        those of a sentence that rows share, and with the distances that all share.
        """
        heads, size = self.q.shape[1:]
        weights = torch.cat([self.k.flatten(1), self.v.flatten(1)], 1)
        both = (content.reshape(-1, content.shape[-1]) @ weights).view(*content.shape[:2], 2, heads, size)
        key, value = both.permute(2, 3, 0, 1, 4).contiguous()
        return key, value

    def forward(
        self,
        asking: Tensor,
        own: _LayerMemory,
        distances: Tensor,
        mask: Tensor,
        memory: _LayerMemory | None = None,
        *,
        ahead: int = 0,
    ) -> Tensor:
        """What each of ``asking`` [rows, streams x time, d] takes from keys and values: the same shape.

        Streams stand one place apart; ``ahead`` is how far the first is ahead of the keys. ``distances`` are the
        sinusoids of ``distance_range``, ``mask`` [1, rows, streams x time, keys] is added to the scores.
        """
        rows, asks, d_model = asking.shape
        heads, size = self.q.shape[1:]
        scale = size**-0.5
        # With the bias of the content scores, so that no pass over the queries is spent on it.
        query = torch.addmm((self.r_w_bias * scale).flatten(), asking.reshape(-1, d_model), (self.q * scale).flatten(1))
        query = query.view(rows, asks, heads, size).permute(2, 0, 1, 3).contiguous()
        scores = _to_keys(query, own[0], memory and memory[0])
        by_place = scores.view(heads, rows, -1, own[0].shape[2], scores.shape[-1])
        by_place += self._position(query, distances, own[0].shape[2], ahead)
        scores += mask
        mixed = _from_values(torch.softmax(scores, -1), own[1], memory and memory[1])
        merged = mixed.permute(1, 2, 0, 3).reshape(-1, d_model) @ self.o.flatten(1).T
        result: Tensor = self.layer_norm(merged.view(rows, asks, d_model) + asking)
        return result

    def _position(self, query: Tensor, distances: Tensor, time: int, ahead: int) -> Tensor:
        """Scores by distance, [heads, rows, streams, time, keys]; queries come with the bias of the content scores."""
        heads, rows, asks, size = query.shape
        keys = (distances @ self.r.flatten(1)).view(-1, heads, size).permute(1, 2, 0)
        bias = ((self.r_r_bias - self.r_w_bias) * size**-0.5)[:, None] @ keys
        # One product a head serves every sentence of the batch.
        scores = torch.baddbmm(bias, query.view(heads, rows * asks, size), keys)
        # Ask t and key c want the column of their distance, time - t - ahead + c: a view one step aslant.
        span = keys.shape[2]
        shape = (heads, rows, asks // time, time, span - time)
        strides = (rows * asks * span, asks * span, time * span - 1, span - 1, 1)
        aslant: Tensor = scores.as_strided(shape, strides, time - ahead)
        return aslant


def _to_keys(query: Tensor, own: Tensor, memory: Tensor | None) -> Tensor:
    """Products of queries [heads, rows, asks, size] with the keys of their rows, after those of the memory if any."""
    scores = query @ own.transpose(-1, -2)
    if memory is None:
        return scores
    # The rows of a sentence share its memory: all their queries meet it in one product.
    heads, rows, asks, size = query.shape
    shared = query.view(heads, memory.shape[1], -1, size) @ memory.transpose(-1, -2)
    return torch.cat([shared.view(heads, rows, asks, -1), scores], -1)


def _from_values(attention: Tensor, own: Tensor, memory: Tensor | None) -> Tensor:
    """Values [heads, rows, keys, size] mixed by attention [heads, rows, asks, keys]."""
    if memory is None:
        return attention @ own
    heads, rows, asks, keys = attention.shape
    past, size = memory.shape[2:]
    to_memory = attention.view(heads * memory.shape[1], -1, keys)[..., :past]
    shared = torch.bmm(to_memory, memory.reshape(-1, past, size)).view(heads * rows, asks, size)
    to_own = attention.view(heads * rows, asks, keys)[..., past:]
    return torch.baddbmm(shared, to_own, own.reshape(heads * rows, -1, size)).view(heads, rows, asks, size)


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
        asking: Tensor,
        content: Tensor,
        distances: Tensor,
        mask: Tensor,
        memory: _LayerMemory | None = None,
        *,
        ahead: int = 0,
    ) -> tuple[Tensor, _LayerMemory]:
        """What ``asking`` becomes, and the keys and values of ``content``; the rest is the attention's."""
        own = self.rel_attn.keys_values(content)
        return self.ff(self.rel_attn(asking, own, distances, mask, memory, ahead=ahead)), own


class XlnetLayers(nn.Module):
    """The layers alone, which see both sides."""

    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.layer = nn.ModuleList(_XlnetLayer(config) for _ in range(config.n_layer))

    def both_sides(self, hidden: Tensor, real: Tensor) -> Tensor:
        """What [rows, time, d] becomes; nobody sees what is not ``real``."""
        distances = _sinusoids(_distance_range(hidden.shape[1]), hidden)
        mask = _hiding(~real)[None, :, None, :]
        for layer in self.layer:
            hidden, _ = layer(hidden, hidden, distances, mask)
        return hidden


class XlnetTransformer(XlnetLayers):
    """The layers and the embeddings, without a head."""

    def __init__(self, config: XlnetConfig):
        super().__init__(config)
        self._one_stream = config.one_stream
        self.word_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.mask_emb = nn.Parameter(torch.zeros(1, 1, config.d_model))

    def forward(self, ids: Tensor, real: Tensor, asked: Tensor | None = None) -> Tensor:
        """Both sides of every piece: ids [rows, time] to [rows, time, d].

        Nobody sees what is not ``real`` or is ``asked`` for; where it is asked for the result is the query stream's.
        """
        hidden: Tensor = self.word_embedding(ids)
        if asked is not None:
            hidden = torch.where(asked[..., None], self.mask_emb, hidden)
            real = real & ~asked
        return self.both_sides(hidden, real)

    def causal(self, ids: Tensor, *, backward: bool = False, memory: Memory | None = None) -> tuple[Tensor, Memory]:
        """Pieces in reading order, each seen by those that come later: ids [rows, time].

        Gives the stream that predicts [rows, time, d], row t piece t + 1, and what to remember of the pieces (without
        the memory that was given). Rows of one sentence of the memory follow each other.
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
            ends = number == len(self.layer) - 1 and not self._one_stream  # the content, which predicts nothing
            asking = hidden[:, time:] if ends else hidden
            seen = mask[:, :, : asking.shape[1]]
            past_layer = None if memory is None else memory.layer(number)
            hidden, own = layer(asking, hidden[:, :time], distances, seen, past_layer, ahead=int(ends))
            kept.append(own)
        key, value = (torch.stack(part) for part in zip(*kept, strict=True))
        return hidden, Memory(key, value, torch.ones(rows, time, dtype=torch.bool))


def _distance_range(time: int, past: int = 0) -> Tensor:
    """The distances from the farthest that a query may ask for, past + time, down to 1 - time."""
    return torch.arange(past + time, -time, -1)


def _sinusoids(distances: Tensor, like: Tensor) -> Tensor:
    """[n] to [n, d], as wide and as precise as the layers' states [rows, time, d]."""
    size = like.shape[-1]
    frequencies = 10000.0 ** -(torch.arange(0, size, 2) / size)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1).to(like.dtype)


def _hiding(hidden: Tensor) -> Tensor:
    return torch.zeros(hidden.shape).masked_fill_(hidden, _HIDDEN)


def _causal_mask(rows: int, time: int, memory: Memory | None) -> Tensor:
    """[1, 1 or rows, 2 x time, keys]: either stream's ask t sees the keys up to t, and all of the memory."""
    own = _hiding(torch.ones(time, time, dtype=torch.bool).triu(1)).repeat(2, 1)[None, None]
    if memory is None:
        return own
    past = _hiding(~memory.real).repeat_interleave(rows // len(memory.real), 0)[None, :, None, :]
    return torch.cat([past.expand(-1, -1, 2 * time, -1), own.expand(-1, rows, -1, -1)], -1)


class _Bias(nn.Module):
    """What the output layer has beside the embeddings, which are its weights."""

    def __init__(self, size: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))


class XlnetLM(nn.Module):
    """Network only: ids in, predictions out. redraft.models.xlnet.reader makes it a model of sentences."""

    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.config = config
        self.transformer = XlnetTransformer(config)
        self.lm_loss = _Bias(config.vocab_size)
        self.apply(initialise)
        nn.init.normal_(self.transformer.mask_emb, std=_INIT_STD)

    def with_streams(self, num: int) -> "XlnetLM":
        """The same weights with one stream or two; what they have learnt for the other they have to learn again."""
        network = XlnetLM(replace(self.config, one_stream=num == 1))
        network.load_state_dict(self.state_dict())
        return network

    def forward(self, hidden: Tensor) -> Tensor:
        """What predicts [..., d] to logits [..., pieces]."""
        return functional.linear(hidden, self.transformer.word_embedding.weight, self.lm_loss.bias)

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Log-probability of one piece a row; [n, d] and [n] to [n]."""
        return log_prob_of(hidden, target, self.transformer.word_embedding.weight, self.lm_loss.bias)

    def loss(self, hidden: Tensor, target: Tensor, columns: Columns | None = None, soft: Soft | None = None) -> Tensor:
        """Summed negative log-likelihood; [n, d] and [n] to a scalar. ``columns`` make it a cheaper estimate.

        ``soft`` gives parts of distributions over the columns that a teacher has beside the target.
        """
        weight: Tensor = self.transformer.word_embedding.weight
        bias: Tensor = self.lm_loss.bias
        if columns is not None:
            weight, bias = weight[columns.ids], bias[columns.ids] + columns.log_weights
            target = torch.searchsorted(columns.ids, target)
        return cross_entropy(hidden, weight, bias, target, soft)


def initialise(module: nn.Module) -> None:
    """Fresh weights of a linear layer or of embeddings."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_INIT_STD)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
