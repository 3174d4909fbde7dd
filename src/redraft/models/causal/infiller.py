"""The infiller: a causal language model that writes a sentence after a line with given words and blanks.

It is a base model with a low-rank adapter merged into its weights. ``redraft.models.causal.prompts`` has its prompts.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.errors import InputError, PackError
from redraft.models.base import Words
from redraft.models.batching import common_prefix
from redraft.models.causal import eight_bits, llama
from redraft.models.causal.adapter import Adapter, load_adapter
from redraft.models.causal.line import CausalLine, Tokens
from redraft.models.causal.network import KvCache, TokenRow
from redraft.models.checkpoints import fingerprint
from redraft.models.precision import PRECISION, compute_dtype
from redraft.models.threads import side_by_side

INFILLER = "infiller"  # the part of a pack
_SCORED_ROWS = 16  # sentences whose logits are held at once
_REPLACEMENT = "\ufffd"  # what stands for bytes that are no whole letter
_MAY_FOLLOW = frozenset(",.;:!?%)]}\"'\u2026\u201d\u2019")  # marks that leave the word before them as it is


class Decoder(Protocol):
    """Rows of text that are read a token at a time."""

    def select(self, rows: Sequence[int], lengths: Sequence[int] | None = None) -> None:
        """Continue with these rows, in this order. A row may be repeated, and may be cut to a length in tokens."""


DecoderT = TypeVar("DecoderT", bound=Decoder)


class Spelling(Protocol):
    """How a model writes words in tokens."""

    @property
    def tokens(self) -> "TokenTable": ...

    def spell(self, before: Words, added: Words) -> Tokens:
        """The tokens of words that come after other words."""


class Writing(Spelling, Protocol[DecoderT]):
    """What a drafter needs of a model: how it spells, and what it expects next."""

    def begin(self, prompt: str, num_rows: int, max_tokens: int, given: Tokens = ()) -> tuple[Tensor, DecoderT]:
        """Scores [vocabulary] of the token after a prompt and given tokens, and a decoder of rows that begin there."""

    def step(self, steps: Sequence[tuple[DecoderT, Sequence[int]]]) -> list[Tensor]:
        """Read the next token of each row of several decoders; scores [rows, vocabulary] of what comes after it.

        Rows whose token is UNREAD read nothing, and have no scores.
        """

    def logits(self, prompt: str, rows: Sequence[Tokens]) -> list[Tensor]:
        """Scores [tokens, vocabulary] of each token of each row after a prompt, read in one call."""


class TokenTable:
    """The texts of a vocabulary's tokens. ``end`` is the token that ends a sentence.

    A rare letter is spelled by several tokens, which have no text of their own; ``decode`` reads them together.
    """

    def __init__(
        self,
        texts: Sequence[str],
        end: int,
        never: Sequence[int] = (),
        decode: Callable[[Sequence[int]], str] | None = None,
    ):
        self.texts, self.end = tuple(texts), end
        self._decode = decode or (lambda tokens: "".join(self.texts[token] for token in tokens))
        usable = np.array([_is_usable(one) for one in texts])
        usable[[end, *never]] = False
        self.usable: NDArray[np.bool_] = usable
        # A word that stands before such a token is complete.
        self.ends_word: NDArray[np.bool_] = usable & np.array([_ends_word(one) for one in texts])
        self.marks = {one: i for i, one in enumerate(texts) if usable[i] and one and not text.is_word(one)}

    def __len__(self) -> int:
        return len(self.texts)

    def added_by(self, tokens: Sequence[int]) -> str:
        """What the last of some tokens adds to their text. The last token of a letter adds the letter."""
        if tokens[-1] == self.end:
            return ""
        if _REPLACEMENT not in self.texts[tokens[-1]]:
            return self.texts[tokens[-1]]
        parts = list(itertools.takewhile(lambda token: _REPLACEMENT in self.texts[token], reversed(tokens)))[::-1]
        before, written = (self._decode(some).rstrip(_REPLACEMENT) if some else "" for some in (parts[:-1], parts))
        return written[len(before) :]

    @cached_property
    def single_words(self) -> dict[str, list[int]]:
        """Tokens that write a whole word after a space, by the word in small letters."""
        found: dict[str, list[int]] = {}
        for i in np.flatnonzero(self.usable):
            if self.texts[i].startswith(" ") and len(self.texts[i]) > 1:
                found.setdefault(self.texts[i][1:].lower(), []).append(int(i))
        return found


def _is_usable(written: str) -> bool:
    return bool(written) and written.isprintable() and _REPLACEMENT not in written and "  " not in written


def _ends_word(written: str) -> bool:
    return written[:1] == " " or (written[:1] in _MAY_FOLLOW and not text.is_negation(written[:2]))


class Infiller:
    """A model that writes into gaps. ``context`` is a text that stands before every prompt."""

    def __init__(
        self,
        name: str,
        network: llama.Llama,
        tokenizer: Any,
        *,
        lead: str = "",
        context: str = "",
        styles: tuple[str, ...] = (),
    ):
        self.name = f"{name} after {context!r}" if context else name
        self._network, self._tokenizer, self._lead, self.styles = network, tokenizer, lead, styles
        self._context = context.rstrip() + "\n" if context.strip() else ""
        self._line = CausalLine(name, tokenizer, network.max_tokens, network.num_tokens, lead=lead)

    @property
    def precision(self) -> str:
        return self._network.precision

    @cached_property
    def tokens(self) -> TokenTable:
        texts = [self._tokenizer.decode([i]) for i in range(self._network.num_tokens)]
        never = [i for i, one in enumerate(texts) if one.startswith("<") and one.endswith(">") and len(one) > 2]
        return TokenTable(texts, self._line.end, never, self._tokenizer.decode)

    def spell(self, before: Words, added: Words) -> Tokens:
        found = self._line.tokens((*before, *added))[len(before) :]
        return tuple(token for word in found for token in word)

    @torch.inference_mode()
    def begin(
        self, prompt: str, num_rows: int, max_tokens: int, given: Tokens = ()
    ) -> tuple[Tensor, llama.LlamaDecoder]:
        ids = (*self._prompt_tokens(prompt), *given)
        if self._network.max_tokens is not None and len(ids) + max_tokens > self._network.max_tokens:
            raise InputError(
                f"{self.name} reads at most {self._network.max_tokens} tokens, and {len(ids)} are needed for "
                f"the given words and their context alone; shorten them"
            )
        logits, past = self._network.begin(ids)
        return logits, self._network.decoder(past, num_rows, max_tokens)

    def step(self, steps: Sequence[tuple[llama.LlamaDecoder, Sequence[int]]]) -> list[Tensor]:
        return self._network.step(steps)

    def _prompt_tokens(self, prompt: str) -> Tokens:
        return tuple(self._tokenizer.encode(f"{self._lead}{self._context}{prompt}\n", add_special_tokens=False))

    @torch.inference_mode()
    def logits(self, prompt: str, rows: Sequence[Tokens]) -> list[Tensor]:
        return self._logits_after(*self._network.begin(self._prompt_tokens(prompt)), rows)

    def _logits_after(self, first: Tensor, past: KvCache, rows: Sequence[Tokens]) -> list[Tensor]:
        longer = [row for row in rows if len(row) > 1]
        read = [TokenRow(row[:-1], past.first(0), 0) for row in longer]
        after = iter(self._network.run(read, past)[0] if read else ())
        return [torch.cat([first[None], next(after)[: len(row) - 1]]) if len(row) > 1 else first[None] for row in rows]

    @torch.inference_mode()
    def log_probs(self, prompt: str, sentences: Sequence[Words], temperature: float = 1.0) -> list[float]:
        """log P(sentence | prompt) of each, the end counted, every token's distribution at a temperature."""
        if not sentences:
            return []
        whole = [(*self.spell((), words), self._line.end) for words in sentences]
        # Most drafts of a template share the words before its first blank.
        shared = whole[0][: min(common_prefix(whole[0], row[:-1]) for row in whole)]
        rows = [row[len(shared) :] for row in whole]
        first, past = self._network.begin(self._prompt_tokens(prompt))
        log_shared = 0.0
        if shared:
            logits, read = self._network.run([TokenRow(shared, past.first(0), 0)], past)
            log_shared = _log_prob(shared, torch.cat([first[None], logits[0, :-1]]).float() / temperature)
            first, past = logits[0, -1], past.then(KvCache(read.keys[0], read.values[0]))
        by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        parts = [by_length[at : at + _SCORED_ROWS] for at in range(0, len(rows), _SCORED_ROWS)]

        def scored(part: Sequence[int]) -> list[float]:
            chosen = [rows[i] for i in part]
            return [
                _log_prob(row, logits.float() / temperature)
                for row, logits in zip(chosen, self._logits_after(first, past, chosen), strict=True)
            ]

        found = dict(zip(by_length, itertools.chain(*side_by_side(scored, parts)), strict=True))
        return [log_shared + found[i] for i in range(len(rows))]


