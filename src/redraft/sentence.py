"""Sentence, Constraints, Template, Edit, Action: the vocabulary of the whole program.

A sentence is a sequence of words. Each word is free or locked to a constraint, each gap between words is open or
closed. Writing with keywords and filling a template are the same thing with other locks and gaps.
"""

import enum
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from redraft import text
from redraft.errors import ConstraintError

BLANK = "___"
_BLANK = re.compile(r"_{3,}")
_MAX_LOCKED = 1000  # words; far beyond any sentence, and a guard against a file given by mistake
_MAX_LETTERS = 200  # of one word
_CLAUSE_ENDS = (".", "?", "!")


class Action(enum.Enum):
    """How a draft may be revised. The order is that of the rows of every prior table."""

    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"
    SWAP = "swap"  # beyond the paper: neighbouring free words, or keywords whose order is free


class Order(enum.Enum):
    """Whether keywords must occur as given or in any order."""

    GIVEN = "given"
    ANY = "any"

    @classmethod
    def named(cls, name: object) -> "Order":
        """The order of a name that a person gave."""
        if name not in [order.value for order in cls]:
            raise ConstraintError(f"order must be 'given' or 'any', not {name!r}")
        return cls(name)


FREE = -1  # the lock of a word that no constraint holds; a constraint's words carry its index
ENDING = -2  # the lock of the last word where the constraints say how a sentence may end


@dataclass(frozen=True, slots=True)
class Edit:
    """One revision: REPLACE the word at ``position``, INSERT before it, DELETE it, or SWAP it with what follows."""

    action: Action
    position: int
    word: str | None = None

    def __post_init__(self) -> None:
        takes_word = self.action in (Action.REPLACE, Action.INSERT)
        if (self.word is not None) != takes_word:
            raise ValueError(f"{self.action} takes {'a' if takes_word else 'no'} word")


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
        """Open gaps with no free word beside them: the blanks of a template that are not filled yet."""
        beside = zip((None, *self.locks), (*self.locks, None), strict=True)
        return sum(is_open and FREE not in locks for is_open, locks in zip(self.open_gaps, beside, strict=True))

    def span(self, action: Action, position: int) -> tuple[int, int]:
        """The stretch of words that an action at a position puts others in place of."""
        if action is Action.SWAP:
            first, _, _, last = self._swapped(position)
            return first, last
        return position, position + (action is not Action.INSERT)

    def filling(self, edit: Edit) -> tuple[str, ...]:
        """What comes in place of the span."""
        if edit.action is Action.SWAP:
            a, b, c, d = self._swapped(edit.position)
            return self.words[c:d] + self.words[b:c] + self.words[a:b]
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
        """Whether two free words meet here, or a keyword starts here and another follows it."""
        here, following = self.locks[position], self.locks[position + 1 :]
        if here == FREE:
            return following[:1] == (FREE,)
        starts = position == 0 or self.locks[position - 1] != here
        return here >= 0 and starts and any(lock not in (here, FREE, ENDING) for lock in following)

    def _swapped(self, position: int) -> tuple[int, int, int, int]:
        """Start and end of the two stretches that change places."""
        if not self.can_swap(position):
            raise ValueError(f"nothing can be swapped at {position} of {self.words}")
        if self.locks[position] == FREE:
            return position, position + 1, position + 1, position + 2
        end = self._end_of_lock(position)
        start = next(i for i in range(end, len(self)) if self.locks[i] >= 0)
        return position, end, start, self._end_of_lock(start)

    def _end_of_lock(self, start: int) -> int:
        return next((i for i in range(start, len(self)) if self.locks[i] != self.locks[start]), len(self))


