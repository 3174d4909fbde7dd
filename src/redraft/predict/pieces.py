"""Sentences in the sub-tokens of a classifier. The pieces of a word do not depend on its neighbours."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redraft import text
from redraft.errors import PackError
from redraft.models.pieces import PIECES, SentencePieces, Splitter
from redraft.models.vocabulary import END, START, UNKNOWN, Vocabulary

__all__ = ["PIECES", "Encoding", "HubPieces", "PieceEncoder", "SentencePieces", "Splitter", "WordIds"]


class HubPieces:
    """The tokenizer of any model that transformers knows."""

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self.size: int = len(tokenizer)
        begin, end = _either(tokenizer, "bos", "cls"), _either(tokenizer, "eos", "sep")
        if begin is None or end is None:
            raise PackError("the tokenizer has no token for the begin or the end of a sentence")
        self.begin, self.end = begin, end
        self.padding: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end

    def split(self, word: str) -> tuple[int, ...]:
        # The space marks the start of a word for byte-level tokenizers; others drop it.
        ids = self._tokenizer.encode(" " + word, add_special_tokens=False)
        return tuple(ids) or (self._tokenizer.unk_token_id,)


def _either(tokenizer: Any, *names: str) -> int | None:
    ids = (getattr(tokenizer, f"{name}_token_id") for name in names)
    return next((i for i in ids if i is not None), None)


class WordIds:
    """A word-level vocabulary: each word is one piece. An unknown capitalised word counts as its lower-case form."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary, self.size = vocabulary, len(vocabulary)
        self.begin, self.end, self.padding = START, END, END

    def split(self, word: str) -> tuple[int, ...]:
        found = self.vocabulary.id(word)
        return (found if found != UNKNOWN else self.vocabulary.id(word[:1].lower() + word[1:]),)


class Encoding(NamedTuple):
    """A sentence in pieces, with BOS and EOS. ``firsts[i]`` is the first piece of word i; the last one is EOS."""

    ids: list[int]
    firsts: list[int]


class PieceEncoder:
    """Sentences in pieces, as a reader sees them: the first word capitalised (``text.surface``)."""

    def __init__(self, splitter: Splitter):
        self.splitter = splitter
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, words: Sequence[str]) -> Encoding:
        ids, firsts = [self.splitter.begin], []
        for word in text.surface(words):
            firsts.append(len(ids))
            ids.extend(self._split(word))
        firsts.append(len(ids))
        ids.append(self.splitter.end)
        return Encoding(ids, firsts)

    def _split(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            if len(self._known) > 1 << 18:  # bounds the memory of long-running servers
                self._known.clear()
            self._known[word] = self.splitter.split(word)
        return self._known[word]
