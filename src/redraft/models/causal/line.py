"""Sentences as a causal language model reads them: lines of natural text, in its own tokens.

The words stand as a reader sees them, with spaces where people write them. Every word (and every run of punctuation) is
turned into tokens on its own, with the space before it or without, so its tokens do not hang on edits elsewhere.

Before the sentence stands a start, or a context that a person gives: ``"Weather report:"`` is a line before the
sentence; ``"Weather report: "``, with a space at its end, opens the sentence's own line.
"""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.errors import InputError
from redraft.models.base import Words

Tokens = tuple[int, ...]

_NEWLINE = "\n"
_DEFAULT_START = ".\n"  # a line has ended: of all starts without words of their own, sentences are likeliest after it


class CausalLine:
    """The line that a sentence stands in. ``start`` are the tokens before it, ``end`` is the one after it.

    ``max_tokens`` is how many a text may have, ``num_tokens`` how many there are. ``lead`` is what every text of this
    model begins with (None: its own begin token, if it has one).
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        max_tokens: int | None,
        num_tokens: int,
        *,
        context: str = "",
        lead: str | None = None,
    ):
        self._name, self._tokenizer, self._max_tokens, self._num_tokens = name, tokenizer, max_tokens, num_tokens
        self._anchor = self._ids(_NEWLINE)
        self._tokens_of = lru_cache(maxsize=1 << 17)(self._encode)
        self.end = self._end_token()
        if not context.strip():
            context = ""
        self._goes_on = context.endswith((" ", "\t"))  # the sentence stands in the context's line
        self.start = self._start_tokens(context, lead)

    def _ids(self, written: str) -> Tokens:
        return self._known(self._tokenizer.encode(written, add_special_tokens=False))

    def _known(self, ids: Sequence[int]) -> Tokens:
        """Refuse tokens that the model does not have."""
        if ids and max(ids) >= self._num_tokens:
            raise InputError(
                f"the tokenizer beside {self._name} is not its own: it has a token {max(ids):,}, and the model knows "
                f"{self._num_tokens:,}; put the model's tokenizer there"
            )
        return tuple(ids)

    def _encode(self, piece: str) -> Tokens:
        """Tokens of a piece of text inside a line. Some tokenizers put a space before whatever a text begins with."""
        ids = self._ids(_NEWLINE + piece)
        known = len(self._anchor)
        return ids[known:] if ids[:known] == self._anchor else self._ids(piece)

    def encode_many(self, pieces: Sequence[str]) -> list[Tokens]:
        """The same for many pieces, in one call of the tokenizer."""
        known = len(self._anchor)
        found = self._tokenizer([_NEWLINE + piece for piece in pieces], add_special_tokens=False)["input_ids"]
        return [
            self._known(ids[known:]) if tuple(ids[:known]) == self._anchor else self._ids(piece)
            for ids, piece in zip(found, pieces, strict=True)
        ]

    def _end_token(self) -> int:
        # Llama writes a newline as bytes after a space of its own: the last token is the newline.
        if self._anchor and self._tokenizer.decode(self._anchor[-1:]) == _NEWLINE:
            return self._anchor[-1]
        if self._tokenizer.eos_token_id is None:
            raise InputError(
                f"the tokenizer of {self._name} has neither a newline nor an end token; take another model"
            )
        return int(self._tokenizer.eos_token_id)

    def _start_tokens(self, context: str, lead: str | None) -> Tokens:
        if lead is None:
            lead = self._tokenizer.bos_token or self._tokenizer.eos_token or ""
        line = context.rstrip(" \t") if self._goes_on else context and context.rstrip(_NEWLINE) + _NEWLINE
        ids = self._ids(lead + (line or _DEFAULT_START)) or (self.end,)
        if self._max_tokens is not None and len(ids) >= self._max_tokens:
            raise InputError(
                f"the context has {len(ids)} tokens, and {self._name.split(' after ')[0]} reads at most "
                f"{self._max_tokens} with the sentence; shorten it"
            )
        return ids

    def pieces(self, words: Words) -> list[str]:
        """The words as they are written, each with the space before it if it has one."""
        shown = text.surface(words)
        line = text.detokenise(shown)
        pieces, at = [], 0
        for word in shown:
            end = line.index(word, at) + len(word)
            pieces.append(line[at:end])
            at = end
        if pieces and self._goes_on:
            pieces[0] = " " + pieces[0]
        return pieces

    def tokens(self, words: Words) -> tuple[Tokens, ...]:
        """Tokens of each word. Those of a word hang on the words before it only through its space and capital.

        Punctuation marks in a row are written by the last of them, the others have no tokens: a model that knows
        ``."`` as one token hardly ever sees it as two.
        """
        pieces = self.pieces(words)
        joins = [_joins(left, right) for left, right in itertools.pairwise(pieces)]
        found, run = [], ""
        for piece, is_joined in zip(pieces, [*joins, False], strict=False):
            run += piece
            found.append(() if is_joined else self._tokens_of(run))
            run = run if is_joined else ""
        return tuple(found)

    def fits(self, tokens: Sequence[Tokens]) -> bool:
        """Whether a sentence is short enough for the model."""
        return self._max_tokens is None or self._needed(tokens) <= self._max_tokens

    def _needed(self, tokens: Sequence[Tokens]) -> int:
        return len(self.start) + sum(map(len, tokens))

    def require_fit(self, words: Words, tokens: Sequence[Tokens]) -> None:
        """Refuse a sentence that is too long for the model."""
        if not self.fits(tokens):
            raise InputError(
                f"{self._name} reads at most {self._max_tokens} tokens, and {self._needed(tokens)} are needed for the "
                f"sentence {' '.join(words[:6])}...; shorten it or its context"
            )


class WordTable:
    """Which token writes each word: after a space or not, opening a sentence or inside it. -1: it takes several."""

    def __init__(self, words: Sequence[str], line: CausalLine):
        self.words, self._line = tuple(words), line
        self._leans = np.array([text.detokenise(("x", word)) == f"x{word}" for word in self.words])
        self._marks = np.array([not text.is_word(word) for word in self.words])
        self._found: dict[tuple[bool, bool], NDArray[np.int64]] = {}  # a second for all words: only what is asked for
        self.proposable = self.ids(False, False, False) >= 0

    def ids(self, opening: bool, glued: bool, after_mark: bool) -> NDArray[np.int64]:
        if (opening, glued) not in self._found:
            self._found[opening, glued] = self._ids(opening, self._leans | glued)
        ids = self._found[opening, glued]
        # A mark would join the one before.
        return np.where((self._leans | glued) & self._marks, -1, ids) if after_mark else ids

    def _ids(self, opening: bool, tight: NDArray[np.bool_]) -> NDArray[np.int64]:
        shown = map(text.capitalise, self.words) if opening else self.words
        pieces = [word if is_tight else f" {word}" for word, is_tight in zip(shown, tight, strict=True)]
        ids = np.array([_single(tokens) for tokens in self._line.encode_many(pieces)])
        if opening:  # a word that also stands in the list without its capital is proposed in that form
            known = set(self.words)
            ids[[word[:1].isupper() and word[:1].lower() + word[1:] in known for word in self.words]] = -1
        return ids


def _joins(left: str, right: str) -> bool:
    """Whether two pieces are punctuation without a space between them."""
    return not (right.startswith(" ") or text.is_word(right) or text.is_word(left.strip()))


def _single(tokens: Tokens) -> int:
    return tokens[0] if len(tokens) == 1 else -1
