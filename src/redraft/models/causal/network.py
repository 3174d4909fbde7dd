"""The interface of a causal network: rows of tokens in, next-token logits out, with cached keys and values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from redraft.errors import InputError
from redraft.models.batching import padded, stacked_at_end
from redraft.models.causal.line import Tokens

if TYPE_CHECKING:
    from transformers import DynamicCache


class KvCache(NamedTuple):
    """Keys and values of tokens that were read, each [layers, heads, tokens, head size]."""

    keys: Tensor
    values: Tensor

    @property
    def num_tokens(self) -> int:
        return self.keys.shape[-2]

    def first(self, count: int) -> "KvCache":
        """The cache of the first tokens alone."""
        return KvCache(self.keys[:, :, :count], self.values[:, :, :count])

    def then(self, other: "KvCache") -> "KvCache":
        """This cache followed by another one."""
        return KvCache(torch.cat([self.keys, other.keys], 2), torch.cat([self.values, other.values], 2))


class TokenRow(NamedTuple):
    """Tokens to read after a prefix that all rows share and after the first ``num_cached`` tokens of a cache."""

    tokens: Tokens
    cache: KvCache
    num_cached: int


# Logits [rows, tokens, vocabulary] of the next token, and the keys and values of the rows:
# [rows, layers, heads, tokens, head size].
NetworkOutput = tuple[Tensor, KvCache]


class CausalNetwork(Protocol):
    """A network with its weights. Rows are padded at the end; results at padding are meaningless."""

    @property
    def max_tokens(self) -> int | None:
        """The longest text that it reads."""

    @property
    def num_tokens(self) -> int:
        """The size of its vocabulary."""

    def begin(self, tokens: Tokens) -> tuple[Tensor, KvCache]:
        """Read the prefix that all rows share. Returns the logits [vocabulary] of the next token, and a cache."""

    def run(self, rows: Sequence[TokenRow], prefix: KvCache) -> NetworkOutput:
        """Read rows, each after the shared prefix and its own cached tokens."""


def by_cache(rows: Sequence[TokenRow]) -> dict[tuple[int, int], list[int]]:
    """Group the indices of rows that continue the same cached tokens, as the rows of one slot do."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        found.setdefault((id(row.cache.keys), row.num_cached), []).append(at)
    return found


class TransformersNetwork:
    """Any causal model of transformers that uses a plain key-value cache."""

    def __init__(self, model: Any):
        self.model = model
        self.max_tokens: int | None = getattr(model.config, "max_position_embeddings", None)
        self.num_tokens: int = model.get_input_embeddings().weight.shape[0]

    def begin(self, tokens: Tokens) -> tuple[Tensor, KvCache]:
        try:
            output = self.model(input_ids=torch.tensor([tokens]), past_key_values=_new_cache())
            layers = output.past_key_values.layers
            cache = KvCache(
                torch.stack([layer.keys[0] for layer in layers]), torch.stack([layer.values[0] for layer in layers])
            )
            logits: Tensor = output.logits[0, -1]
        except (
            AttributeError,
            IndexError,
            KeyError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise InputError(_NO_CACHE) from error
        if cache.num_tokens != len(tokens):
            raise InputError(_NO_CACHE)
        return logits, cache

    def run(self, rows: Sequence[TokenRow], prefix: KvCache) -> NetworkOutput:
        """Caches are padded in front, rows at the end."""
        ids, _ = padded([row.tokens for row in rows])
        most = prefix.num_tokens + max(row.num_cached for row in rows)
        mask = torch.zeros(len(rows), most + ids.shape[1], dtype=torch.long)
        for at, row in enumerate(rows):
            mask[at, most - prefix.num_tokens - row.num_cached : most + len(row.tokens)] = 1
        first_positions = torch.tensor([[prefix.num_tokens + row.num_cached] for row in rows])
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=first_positions + torch.arange(ids.shape[1]),
            past_key_values=_cache(rows, prefix),
            use_cache=True,
        )
        layers = output.past_key_values.layers
        keys = torch.stack([layer.keys[:, :, most:] for layer in layers], 1)
        return output.logits, KvCache(keys, torch.stack([layer.values[:, :, most:] for layer in layers], 1))


_NO_CACHE = "it has no plain cache of keys and values; choose another model"


def _cache(rows: Sequence[TokenRow], prefix: KvCache) -> "DynamicCache":
    """A transformers cache with the prefix and the cached tokens of each row, aligned at their end."""
    index = torch.empty(len(rows), dtype=torch.long)
    caches: list[KvCache] = []
    for same in by_cache(rows).values():
        index[same] = len(caches)
        caches.append(prefix.then(rows[same[0]].cache.first(rows[same[0]].num_cached)))
    keys, values = (stacked_at_end([cache[part] for cache in caches], 1)[0][:, index] for part in (0, 1))
    result = _new_cache()
    for layer in range(len(keys)):
        result.update(keys[layer], values[layer], layer)
    return result


def _new_cache() -> "DynamicCache":
    from transformers import DynamicCache

    return DynamicCache()  # without the model's settings: a sliding window would drop early tokens
