"""Contrast: an infiller learns to prefer the sentence of a person to the one that it wrote itself for the same prompt.

Cross entropy judges a sentence token by token, so it hardly tells sense from nonsense. Here the negative examples are
whole sentences, drawn from the adapter that training starts from (self-play fine-tuning, Chen et al., 2024). The loss
of a pair is that of direct preference optimisation (Rafailov et al., 2023),

    -log sigmoid(beta (log p(human) - log p_0(human) - log p(own) + log p_0(own))),

where p_0 is the model at the start. Cross entropy of the human sentence is added, which keeps its probability up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from redraft.models.causal.line import Tokens
from redraft.models.causal.llama import Llama
from redraft.training.lora import LoraLlama

TOKENS_PER_PAIR = 12.0  # a pair weighs as much as the cross entropy of so many tokens
_TEMPERATURE = 0.9  # between that of the model, and that of drafts
_MOST_NEW = 48  # tokens of a sample; longer ones are dropped
_MOST_ROWS = 128
_SHRINK = 0.7  # finished rows are dropped once fewer than this fraction is left


@dataclass(frozen=True)
class Prompted:
    """A prompt and a sentence in tokens; the first ``num_prompt`` have no loss."""

    tokens: Tokens
    num_prompt: int

    @property
    def num_learned(self) -> int:
        return len(self.tokens) - self.num_prompt


class Pair(NamedTuple):
    """What a person wrote after a prompt, and what the model wrote; None where that is not used."""

    human: Prompted
    own: Prompted | None = None


class SampleWriter:
    """Draws sentences for prompts, without constraints."""

    def __init__(self, network: Llama, end: int):
        self._network, self._end = network, end

    @torch.inference_mode()
    def pairs(self, rows: Sequence[Prompted], seed: int) -> list[Pair]:
        """Each row with a sample after the same prompt, unless that is too long or the same sentence."""
        generator = torch.Generator().manual_seed(seed)
        prompts = [row.tokens[: row.num_prompt] for row in rows]
        found = list(map(Pair, rows))
        by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        for _, same in groupby(by_length, key=lambda i: len(prompts[i])):
            places = list(same)
            for first in range(0, len(places), _MOST_ROWS):
                some = places[first : first + _MOST_ROWS]
                for i, tokens in zip(some, self._sampled([prompts[i] for i in some], generator), strict=True):
                    own = Prompted((*prompts[i], *tokens), len(prompts[i]))
                    if tokens[-1] == self._end and own != rows[i]:
                        found[i] = Pair(rows[i], own)
        return found

    def _sampled(self, prompts: Sequence[Tokens], generator: torch.Generator) -> list[list[int]]:
        """Tokens after prompts of the same length, up to an end."""
        decoder = self._network.decoder(self._network.no_prefix, len(prompts), len(prompts[0]) + _MOST_NEW)
        for ids in zip(*prompts, strict=True):
            logits = decoder.step(ids)
        made: list[list[int]] = [[] for _ in prompts]
        rows = list(range(len(prompts)))  # that the decoder still has
        while True:
            sums = (logits / _TEMPERATURE).softmax(1).cumsum(1)
            levels = torch.rand(len(rows), 1, generator=generator) * sums[:, -1:]
            drawn = torch.searchsorted(sums, levels).clamp_(max=sums.shape[1] - 1)[:, 0].tolist()
            for row, token in zip(rows, drawn, strict=True):
                if made[row][-1:] != [self._end]:
                    made[row].append(token)
            alive = [i for i, row in enumerate(rows) if made[row][-1] != self._end]
            if not alive or max(map(len, made)) == _MOST_NEW:
                return made
            if len(alive) < _SHRINK * len(rows):
                decoder.select(alive)
                rows = [rows[i] for i in alive]
            logits = decoder.step([made[row][-1] for row in rows])


class Contrast:
    """The loss of pairs. The reference has the weights that the module has when this is made."""

    def __init__(self, module: LoraLlama, beta: float):
        self._module, self._beta = module, beta
        self._reference = [parameter.detach().clone() for parameter in module.parameters()]

    def losses(self, rows: Sequence[Prompted], nlls: Tensor) -> Tensor:
        """The loss of each pair [pairs]. ``rows`` are all human sentences, then all samples; ``nlls`` are theirs."""
        with torch.no_grad(), self._at_reference():
            before = row_nlls(self._module, rows)
        human, own = (before - nlls).chunk(2)
        return -functional.logsigmoid(self._beta * (human - own))

    @contextmanager
    def _at_reference(self) -> Iterator[None]:
        parameters = list(self._module.parameters())
        present = [parameter.data for parameter in parameters]
        for parameter, value in zip(parameters, self._reference, strict=True):
            parameter.data = value
        try:
            yield
        finally:
            for parameter, value in zip(parameters, present, strict=True):
                parameter.data = value


def row_nlls(module: LoraLlama, rows: Sequence[Prompted]) -> Tensor:
    """NLL of each row's sentence and its end, given its prompt [rows]."""
    longest = max(len(row.tokens) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    learned = torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row.tokens)] = torch.tensor(row.tokens)
        learned[i, row.num_prompt : len(row.tokens)] = True
    hidden = module.hidden(ids[:, :-1])
    of_tokens = module.nll(hidden[learned[:, 1:]], ids[learned])
    return of_tokens.new_zeros(len(rows)).index_add(0, learned.nonzero()[:, 0], of_tokens)
