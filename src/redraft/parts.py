"""A part: what a constraint asks for in one place of a sentence, and the ways in which it may be written."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from redraft import inflect, text
from redraft.errors import ConstraintError
from redraft.language import Choice, Phrase, Term, parse, write

_MOST_REALISATIONS = 1000


@dataclass(frozen=True)
class Part:
    """The realisations of a keyword, or of a known part of a template: one of them must occur in the sentence.

    The first one is what the part is called: the lemma, the first alternative.
    """

    written: str  # in the language of redraft.language
    realisations: tuple[tuple[str, ...], ...]
    is_optional: bool = False

    @classmethod
    def of(cls, given: str, what: str) -> "Part":
        """Parse a part. ``what`` names it in errors."""
        phrase = parse(given, what)
        where = f"{what} {given!r}" if phrase != plain(given) else what
        choices = [_realised(choice, where) for choice in phrase]
        num = 1
        for several in choices:
            num *= len(several)
        if num > _MOST_REALISATIONS:
            raise ConstraintError(f"{where} can be written in {num:,} ways; at most {_MOST_REALISATIONS:,} are allowed")
        found = dict.fromkeys(tuple(itertools.chain(*several)) for several in itertools.product(*choices))
        is_optional = () in found and bool(phrase)
        return cls(write(phrase), tuple(words for words in found if words or not phrase), is_optional)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the first realisation."""
        return self.realisations[0]

    @property
    def is_plain(self) -> bool:
        """Whether it is required, and can be written in one way only."""
        return len(self.realisations) == 1 and not self.is_optional

    @property
    def distinct(self) -> tuple[tuple[str, ...], ...]:
        """Realisations in which no other one is complete before their last word: that one would be read."""
        return tuple(
            words for words in self.realisations if not any(_occurs(other, words[:-1]) for other in self.realisations)
        )

    @property
    def _terms(self) -> list[Term]:
        return [term for one in parse(self.written, "") for option in one.options for term in option]

    @property
    def given_chunks(self) -> list[str]:
        """What was given without spaces, except for lemmas."""
        return [term.word for term in self._terms if not term.is_lemma]

    @property
    def has_lemmas(self) -> bool:
        """Whether inflected forms are among the realisations."""
        return any(term.is_lemma for term in self._terms)

    def only(self, is_allowed: Callable[[tuple[str, ...]], bool]) -> "Part":
        """The part with those of its realisations that are allowed."""
        return Part(self.written, tuple(filter(is_allowed, self.realisations)), self.is_optional)


def _occurs(phrase: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return any(words[i : i + len(phrase)] == phrase for i in range(len(words) - len(phrase) + 1))


def plain(given: str) -> Phrase:
    """Text that stands for itself, as a phrase."""
    return tuple(Choice(((Term(chunk),),)) for chunk in given.split())


def _realised(choice: Choice, where: str) -> list[tuple[str, ...]]:
    """The ways to write a choice; an optional one may be left out."""
    found = [
        tuple(itertools.chain(*several))
        for option in choice.options
        for several in itertools.product(*(_forms(term, where) for term in option))
    ]
    return list(dict.fromkeys([*found, ()] if choice.is_optional else found))


def _forms(term: Term, where: str) -> list[tuple[str, ...]]:
    shown = inflect.forms(term.word, term.pos, where) if term.is_lemma else (term.word,)
    return [tuple(text.tokenise(one)) for one in shown]
