"""Sentence, Constraints, Template, Edit, Action: the vocabulary of the whole program.

A sentence is a sequence of words. Each word is free or locked to a constraint. Each gap between words is open or
closed. Writing with keywords and filling a template are the same task: only the locks and the gaps differ.
"""

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from redraft import checks, text
from redraft.edit import Action as Action
from redraft.edit import Edit as Edit
from redraft.errors import ConstraintError
from redraft.language import Keyword as Keyword
from redraft.language import keyword_texts as keyword_texts
from redraft.locked import ENDING as ENDING
from redraft.locked import FREE as FREE
from redraft.locked import Sentence as Sentence
from redraft.parts import Part as Part
from redraft.phrases import BLANK as BLANK
from redraft.phrases import (
    NumWords,
    check_ending,
    check_size,
    is_listed,
    listed_words,
    lowered,
    occurs_in_any_order,
    occurs_in_order,
    parse_keyword,
    respelled,
)
from redraft.phrases import Order as Order
from redraft.phrases import Template as Template
from redraft.phrases import clean as clean
from redraft.phrases import contains as contains
from redraft.phrases import num_words as num_words

_CLAUSE_ENDS = (".", "?", "!")


@dataclass(frozen=True, init=False)
class Constraints:
    """What a sentence must and must not contain. Give keywords or a template.

    Constraints that no sentence can meet, and values of the wrong type, raise a ``ConstraintError``.

    Examples:
        >>> words = redraft.Constraints(["dog", "old park"], ban=["very"], min_words=5)
        >>> words.met_by("A dog ran through the old park .".split())
        True
        >>> template = redraft.Constraints(template="The mayor said ___ in the city .")
        >>> template.met_by("The mayor said that crime is rare in the city .".split())
        True

    Attributes:
        keywords: Words or phrases. The words of a phrase stay together. ``run~`` is any form of a word, ``car|bus``
            one of several, ``?word`` is welcome but not required; any other text is kept verbatim.
        template: Text with blanks (``___``). Each blank is filled with any number of words, ``___{3}`` with three,
            ``___{2,4}`` with two to four.
        lengths: The number of words of each blank, for recipes that need to know it; the others ignore it.
        order: "given" or "any": whether the keywords must keep their order.
        ban: Words or phrases that must not occur, in upper or lower case.
        min_words: Minimum number of words, not counting punctuation. By default, six more than the keywords are
            preferred but not required.
        max_words: Maximum number of words, counting punctuation as in the paper. The default is 25, or 10 more than are
            given or required.
        allow: The only words that may be used (``run~`` for all forms), the given ones among them; None for all words.
        endings: What the last word may be; empty for any. A template that ends with known words ends with those.
    """

    keywords: tuple[str, ...]
    template: str | None
    order: Order
    ban: tuple[str, ...]
    min_words: int | None
    max_words: int | None
    endings: tuple[str, ...]
    lengths: tuple[int, ...] | None
    allow: tuple[str, ...] | None

    def __init__(
        self,
        keywords: Sequence[Keyword] = (),
        template: str | None = None,
        order: Order | str = Order.GIVEN,
        ban: Sequence[str] = (),
        min_words: int | None = None,
        max_words: int | None = None,
        endings: Sequence[str] = _CLAUSE_ENDS,
        lengths: Sequence[int] | None = None,
        allow: Sequence[str] | None = None,
        *,
        banned: Sequence[str] | None = None,
    ):
        if banned is not None:
            warnings.warn("banned is now ban: Constraints(ban=...)", DeprecationWarning, stacklevel=2)
            ban = banned
        if template is not None:
            checks.check_text("the template", template, ConstraintError)
        for name, count, least in (("min_words", min_words, 0), ("max_words", max_words, 1)):
            if count is not None:
                checks.check_count(name, count, least, ConstraintError)
        fields = {
            "keywords": keyword_texts(keywords),
            "template": template,
            "order": Order.of(order),
            "ban": checks.texts("banned words", ban, ConstraintError),
            "min_words": min_words,
            "max_words": max_words,
            "endings": checks.texts("endings", endings, ConstraintError),
            "allow": None if allow is None else checks.texts("allowed words", allow, ConstraintError),
            "lengths": None if lengths is None else checks.counts("lengths", lengths, 1, ConstraintError),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the class is frozen
        self._refuse_impossible()

    def _refuse_impossible(self) -> None:
        """Raise an error if no sentence can meet the constraints."""
        if self.keywords and self.template is not None:
            raise ConstraintError("give keywords or a template, not both")
        if not self.keywords and self.template is None:
            raise ConstraintError("nothing to write about: give at least one keyword, or a template with a blank")
        if self.lengths is not None and not (self._template and self._template.takes(self.lengths)):
            raise ConstraintError("lengths are numbers of words: one for each blank of a template that has none itself")
        if all(part.is_optional for part in self.parts) and self.parts:
            raise ConstraintError("every keyword is optional; leave out the ? of at least one")
        check_size(self.locked_words)
        for ending in self.endings:
            check_ending(ending)
        if self.has_ending and not self.allowed_endings:
            raise ConstraintError(
                f"every ending of {' '.join(self.endings)} is banned; ban less, or allow other endings"
            )
        if self.max_words is not None and self._least > self.max_words:
            raise ConstraintError(
                f"what is given needs {self._least} places with punctuation, more than the maximum of {self.max_words}"
            )
        if self.min_words is not None and self.min_words > self._most:
            raise ConstraintError(
                f"the minimum of {self.min_words} words does not fit: with punctuation at most {self.limit} are allowed"
            )

    @property
    def banned(self) -> tuple[str, ...]:
        """The old name of ``ban``."""
        warnings.warn("Constraints.banned is now Constraints.ban", DeprecationWarning, stacklevel=2)
        return self.ban

    @cached_property
    def _template(self) -> Template | None:
        return None if self.template is None else Template.parse(self.template)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What must occur, without the realisations that are banned or not allowed."""
        if self._template is not None:
            given = self._template.parts
        else:
            given = tuple(parse_keyword(keyword, f"keyword {i}") for i, keyword in enumerate(self.keywords, 1))
        return self._all_listed(tuple(map(self._not_banned, given)))

    @cached_property
    def listed_words(self) -> frozenset[str] | None:
        """The words of which the sentence may consist, in lower case; None for all words."""
        if self.allow is None:
            return None
        return listed_words(self.allow)

    def _all_listed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts with their listed realisations."""
        listed = self.listed_words
        if listed is None:
            return parts
        left = tuple(part.only(lambda words: all(is_listed(word, listed) for word in words)) for part in parts)
        pairs = zip(parts, left, strict=True)
        if missing := [_unlisted(part, listed) for part, kept in pairs if not kept.realisations]:
            raise ConstraintError(
                f"given but not on the list of allowed words: {', '.join(dict.fromkeys(missing))}; add them to the list"
            )
        return left

    def _not_banned(self, part: Part) -> Part:
        for banned, phrase in zip(self.ban, self._banned_phrases, strict=True):
            left = part.only(lambda words, phrase=phrase: not contains(lowered(words), phrase))  # type: ignore[misc]
            if not left.realisations or (left != part and not part.has_lemmas):
                raise ConstraintError(f"{banned!r} is banned and required at the same time")
            part = left
        return part

    @cached_property
    def has_forms(self) -> bool:
        """Whether a part may be written in several ways or left out."""
        return not all(part.is_plain for part in self.parts)

    def realisations_at(self, sentence: Sentence, position: int) -> tuple[tuple[str, ...], ...]:
        """The ways to write the part that starts at a position, which leave the sentence within its limit.

        Examples:
            >>> words = redraft.Constraints(["dog|puppy"])
            >>> words.realisations_at(words.start(), 0)
            (('dog',), ('puppy',))
        """
        start, end = sentence.span(Action.VARY, position)
        room = self.limit - len(sentence) + end - start
        return tuple(one for one in self.parts[sentence.locks[position]].realisations if len(one) <= room)

    @property
    def locked_words(self) -> tuple[str, ...]:
        """The words of the required parts, each in its first realisation."""
        return tuple(itertools.chain.from_iterable(part.words for part in self.parts if not part.is_optional))

    @cached_property
    def _banned_phrases(self) -> tuple[tuple[str, ...], ...]:
        phrases = tuple(tuple(lowered(text.tokenise(clean(banned, "a banned word")))) for banned in self.ban)
        if not all(phrases):
            raise ConstraintError("a banned word is empty; give a word or a phrase")
        return phrases

    @cached_property
    def _banned_sequences(self) -> tuple[tuple[str, ...], ...]:
        return tuple(phrase for phrase in self._banned_phrases if len(phrase) > 1)

    @cached_property
    def banned_words(self) -> frozenset[str]:
        """Banned single words in lower case, which are never proposed."""
        return frozenset(phrase[0] for phrase in self._banned_phrases if len(phrase) == 1)

    @cached_property
    def allowed_endings(self) -> tuple[str, ...]:
        """The endings that are not banned."""
        return tuple(ending for ending in self.endings if ending.lower() not in self.banned_words)

    @property
    def has_ending(self) -> bool:
        """Whether the last word is chosen from ``endings``."""
        return bool(self.endings) and (self._template is None or self._template.closes_blank)

    @property
    def fixes_lengths(self) -> bool:
        """Whether the template says how many words a blank holds. An ending that is not given is one of them."""
        return self._template is not None and any(blank.most is not None for blank in self._template.blanks)

    @property
    def _blanks(self) -> tuple[NumWords, ...]:
        return (NumWords(),) if self._template is None else self._template.blanks

    @property
    def room(self) -> tuple[NumWords, ...]:
        """The numbers of words before each part, and after the last."""
        template = self._template
        if template is None:
            return (NumWords(),) * (len(self.parts) + 1)
        closed = (NumWords(0, 0),)
        return (() if template.opens_blank else closed) + template.blanks + (() if template.closes_blank else closed)

    def _num_given(self, choose: Callable[[Iterable[int]], int]) -> int:
        """The number of given words, by the shortest or the longest realisations."""
        return sum(choose(map(len, part.realisations)) for part in self.parts if not part.is_optional)

    @property
    def _least(self) -> int:
        blanks = self._blanks
        return self._num_given(min) + sum(num.least for num in blanks) + (self.has_ending and not blanks[-1].least)

    @property
    def limit(self) -> int:
        """Maximum number of words, counting punctuation."""
        blanks = self._blanks
        most = self._num_given(max) + sum(num.most or 0 for num in blanks) + (self.has_ending and not blanks[-1].least)
        if all(num.most is not None for num in blanks):
            return most if self.max_words is None else min(most, self.max_words)
        return self.max_words if self.max_words is not None else max(25, most + 10, (self.min_words or 0) + 10)

    @property
    def _most(self) -> int:
        """Maximum number of words that fit into the limit, not counting punctuation."""
        is_mark = self.has_ending and not any(map(text.is_word, self.allowed_endings))
        return self.limit - is_mark - (len(self.locked_words) - num_words(self.locked_words))

    @property
    def preferred_words(self) -> int:
        """Drafts with at least this many words are preferred. The authors' later code adds six to the keywords."""
        if self.min_words is not None:
            return self.min_words
        return 0 if self._template is not None else min(num_words(self.locked_words) + 6, self.limit - 1)

    @property
    def respelled(self) -> list[tuple[str, str]]:
        """Given text that is written with a space added, because it is several words here, such as "US$5"."""
        return respelled(chunk for part in self.parts for chunk in part.given_chunks)

    def start(self, rng: np.random.Generator | None = None) -> Sentence:
        """Return the shortest draft: the locked words alone. With ``rng``, keywords in any order are shuffled.

        Examples:
            >>> redraft.Constraints(["dog", "old park"]).start().text
            'Dog old park.'
        """
        if self.fixes_lengths:
            raise ConstraintError("this recipe fills blanks with any number of words; leave the number of ___{3} out")
        numbers = [number for number, part in enumerate(self.parts) if not part.is_optional]
        if rng is not None and self.order is Order.ANY and self._template is None:
            numbers = [numbers[i] for i in rng.permutation(len(numbers))]
        return self._laid_out(numbers)

    def outline(self) -> Sentence:
        """All given words in their first realisation, optional ones included, without the words of blanks.

        Examples:
            >>> redraft.Constraints(["run~", "?fast"]).outline().words
            ('run', 'fast', '.')
        """
        return self._laid_out(range(len(self.parts)))

    def _laid_out(self, numbers: Iterable[int]) -> Sentence:
        """The sentence of the parts with these numbers."""
        words: list[str] = []
        locks: list[int] = []
        gaps: list[bool] = [self._template is None or self._template.opens_blank]
        for number in numbers:
            part = self.parts[number].words
            words += part
            locks += [number] * len(part)
            gaps += [False] * (len(part) - 1) + [True]
        gaps[-1] = self._template is None or self._template.closes_blank
        if self.has_ending:
            words.append(self.allowed_endings[0])
            locks.append(ENDING)
            gaps.append(False)
        return Sentence(tuple(words), tuple(locks), tuple(gaps))

    def shortfall(self, sentence: Sentence, length: int | None = None) -> int:
        """Count the words that are missing to the preferred number, plus the empty blanks of a template.

        ``length`` is the number of words that the target prefers; it replaces a larger default.

        Examples:
            >>> words = redraft.Constraints(["dog"], min_words=4)
            >>> words.shortfall(words.start())
            3
        """
        preferred = self.preferred_words
        if length is not None and self.min_words is None:
            preferred = min(preferred, length)
        missing = max(0, preferred - num_words(sentence.words))
        return missing if self._template is None else missing + sentence.num_empty_gaps

    def has_no_banned_phrase(self, words: Sequence[str]) -> bool:
        """Check that no banned phrase of several words occurs. Single banned words are never proposed.

        Examples:
            >>> words = redraft.Constraints(["dog"], ban=["of course"])
            >>> words.has_no_banned_phrase("Of course the dog barks .".split())
            False
        """
        if not self._banned_sequences:
            return True
        plain = lowered(words)
        return not any(contains(plain, phrase) for phrase in self._banned_sequences)

    def meets_hard_limits(self, words: Sequence[str]) -> bool:
        """Check the minimum length and the banned phrases, which locks and gaps do not guarantee.

        Examples:
            >>> redraft.Constraints(["dog"], min_words=4).meets_hard_limits("A dog barks .".split())
            False
        """
        return (self.min_words is None or num_words(words) >= self.min_words) and self.has_no_banned_phrase(words)

    def met_by(self, words: Sequence[str]) -> bool:
        """Check whether a finished sentence meets every constraint.

        Examples:
            >>> redraft.Constraints(["dog"]).met_by("A dog barks .".split())
            True
        """
        return not self.unmet(words)

    def _has_given_words(self, shown: Sequence[str]) -> bool:
        if self._template is not None:
            return self._template.occurs_in(shown)
        return (occurs_in_any_order if self.order is Order.ANY else occurs_in_order)(self.parts, shown)

    def _has_empty_blank(self, shown: Sequence[str]) -> bool:
        """Whether a blank is empty. An ending that is not given fills a blank only if the template counts its words."""
        if self._template is None:
            return False
        is_apart = bool(shown) and self.has_ending and self._template.blanks[-1].most is None
        own = shown[:-1] if is_apart and shown[-1] in self.endings else shown
        return not self._template.occurs_in(own, fewest=1)

    def unmet(self, words: Sequence[str]) -> list[str]:
        """List the constraints that a finished sentence does not meet, in words; empty if all are met.

        Examples:
            >>> redraft.Constraints(["dog", "ball"], min_words=4).unmet("A dog barks .".split())
            ['the given words', 'at least 4 words']
        """
        shown, failed = text.surface(words), []
        if not self._has_given_words(shown):
            failed.append("the given words")
        elif self._has_empty_blank(shown):
            failed.append("words in every blank")
        if any(contains(lowered(shown), phrase) for phrase in self._banned_phrases):
            failed.append("no banned words")
        if self.listed_words is not None and not all(is_listed(word, self.listed_words) for word in words):
            failed.append("only allowed words")
        if self.min_words is not None and num_words(words) < self.min_words:
            failed.append(f"at least {self.min_words} words")
        if len(words) > self.limit:
            failed.append(f"at most {self.limit} words")
        # "U.S." ends a sentence without another full stop.
        if self.has_ending and not (words and (words[-1] in self.endings or words[-1][-1] in self.endings)):
            failed.append(f"an ending of {' '.join(self.endings)}")
        return failed


def _unlisted(part: Part, listed: frozenset[str]) -> str:
    """What to add to a list so that a part may be written: its words that are missing, or all it was given as."""
    if len(part.realisations) > 1:
        return part.written
    return ", ".join(word for word in part.words if not is_listed(word, listed))