@dataclass(frozen=True)
class Template:
    """A sentence with blanks: the known parts in order, and whether a blank opens or closes it."""

    parts: tuple[tuple[str, ...], ...]
    opens_blank: bool
    closes_blank: bool

    @classmethod
    def parse(cls, template: str) -> "Template":
        pieces = [tuple(text.tokenise(piece)) for piece in _BLANK.split(clean(template, "the template"))]
        if len(pieces) == 1:
            raise ConstraintError(f"the template has no blank; mark each with {BLANK}")
        return cls(tuple(piece for piece in pieces if piece), not pieces[0], not pieces[-1])


def clean(given: str, what: str) -> str:
    """Composed Unicode, so that "é" is one letter however it was typed; control characters are refused."""
    if bad := next((c for c in given if unicodedata.category(c) in ("Cc", "Cs") and not c.isspace()), None):
        raise ConstraintError(f"{what} contains the control character U+{ord(bad):04X}; remove it")
    return unicodedata.normalize("NFC", given)


def _phrase(given: str, what: str) -> tuple[str, ...]:
    words = tuple(text.tokenise(clean(given, what)))
    if not words:
        raise ConstraintError(f"{what} is empty; give a word or a phrase")
    if not any(text.is_word(word) for word in words):
        raise ConstraintError(f"{what} {given!r} is only punctuation; give a word or a phrase")
    if BLANK in given:
        raise ConstraintError(f"{what} {given!r} has a blank; give it as a template instead")
    return words


def num_words(words: Iterable[str]) -> int:
    """Words as a person counts them: punctuation and clitics ('s, 't) do not count."""
    return sum(text.is_word(word) and not text.is_clitic(word) for word in words)


