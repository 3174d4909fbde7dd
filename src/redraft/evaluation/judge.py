"""The judge of fluency: any causal language model that transformers can load.

A sentence is scored as natural text between a start and an end: -log p(tokens, end | start). Both are the model's own
begin and end tokens unless the judge's source names a text for them, which suits models that were tuned for chat.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from redraft.errors import InputError
from redraft.models.batching import BatchShape, groups, padded
from redraft.models.pull import SOURCES, pulled

if TYPE_CHECKING:
    from torch import Tensor

_MAX_BATCH = 512  # tokens, including padding


@dataclass(frozen=True, slots=True)
class JudgeSource:
    """Location of a judge, and the texts for start and end (None: the model's own tokens)."""

    location: str
    start: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """Negative log-likelihood of a sentence in nats, and its number of tokens including the end."""

    nll: float
    num_tokens: int


@dataclass(frozen=True, eq=False)
class JudgeReading:
    """The score of a text, and its features: the mean last hidden state over its tokens, None if unavailable."""

    score: JudgeScore
    features: NDArray[np.float32] | None


@dataclass(frozen=True)
class Judge:
    """A loaded judge. ``start`` is conditioned on, ``end`` is scored. ``max_tokens`` is the limit of the model."""

    name: str
    sha256: str
    model: Any
    tokenizer: Any
    start: tuple[int, ...]
    end: tuple[int, ...]
    max_tokens: int | None
    has_plain_head: bool
    settings: dict[str, str]

    def score(self, texts: Sequence[str], advance: Callable[[int], None] = lambda _: None) -> list[JudgeScore]:
        """Score each text. ``advance`` is called with the number of texts of each batch."""
        return [reading.score for reading in self.read(texts, advance)]

    def read(self, texts: Sequence[str], advance: Callable[[int], None] = lambda _: None) -> list[JudgeReading]:
        """Score each text and compute its features in one pass."""
        encoded = [self._encode(one) for one in texts]
        readings: dict[int, JudgeReading] = {}
        for batch in groups([[len(ids)] for ids in encoded], _fits):
            readings |= zip(batch, self._read_batch([encoded[i] for i in batch]), strict=True)
            advance(len(batch))
        return [readings[i] for i in range(len(texts))]

    def _encode(self, sentence: str) -> list[int]:
        ids = [*self.start, *self.tokenizer.encode(sentence, add_special_tokens=False), *self.end]
        if self.max_tokens is not None and len(ids) > self.max_tokens:
            raise InputError(
                f"the judge {self.name} reads at most {self.max_tokens} tokens, and {len(ids)} are needed for "
                f"{sentence[:40]!r}...; shorten it or use another judge"
            )
        return ids

    def _read_batch(self, encoded: Sequence[list[int]]) -> list[JudgeReading]:
        import torch

        # Padding is on the right, where a causal model does not attend to it.
        ids, real = padded(encoded)
        mask = real.long()
        with torch.inference_mode():
            nll, states = self._token_nll(ids, mask)
        first = len(self.start) - 1
        scores = [
            JudgeScore(float(row[first : len(one) - 1].double().sum()), len(one) - len(self.start))
            for row, one in zip(nll, encoded, strict=True)
        ]
        if states is None:
            return [JudgeReading(score, None) for score in scores]
        # An empty text is represented by the state after the start.
        spans = [(min(len(self.start), len(one) - len(self.end) - 1), len(one) - len(self.end)) for one in encoded]
        features = [states[i, start:end].mean(dim=0).numpy() for i, (start, end) in enumerate(spans)]
        return [JudgeReading(score, one) for score, one in zip(scores, features, strict=True)]

    def _token_nll(self, ids: "Tensor", mask: "Tensor") -> "tuple[Tensor, Tensor | None]":
        """-log p of each token but the first, given those before it: [sentences, tokens] to [sentences, tokens - 1].

        With it the last hidden states [sentences, at least tokens - 1, size], if the model gives them.
        """
        from redraft.models.output_layer import log_prob_of

        if not self.has_plain_head:
            found = self.model(input_ids=ids, attention_mask=mask, use_cache=False, output_hidden_states=True)
            nll: Tensor = -found.logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
            states = getattr(found, "hidden_states", None)
            return nll, states[-1] if states else None
        # All logits of a batch may take half a gigabyte; allocating that takes as long as computing them.
        head = self.model.get_output_embeddings()
        hidden = self.model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, :-1]
        log_probs = log_prob_of(hidden.flatten(0, 1), ids[:, 1:].flatten(), head.weight, head.bias)
        return -log_probs.view(hidden.shape[:2]), hidden