def _log_prob(row: Tokens, scores: Tensor) -> float:
    """Log-probability of tokens, given the scores [tokens, vocabulary] of each."""
    return float((scores.gather(1, torch.tensor(row)[:, None])[:, 0] - scores.logsumexp(-1)).sum())


def load_infiller(adapter: Path, *, context: str = "", dtype: torch.dtype | None = None) -> Infiller:
    """The infiller of an adapter, with the base model that it was made for, which must have been pulled."""
    from redraft.models.pull import SOURCES, pulled

    found = load_adapter(adapter)
    source = SOURCES.get(found.base)
    folder = pulled(found.base) if source else Path(found.base)
    _require_base(found, folder)
    network, tokenizer = llama.load(folder, dtype or _fastest(), found)
    lead = source.lead if source else ""
    return Infiller(f"infiller/{found.base}", network, tokenizer, lead=lead, context=context, styles=found.styles)


def _fastest() -> torch.dtype:
    """The precision to write in. 8 bits cost 0.01 nats per token and are 1.5 times as fast as bfloat16."""
    is_given = PRECISION in os.environ
    return torch.int8 if not is_given and eight_bits.is_fast() else compute_dtype()


def _require_base(adapter: Adapter, folder: Path) -> None:
    # Of the weights alone: what else transformers writes into the folder depends on its version.
    if adapter.base_hash and fingerprint(folder / llama.WEIGHTS) != adapter.base_hash:
        raise PackError(
            f"the infiller was made for another {adapter.base} than the one in {folder} (weights differ); "
            f"fetch it again: redraft pull {adapter.base}"
        )
