"""What a causal model computes for rows of tokens that go on from tokens read before."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from redraft.errors import InputError
from redraft.models.batching import padded, stacked_at_end
from redraft.models.causal.line import Tokens


class Past(NamedTuple):
    """Keys and values of tokens that were read: [layers, heads, tokens, size] each."""

    keys: Tensor
    values: Tensor

    def first(self, count: int) -> "Past":
        return Past(self.keys[:, :, :count], self.values[:, :, :count])

    def then(self, other: "Past") -> "Past":
        return Past(torch.cat([self.keys, other.keys], 2), torch.cat([self.values, other.values], 2))


class Row(NamedTuple):
    """Tokens to read, after a start and the first ``kept`` tokens of a past."""

    tokens: Tokens
    past: Past
    kept: int


Output = tuple[Tensor, Past]  # scores [rows, tokens, vocabulary] of what comes next; a past, with rows before its axes


class CausalNetwork(Protocol):
    """A network with its weights. A row shorter than others ends in padding, whose results mean nothing."""

    @property
    def max_tokens(self) -> int | None:
        """How long a text may be."""

    @property
    def num_tokens(self) -> int:
        """How many tokens it knows."""

    def begin(self, tokens: Tokens) -> tuple[Tensor, Past]:
        """Read the start of every text: scores [vocabulary] of what comes next, and its past."""

    def run(self, rows: Sequence[Row], start: Past) -> Output:
        """Read rows after the start and their own pasts."""


def by_past(rows: Sequence[Row]) -> dict[tuple[int, int], list[int]]:
    """Which rows go on from the same tokens: those of one slot do."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        found.setdefault((id(row.past.keys), row.kept), []).append(at)
    return found


class HubNetwork:
    """Any causal model of transformers that keeps a plain cache of keys and values."""

    def __init__(self, model: Any):
        self.model = model
        self.max_tokens: int | None = getattr(model.config, "max_position_embeddings", None)
        self.num_tokens: int = model.get_input_embeddings().weight.shape[0]

    def begin(self, tokens: Tokens) -> tuple[Tensor, Past]:
        try:
            output = self.model(input_ids=torch.tensor([tokens]), past_key_values=_new_cache())
            layers = output.past_key_values.layers
            past = Past(
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
        if past.keys.shape[2] != len(tokens):
            raise InputError(_NO_CACHE)
        return logits, past

    def run(self, rows: Sequence[Row], start: Past) -> Output:
        """Padding stands before the start and after the last token."""
        (ids, _), begun = padded([row.tokens for row in rows]), start.keys.shape[2]
        most = begun + max(row.kept for row in rows)
        mask = torch.zeros(len(rows), most + ids.shape[1], dtype=torch.long)
        for at, row in enumerate(rows):
            mask[at, most - begun - row.kept : most + len(row.tokens)] = 1
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=torch.tensor([[begun + row.kept] for row in rows]) + torch.arange(ids.shape[1]),
            past_key_values=_cache(rows, start),
            use_cache=True,
        )
        layers = output.past_key_values.layers
        keys = torch.stack([layer.keys[:, :, most:] for layer in layers], 1)
        return output.logits, Past(keys, torch.stack([layer.values[:, :, most:] for layer in layers], 1))


_NO_CACHE = "it keeps no plain cache of keys and values; take another model"


def _cache(rows: Sequence[Row], start: Past) -> Any:
    """A cache with the start and the kept tokens of each row, the last of them in the last place."""
    index = torch.empty(len(rows), dtype=torch.long)
    whole: list[Past] = []
    for same in by_past(rows).values():
        index[same] = len(whole)
        whole.append(start.then(rows[same[0]].past.first(rows[same[0]].kept)))
    keys, values = (stacked_at_end([past[part] for past in whole], 1)[0][:, index] for part in (0, 1))
    cache = _new_cache()
    for layer in range(len(keys)):
        cache.update(keys[layer], values[layer], layer)
    return cache


def _new_cache() -> Any:
    from transformers import DynamicCache

    return DynamicCache()  # without the model's settings, so that no layer forgets what lies far back
