"""Sentences as a causal language model reads them: lines of natural text in the model's own tokens.

A sentence is written as people write it, with a capital and with spaces where they belong. Every word, and every run
of punctuation, is tokenised on its own, together with the space before it. So the tokens of a word do not depend on
edits elsewhere in the sentence.

The sentence follows a start or a context. The context ``"Weather report:"`` is a line of its own before the sentence;
``"Weather report: "``, which ends in a space, begins the line that the sentence continues.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.errors import InputError
from redraft.models.base import Words

Tokens = tuple[int, ...]

_NEWLINE = "\n"
_DEFAULT_START = ".\n"  # the end of a line: of all starts without words, it makes sentences most likely


class TextTokenizer(Protocol):
    """The part of a transformers tokenizer that is used here."""

    @property
    def bos_token(self) -> str | None: ...

    @property
    def eos_token(self) -> str | None: ...

    @property
    def eos_token_id(self) -> int | None: ...

    def encode(self, written: str, *, add_special_tokens: bool) -> list[int]: ...

    def __call__(self, written: Sequence[str], *, add_special_tokens: bool) -> Mapping[str, list[list[int]]]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class CausalLine:
    """The line of text that a sentence is part of. ``start`` are the tokens before it, ``end`` is the token after it.

    ``max_tokens`` is the longest text that the model reads, ``num_tokens`` the size of its vocabulary. ``lead`` is what
    every text of the model begins with (None: its begin-of-text token, if it has one).
    """

    def __init__(
        self,
        name: str,
        tokenizer: TextTokenizer,
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
        self._continues_line = context.endswith((" ", "\t"))  # the sentence is on the last line of the context
        self.start = self._start_tokens(context, lead)

    def _ids(self, written: str) -> Tokens:
        return self._known(self._tokenizer.encode(written, add_special_tokens=False))

    def _known(self, ids: Sequence[int]) -> Tokens:
        """Refuse tokens that are not in the model's vocabulary."""
        if ids and max(ids) >= self._num_tokens:
            raise InputError(
                f"the tokenizer beside {self._name} belongs to another model: it has a token {max(ids):,}, and the "
                f"model knows {self._num_tokens:,}; put the model's tokenizer there"
            )
        return tuple(ids)

    def _encode(self, piece: str) -> Tokens:
        """Tokens of a piece of text inside a line. It is encoded after a newline, because some tokenizers put a space
        before the beginning of every text."""
        ids = self._ids(_NEWLINE + piece)
        known = len(self._anchor)
        return ids[known:] if ids[:known] == self._anchor else self._ids(piece)

    def encode_many(self, pieces: Sequence[str]) -> list[Tokens]:
        """Tokens of many pieces of text inside a line, in one call of the tokenizer."""
        known = len(self._anchor)
        found = self._tokenizer([_NEWLINE + piece for piece in pieces], add_special_tokens=False)["input_ids"]
        return [
            self._known(ids[known:]) if tuple(ids[:known]) == self._anchor else self._ids(piece)
            for ids, piece in zip(found, pieces, strict=True)
        ]

    def _end_token(self) -> int:
        # Llama's tokenizer writes a space before the newline: only the last token is the newline.
        if self._anchor and self._tokenizer.decode(self._anchor[-1:]) == _NEWLINE:
            return self._anchor[-1]
        if self._tokenizer.eos_token_id is None:
            raise InputError(
                f"the tokenizer of {self._name} has neither a newline nor an end token; choose another model"
            )
        return int(self._tokenizer.eos_token_id)

    def _start_tokens(self, context: str, lead: str | None) -> Tokens:
        if lead is None:
            lead = self._tokenizer.bos_token or self._tokenizer.eos_token or ""
        line = context.rstrip(" \t") if self._continues_line else context and context.rstrip(_NEWLINE) + _NEWLINE
        ids = self._ids(lead + (line or _DEFAULT_START)) or (self.end,)
        if self._max_tokens is not None and len(ids) >= self._max_tokens:
            raise InputError(
                f"the context has {len(ids)} tokens, and {self._name.split(' after ')[0]} reads at most "
                f"{self._max_tokens} with the sentence; shorten it"
            )
        return ids

    def pieces(self, words: Words) -> list[str]:
        """The words as they are written, each with the space before it, if any."""
        shown = text.surface(words)
        line = text.detokenise(shown)
        pieces, at = [], 0
        for word in shown:
            end = line.index(word, at) + len(word)
            pieces.append(line[at:end])
            at = end
        if pieces and self._continues_line:
            pieces[0] = " " + pieces[0]
        return pieces

    def tokens(self, words: Words) -> tuple[Tokens, ...]:
        """Tokens of each word. They depend on the words before it only through its space and its capital.

        A run of punctuation marks is encoded as a whole. Its last mark has all the tokens, the others have none: a
        model that has a token ``."`` was hardly ever trained on two tokens in its place.
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
        """Return whether a sentence is short enough for the model."""
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
    """The token of each word, with or without a space before it, at the beginning of a sentence or inside it.

    It is -1 for a word that needs several tokens.
    """

    def __init__(self, words: Sequence[str], line: CausalLine):
        self.words, self._line = tuple(words), line
        self._leans = np.array([text.detokenise(("x", word)) == f"x{word}" for word in self.words])
        self._marks = np.array([not text.is_word(word) for word in self.words])
        self._found: dict[tuple[bool, bool], NDArray[np.int64]] = {}  # filled on demand: a table takes a second
        self.proposable = self.ids(False, False, False) >= 0

    def ids(self, opening: bool, glued: bool, after_mark: bool) -> NDArray[np.int64]:
        if (opening, glued) not in self._found:
            self._found[opening, glued] = self._ids(opening, self._leans | glued)
        ids = self._found[opening, glued]
        # A mark would join the one before it in a run, which has tokens of its own.
        return np.where((self._leans | glued) & self._marks, -1, ids) if after_mark else ids

    def _ids(self, opening: bool, tight: NDArray[np.bool_]) -> NDArray[np.int64]:
        shown = map(text.capitalise, self.words) if opening else self.words
        pieces = [word if is_tight else f" {word}" for word, is_tight in zip(shown, tight, strict=True)]
        ids = np.array([_single(tokens) for tokens in self._line.encode_many(pieces)])
        if opening:  # a word that is also listed without its capital is proposed in that form
            known = set(self.words)
            ids[[word[:1].isupper() and word[:1].lower() + word[1:] in known for word in self.words]] = -1
        return ids


def _joins(left: str, right: str) -> bool:
    """Return whether two pieces are punctuation without a space between them."""
    return not (right.startswith(" ") or text.is_word(right) or text.is_word(left.strip()))


def _single(tokens: Tokens) -> int:
    return tokens[0] if len(tokens) == 1 else -1
