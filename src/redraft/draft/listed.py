"""Tokens that keep a text within a list of words."""

from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redraft import text
from redraft.models.causal.infiller import TokenTable
from redraft.phrases import is_listed


class ListedWords:
    """Which tokens may follow a text whose words must be listed. Punctuation and clitics ('s) are free."""

    def __init__(self, table: TokenTable, listed: frozenset[str]):
        self._listed, self._sorted = listed, sorted(listed)
        prefixes = {word[:size] for word in listed for size in range(1, len(word) + 1)}
        shown = [one.lower() for one in table.texts]
        marks = [bool(one.strip()) and not text.is_word(one) for one in shown]
        self._marks = np.array(marks)
        self._marks[table.end] = True
        self._first = np.array([one[:1] == " " and one[1:] in prefixes for one in shown])
        self._clitics = np.array([text.is_clitic(one) for one in shown])
        self._inside: dict[str, list[int]] = {}  # tokens that go on with a word
        for i, one in enumerate(shown):
            if one[:1] != " " and text.is_word(one):
                self._inside.setdefault(one, []).append(i)
        self._following = lru_cache(1 << 14)(self._find_following)

    def ends_word(self, written: str) -> bool:
        """Whether the last words of a text are listed, if its last word ends."""
        return all(is_listed(word, self._listed) for word in text.tokenise(written.rpartition(" ")[2]))

    def mask(self, written: str) -> NDArray[np.bool_]:
        """The tokens that may follow a text."""
        partial = written.rpartition(" ")[2].lower()
        found = np.zeros(len(self._marks), dtype=np.bool_)
        if self.ends_word(written):
            found |= self._marks | self._clitics
            if written:
                found |= self._first
        found[list(self._following(partial))] = True
        return found

    def _find_following(self, partial: str) -> tuple[int, ...]:
        """Tokens with which a begun word goes on towards a listed one."""
        begun = partial.lstrip("\"'“‘([")
        rests = set()
        for word in self._sorted[bisect_left(self._sorted, begun) :]:
            if not word.startswith(begun):
                break
            rests |= {word[len(begun) : size] for size in range(len(begun) + 1, len(word) + 1)}
        return tuple(i for rest in rests for i in self._inside.get(rest, ()))
