"""The LSTM language model over words, with an adaptive softmax.

One class serves both directions: a backward model is a forward model of reversed sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.models.output_layer import cross_entropy

_BLOCK = 1024  # rows whose logits are in memory at once

LstmState = tuple[Tensor, Tensor]  # hidden and cell, each [layers, rows, size]


@dataclass(frozen=True)
class LstmConfig:
    """Shape of a model. ``cutoffs`` are the ranks where softmax clusters begin, ``tail_sizes`` their widths."""

    num_words: int
    size: int = 256
    num_layers: int = 2
    dropout: float = 0.2
    cutoffs: tuple[int, ...] = (1000, 4000, 10000, 22000)
    tail_sizes: tuple[int, ...] = (256, 96, 48, 32)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "LstmConfig":
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        return cls(**fields)

    @classmethod
    def fitting(cls, num_words: int) -> "LstmConfig":
        """The default shape, with fewer clusters for a short word list."""
        whole = cls(num_words)
        kept = max(1, sum(cutoff < num_words // 2 for cutoff in whole.cutoffs))
        cutoffs = whole.cutoffs[:kept] if num_words > whole.cutoffs[0] else (max(1, num_words // 2),)
        return replace(whole, cutoffs=cutoffs, tail_sizes=whole.tail_sizes[:kept])

    @classmethod
    def small(cls, num_words: int) -> "LstmConfig":
        """A shape that trains in seconds, for tests and experiments."""
        return cls(num_words, size=16, dropout=0.0, cutoffs=(max(4, num_words // 3),), tail_sizes=(8,))


class AdaptiveSoftmax(nn.Module):
    """Exact, normalised softmax over words sorted by frequency. Frequent words are in the head, rare ones in clusters.

    log p(word) = log p(cluster) + log p(word | cluster). A word costs the head and at most one cluster.
    """

    def __init__(self, config: LstmConfig):
        super().__init__()
        self.edges = (*config.cutoffs, config.num_words)
        self.head = nn.Linear(config.size, config.cutoffs[0] + len(config.cutoffs), bias=False)
        self.down = nn.ModuleList(nn.Linear(config.size, width, bias=False) for width in config.tail_sizes)
        self.up = nn.ModuleList(
            nn.Linear(width, high - low, bias=False)
            for width, low, high in zip(config.tail_sizes, self.edges, self.edges[1:], strict=False)
        )

    def _clusters(self, target: Tensor) -> list[tuple[int, Tensor]]:
        """The clusters that occur, each with the rows whose target is in it."""
        cluster = torch.bucketize(target, torch.tensor(self.edges[:-1]), right=True)
        rows = [(i, (cluster == i + 1).nonzero().squeeze(1)) for i in range(len(self.up))]
        return [(i, which) for i, which in rows if len(which)]

    def _head_target(self, target: Tensor, clusters: Sequence[tuple[int, Tensor]]) -> Tensor:
        head_target = target.clone()
        for i, rows in clusters:
            head_target[rows] = self.edges[0] + i
        return head_target

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Summed negative log-likelihood: [n, size] and [n] to a scalar."""
        clusters = self._clusters(target)
        total = cross_entropy(hidden, self.head.weight, None, self._head_target(target, clusters))
        for i, rows in clusters:
            inner, local = self.down[i](hidden[rows]), target[rows] - self.edges[i]
            total = total + cross_entropy(inner, self.up[i].get_parameter("weight"), None, local)
        return total

    def log_prob_of(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Log-probability of one word per row: [n, size] and [n] to [n]."""
        if len(hidden) > _BLOCK:
            blocks = zip(torch.split(hidden, _BLOCK), torch.split(target, _BLOCK), strict=True)
            return torch.cat([self.log_prob_of(*block) for block in blocks])
        clusters = self._clusters(target)
        head = self.head(hidden)
        result = _pick(head, self._head_target(target, clusters))
        for i, rows in clusters:
            result[rows] += _pick(self.up[i](self.down[i](hidden[rows])), target[rows] - self.edges[i])
        return result

    def log_head(self, hidden: Tensor) -> Tensor:
        """Log-probabilities of the words in the head and of the clusters: [n, size] to [n, words and clusters]."""
        return functional.log_softmax(self.head(hidden), 1)

    def log_prob_given(self, log_head: Tensor, hidden: Tensor, target: Tensor) -> Tensor:
        """``log_prob_of`` when the result of ``log_head`` is known."""
        clusters = self._clusters(target)
        result = log_head.gather(1, self._head_target(target, clusters)[:, None]).squeeze(1)
        for i, rows in clusters:
            result[rows] += _pick(self.up[i](self.down[i](hidden[rows])), target[rows] - self.edges[i])
        return result

    def log_prob(self, hidden: Tensor, num_clusters: int | None = None) -> Tensor:
        """Log-probabilities of all words, or of the head and the first clusters: [n, size] to [n, words]."""
        head = self.log_head(hidden)
        parts = [head[:, : self.edges[0]]]
        for i, (down, up) in enumerate(zip(self.down[:num_clusters], self.up[:num_clusters], strict=True)):
            in_cluster = functional.log_softmax(up(down(hidden)), 1)
            parts.append(in_cluster + head[:, self.edges[0] + i, None])
        return torch.cat(parts, 1)


def _pick(logits: Tensor, target: Tensor) -> Tensor:
    return logits.gather(1, target[:, None]).squeeze(1) - logits.logsumexp(1)


class LstmLM(nn.Module):
    """The network: ids in, hidden states out. See redraft.models.lstm.reader for its use on sentences."""

    def __init__(self, config: LstmConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.num_words, config.size, sparse=True)
        self.lstm = nn.LSTM(config.size, config.size, config.num_layers, dropout=config.dropout)
        self.dropout = nn.Dropout(config.dropout)
        self.softmax = AdaptiveSoftmax(config)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, ids: Tensor, state: LstmState | None = None) -> tuple[Tensor, LstmState]:
        """Read words: ids [time, rows] to hidden states [time, rows, size] and the state after the last word."""
        hidden, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.dropout(hidden), state

    def loss(self, inputs: Tensor, targets: Tensor, real: Tensor) -> Tensor:
        """Summed negative log-likelihood of the targets that are ``real``. All are [time, rows]."""
        hidden, _ = self(inputs)
        loss: Tensor = self.softmax.loss(hidden[real], targets[real])
        return loss