@dataclass(frozen=True)
class Constraints:
    """What a sentence must and must not contain. Give keywords or a template; what cannot be met raises at once.

    keywords    words or phrases, each kept verbatim and together
    template    text with blanks (``___``), each to be filled with any number of words
    order       whether the keywords keep their order
    banned      words or phrases that must not occur, in whatever case
    min_words   fewest words, as a person counts them; without it redraft prefers at least six more than the keywords
    max_words   most words, punctuation counted too, as in the paper (default 25, or 10 more than are given or wanted)
    endings     what the last word may be; empty for anything. A template that closes with known words ends with them
    """

    keywords: tuple[str, ...] = ()
    template: str | None = None
    order: Order = Order.GIVEN
    banned: tuple[str, ...] = ()
    min_words: int | None = None
    max_words: int | None = None
    endings: tuple[str, ...] = _CLAUSE_ENDS

    def __post_init__(self) -> None:
        for name in ("keywords", "banned", "endings"):
            if isinstance(getattr(self, name), str):
                raise ConstraintError(f"{name} are several texts; give them as a tuple, not as one text")
        if self.keywords and self.template is not None:
            raise ConstraintError("give keywords or a template, not both")
        if not self.keywords and self.template is None:
            raise ConstraintError("nothing to write about: give at least one keyword, or a template with a blank")
        if (num_locked := len(self.locked_words)) > _MAX_LOCKED:
            raise ConstraintError(f"{num_locked:,} given words are too many for one sentence (at most {_MAX_LOCKED:,})")
        if long := next((word for word in self.locked_words if len(word) > _MAX_LETTERS), None):
            raise ConstraintError(f"{long[:20]}... has {len(long):,} letters; no word has more than {_MAX_LETTERS}")
        for ending in self.endings:
            if list(text.tokenise(clean(ending, "an ending"))) != [ending]:
                raise ConstraintError(f"the ending {ending!r} is not one word or mark; give each by itself")
        if self.has_ending and not self.allowed_endings:
            raise ConstraintError(
                f"every ending of {' '.join(self.endings)} is banned; ban less, or allow other endings"
            )
        if self.max_words is not None and self._least > self.max_words:
            raise ConstraintError(
                f"the given words need {self._least} places with punctuation, more than the maximum of {self.max_words}"
            )
        if self.min_words is not None and self.min_words > self._most:
            raise ConstraintError(
                f"the minimum of {self.min_words} words does not fit: with punctuation at most {self.limit} are allowed"
            )
        for banned, phrase in zip(self.banned, self._banned_phrases, strict=True):
            if any(contains(_lowered(part), phrase) for part in self._parts):
                raise ConstraintError(f"{banned!r} is banned and required at the same time")

    @cached_property
    def _template(self) -> Template | None:
        return None if self.template is None else Template.parse(self.template)

    @cached_property
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        """The locked spans."""
        if self._template is not None:
            return self._template.parts
        return tuple(_phrase(keyword, f"keyword {i}") for i, keyword in enumerate(self.keywords, 1))

    @property
    def locked_words(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(self._parts))

    @cached_property
    def _banned_phrases(self) -> tuple[tuple[str, ...], ...]:
        phrases = tuple(tuple(_lowered(text.tokenise(clean(banned, "a banned word")))) for banned in self.banned)
        if not all(phrases):
            raise ConstraintError("a banned word is empty; give a word or a phrase")
        return phrases

    @cached_property
    def _banned_sequences(self) -> tuple[tuple[str, ...], ...]:
        return tuple(phrase for phrase in self._banned_phrases if len(phrase) > 1)

    @cached_property
    def banned_words(self) -> frozenset[str]:
        """Single words, lowered, that may never be proposed."""
        return frozenset(phrase[0] for phrase in self._banned_phrases if len(phrase) == 1)

    @cached_property
    def allowed_endings(self) -> tuple[str, ...]:
        """The endings that are not banned."""
        return tuple(ending for ending in self.endings if ending.lower() not in self.banned_words)

    @property
    def has_ending(self) -> bool:
        """Whether the last word is redraft's to choose among ``endings``."""
        return bool(self.endings) and (self._template is None or self._template.closes_blank)

    @property
    def _least(self) -> int:
        return len(self.locked_words) + self.has_ending

    @property
    def limit(self) -> int:
        """Most words, punctuation counted."""
        return self.max_words if self.max_words is not None else max(25, self._least + 10, (self.min_words or 0) + 10)

    @property
    def _most(self) -> int:
        """Most words, as a person counts them, that the limit has places for."""
        is_mark = self.has_ending and not any(map(text.is_word, self.allowed_endings))
        return self.limit - is_mark - (len(self.locked_words) - num_words(self.locked_words))

    @property
    def preferred_words(self) -> int:
        """Fewest words of a draft that is preferred; the authors' later code asks for six more than the keywords."""
        if self.min_words is not None:
            return self.min_words
        return 0 if self._template is not None else min(num_words(self.locked_words) + 6, self.limit - 1)

    @property
    def respelled(self) -> list[tuple[str, str]]:
        """What was given without a space and is written with one, since it is several words here: "US$5"."""
        given = itertools.chain.from_iterable(clean(one, "").split() for one in (*self.keywords, self.template or ""))
        written = [(chunk, text.detokenise(text.tokenise(chunk))) for chunk in given if not _BLANK.search(chunk)]
        return [(chunk, shown) for chunk, shown in written if " " in shown]

    def start(self, rng: np.random.Generator | None = None) -> Sentence:
        """The first draft: the locked words alone. With a generator and a free order, keywords are shuffled."""
        spans = list(enumerate(self._parts))
        if rng is not None and self.order is Order.ANY and self._template is None:
            spans = [spans[i] for i in rng.permutation(len(spans))]
        words: list[str] = []
        locks: list[int] = []
        gaps: list[bool] = [self._template is None or self._template.opens_blank]
        for index, part in spans:
            words += part
            locks += [index] * len(part)
            gaps += [False] * (len(part) - 1) + [True]
        gaps[-1] = self._template is None or self._template.closes_blank
        if self.has_ending:
            words.append(self.allowed_endings[0])
            locks.append(ENDING)
            gaps.append(False)
        return Sentence(tuple(words), tuple(locks), tuple(gaps))

    def shortfall(self, sentence: Sentence, length: int | None = None) -> int:
        """How many words a sentence is short of what is preferred; in a template, how many blanks are empty.

        A ``length`` that is wished for elsewhere takes the place of a longer one that nobody asked for.
        """
        preferred = self.preferred_words
        if length is not None and self.min_words is None:
            preferred = min(preferred, length)
        missing = max(0, preferred - num_words(sentence.words))
        return missing if self._template is None else missing + sentence.num_empty_gaps

    def allows(self, words: Sequence[str]) -> bool:
        """Whether no banned phrase of several words occurs; single banned words are never proposed at all."""
        if not self._banned_sequences:
            return True
        lowered = _lowered(words)
        return not any(contains(lowered, phrase) for phrase in self._banned_sequences)

    def permits(self, words: Sequence[str]) -> bool:
        """Whether a sentence has enough words and no banned phrase: all that locks and gaps do not see to."""
        return (self.min_words is None or num_words(words) >= self.min_words) and self.allows(words)

    def met_by(self, words: Sequence[str]) -> bool:
        """Whether a finished sentence meets every constraint. Looks at the words alone, not at locks."""
        return not self.unmet(words)

    def _has_given_words(self, shown: Sequence[str]) -> bool:
        if self._template is not None:
            ends = {"is_begin": not self._template.opens_blank, "is_end": not self._template.closes_blank}
            return _occurs_in_order(self._parts, shown, **ends)
        return (_occurs_in_any_order if self.order is Order.ANY else _occurs_in_order)(self._parts, shown)

    def unmet(self, words: Sequence[str]) -> list[str]:
        """What a finished sentence fails, in words; empty where all is met."""
        shown = text.surface(words)
        lowered = _lowered(shown)
        failed = []
        if not self._has_given_words(shown):
            failed.append("the given words")
        if any(contains(lowered, phrase) for phrase in self._banned_phrases):
            failed.append("no banned words")
        if self.min_words is not None and num_words(words) < self.min_words:
            failed.append(f"at least {self.min_words} words")
        if len(words) > self.limit:
            failed.append(f"at most {self.limit} words")
        if self.has_ending and (not words or words[-1] not in self.endings):
            failed.append(f"an ending of {' '.join(self.endings)}")
        return failed