def load_judge(name_or_folder: str) -> Judge:
    """Load a judge by name or folder, in single precision and only from safetensors."""
    source = find_judge(name_or_folder)
    tokenizer, model = _load(name_or_folder, source.location)
    start = _ids(tokenizer, source.start, (tokenizer.bos_token_id, tokenizer.eos_token_id), name_or_folder)
    end = _ids(tokenizer, source.end, (tokenizer.eos_token_id,), name_or_folder)
    name = _shown(name_or_folder)
    sha256 = _digest(model, tokenizer)
    plain = _has_plain_head(model, [*start, *end])
    return Judge(name, sha256, model, tokenizer, start, end, _max_tokens(model), plain, _settings(name, sha256, source))


def _shown(name_or_folder: str) -> str:
    """The judge's name in a signature. Of a folder only the last part, which is the same on every machine."""
    folder = Path(name_or_folder).expanduser()
    return folder.resolve().name if folder.is_dir() else name_or_folder


def find_judge(name_or_folder: str) -> JudgeSource:
    """Find a judge: a name known to ``redraft pull``, a folder, or a model of the hub."""
    if source := SOURCES.get(name_or_folder):
        return JudgeSource(str(pulled(name_or_folder)), source.lead + source.start, source.end)
    looks_like_path = name_or_folder.startswith((".", "/", "~")) or name_or_folder.count("/") > 1
    if looks_like_path and not os.path.isdir(os.path.expanduser(name_or_folder)):
        raise InputError(f"the judge's folder {name_or_folder} does not exist")
    return JudgeSource(os.path.expanduser(name_or_folder) if looks_like_path else name_or_folder)


def _settings(name: str, sha256: str, source: JudgeSource) -> dict[str, str]:
    from transformers import __version__

    start = "bos" if source.start is None else json.dumps(source.start)
    end = "eos" if source.end is None else json.dumps(source.end)
    short = sha256[:12]
    return {"judge": name, "sha256": short, "start": start, "end": end, "dtype": "fp32", "transformers": __version__}


def _load(name: str, location: str) -> tuple[Any, Any]:
    import torch

    from redraft.models.causal import hub

    try:
        return hub.load(location, torch.float32)  # figures must not depend on the processor
    except InputError as error:
        raise InputError(f"the judge {name} cannot be loaded: {error}") from error


def _ids(tokenizer: Any, given: str | None, special: Sequence[int | None], name: str) -> tuple[int, ...]:
    if given is not None:
        return tuple(tokenizer.encode(given, add_special_tokens=False))
    found = next((token for token in special if token is not None), None)
    if found is None:
        raise InputError(f"the judge {name} has no end token; use a model whose tokenizer defines one")
    return (found,)


def _max_tokens(model: Any) -> int | None:
    limit = getattr(model.config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) else None


def _digest(model: Any, tokenizer: Any) -> str:
    """SHA-256 of the loaded weights and the vocabulary, independent of the file format."""
    import torch

    digest = hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    for name, values in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(values.detach().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _fits(shape: BatchShape) -> bool:
    return shape.num_rows * shape.longest <= _MAX_BATCH


def _has_plain_head(model: Any, ids: Sequence[int]) -> bool:
    """Whether the logits are just the last states times the output layer; tested on a text."""
    import torch

    head = model.get_output_embeddings()
    if not isinstance(head, torch.nn.Linear):
        return False
    given = torch.tensor([ids])
    with torch.inference_mode():
        wanted = model(input_ids=given, use_cache=False).logits
        found = head(model.base_model(input_ids=given, use_cache=False).last_hidden_state)
    return bool(torch.allclose(found, wanted, rtol=1e-4, atol=1e-4))
