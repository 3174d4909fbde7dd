"""A sentence: words with their locks and gaps."""

import itertools
from dataclasses import dataclass

from redraft import text
from redraft.edit import Action, Edit

FREE = -1  # the lock of a word that no constraint holds; the words of a constraint have its index
ENDING = -2  # the lock of the last word where the constraints say how a sentence may end


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with their locks and gaps. ``open_gaps[i]`` is the gap before word i; the last one is the end."""

    words: tuple[str, ...]
    locks: tuple[int, ...]
    open_gaps: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def text(self) -> str:
        return text.render(self.words)

    @property
    def num_empty_gaps(self) -> int:
        """Open gaps without a free word next to them: the blanks of a template that are still empty."""
        beside = zip((None, *self.locks), (*self.locks, None), strict=True)
        return sum(is_open and FREE not in locks for is_open, locks in zip(self.open_gaps, beside, strict=True))

    def span(self, action: Action, position: int) -> tuple[int, int]:
        """Start and end of the words that an action at a position replaces."""
        if action is Action.SWAP:
            first, _, _, last = self._swapped(position)
            return first, last
        if action is Action.VARY:
            return position, self._end_of_lock(position)
        return position, position + (action is not Action.INSERT)

    def filling(self, edit: Edit) -> tuple[str, ...]:
        """The words that an edit puts in place of the span."""
        if edit.action is Action.SWAP:
            a, b, c, d = self._swapped(edit.position)
            return self.words[c:d] + self.words[b:c] + self.words[a:b]
        if edit.action is Action.VARY and edit.word is not None:
            return tuple(edit.word.split())
        return () if edit.word is None else (edit.word,)

    def apply(self, edit: Edit) -> "Sentence":
        """The sentence after an edit. Refuses to touch a locked word or a closed gap."""
        start, end = self.span(edit.action, edit.position)
        locks: tuple[int, ...]
        gaps: tuple[bool, ...]  # before each new word, and after the last
        if edit.action is Action.INSERT:
            if not self.open_gaps[start]:
                raise ValueError(f"gap {start} of {self.words} is closed")
            locks, gaps = (FREE,), (True, True)
        elif edit.action is Action.SWAP:
            a, b, c, d = self._swapped(start)
            locks = self.locks[c:d] + self.locks[b:c] + self.locks[a:b]
            inner = (left != right or left == FREE for left, right in itertools.pairwise(locks))
            gaps = (self.open_gaps[a], *inner, self.open_gaps[d])
        elif edit.action is Action.VARY:
            if not self.starts_part(start):
                raise ValueError(f"no given part starts at {start} of {self.words}")
            size = len(self.filling(edit))
            locks = (self.locks[start],) * size
            gaps = (self.open_gaps[start], *[False] * (size - 1), self.open_gaps[end])
        elif self.locks[start] != FREE and (edit.action, self.locks[start]) != (Action.REPLACE, ENDING):
            raise ValueError(f"word {start} of {self.words} is locked")
        elif edit.action is Action.REPLACE:
            locks, gaps = (self.locks[start],), self.open_gaps[start : start + 2]
        else:
            locks, gaps = (), (True,)
        return Sentence(
            self.words[:start] + self.filling(edit) + self.words[end:],
            self.locks[:start] + locks + self.locks[end:],
            self.open_gaps[:start] + gaps + self.open_gaps[end + 1 :],
        )

    def can_swap(self, position: int) -> bool:
        """Whether two free words meet here, or a keyword starts here and another one follows it."""
        here, following = self.locks[position], self.locks[position + 1 :]
        if here == FREE:
            return following[:1] == (FREE,)
        return self.starts_part(position) and any(lock not in (here, FREE, ENDING) for lock in following)

    def starts_part(self, position: int) -> bool:
        """Whether a given part starts at a position."""
        here = self.locks[position]
        return here >= 0 and (position == 0 or self.locks[position - 1] != here)

    def _swapped(self, position: int) -> tuple[int, int, int, int]:
        """Start and end of the two spans that change places."""
        if not self.can_swap(position):
            raise ValueError(f"nothing can be swapped at {position} of {self.words}")
        if self.locks[position] == FREE:
            return position, position + 1, position + 1, position + 2
        end = self._end_of_lock(position)
        start = next(i for i in range(end, len(self)) if self.locks[i] >= 0)
        return position, end, start, self._end_of_lock(start)

    def _end_of_lock(self, start: int) -> int:
        return next((i for i in range(start, len(self)) if self.locks[i] != self.locks[start]), len(self))