def _lowered(words: Iterable[str]) -> list[str]:
    return [word.lower() for word in words]


def contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a phrase stands in a row of words, to the letter."""
    return any(tuple(words[i : i + len(phrase)]) == tuple(phrase) for i in range(len(words) - len(phrase) + 1))


def _matches(words: Sequence[str], at: int, phrase: Sequence[str]) -> bool:
    """Whether the phrase stands at a place; the sentence's opening capital is no difference."""
    window = words[at : at + len(phrase)]
    if list(window) == list(phrase):
        return True
    return text.opening(words) is not None and list(window) == text.surface([*words[:at], *phrase])[at:]


def _occurs_in_order(
    parts: Sequence[Sequence[str]], words: Sequence[str], *, is_begin: bool = False, is_end: bool = False
) -> bool:
    """Whether the parts stand one after the other; the first at the begin, the last at the end if that is asked."""
    at = 0
    for number, part in enumerate(parts):
        last = len(words) - len(part)
        places = range(at, last + 1)
        if is_begin and number == 0:
            places = range(0, 1)
        if is_end and number == len(parts) - 1:
            places = range(last, last + 1) if last in places else range(0)
        at = next((i for i in places if _matches(words, i, part)), -1)
        if at < 0:
            return False
        at += len(part)
    return True


def _occurs_in_any_order(parts: Sequence[Sequence[str]], words: Sequence[str]) -> bool:
    """Each part at a place of its own: longest first, the leftmost place that is still free."""
    taken: set[int] = set()
    for part in sorted(parts, key=len, reverse=True):
        spans = (range(i, i + len(part)) for i in range(len(words) - len(part) + 1) if _matches(words, i, part))
        span = next((s for s in spans if taken.isdisjoint(s)), None)
        if span is None:
            return False
        taken.update(span)
    return True
