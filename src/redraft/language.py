r"""The language in which given words are written: parsing, printing, JSON. The page docs/constraints.md defines it.

    run~  run~VERB                  any form of a word, or any form as a verb
    car|automobile|"sports car"     one of several words; quotation marks keep a phrase together
    ?quickly  ?red|green            welcome, but not required
    \~ \| \? \" \\                  the character itself

A phrase is a sequence of choices, most of which have a single option: a word.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from redraft import checks, text
from redraft.errors import ConstraintError

PARTS_OF_SPEECH = ("VERB", "NOUN", "ADJ", "ADV")
_ESCAPED = re.compile(r'\\([~|?"\\])')
_LEMMA = re.compile(r"((?:\\.|[^~\\])+)~([A-Za-z]*)")
_PLAIN = re.compile(r"(?:\\\S|[^\s|\\])*\\?")  # up to a space or a "|"
_CHUNK = re.compile(r"\S+")
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')
_JSON_KEYS = ({"any_of"}, {"lemma"}, {"lemma", "pos"}, {"optional"})


@dataclass(frozen=True, slots=True)
class Term:
    """A word as it is written, or the lemma of a word in any of its forms. A term has no space."""

    word: str
    is_lemma: bool = False
    pos: str | None = None  # one of PARTS_OF_SPEECH; None for any


@dataclass(frozen=True, slots=True)
class Choice:
    """Options for one place of a phrase, each of one or several terms."""

    options: tuple[tuple[Term, ...], ...]
    is_optional: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a word as it is written."""
        return len(self.options) == 1 and not self.is_optional and not any(term.is_lemma for term in self.options[0])


Phrase = tuple[Choice, ...]
Keyword = str | Mapping[str, Any]  # a text, or a JSON object


class _Place(NamedTuple):
    """Where an error is: what is parsed, and its text."""

    what: str
    given: str

    def refuse(self, at: int, why: str) -> NoReturn:
        shown = self.given if len(self.given) <= 60 else f"{self.given[:57]}..."
        raise ConstraintError(f"{self.what} {shown!r}, character {at + 1}: {why}")


def parse(given: str, what: str) -> Phrase:
    """The choices of a phrase. ``what`` names it in errors.

    A "~" has its meaning only at the end of a word, "?" only before one, and "|" only within one: text without
    letters and digits, such as " | ", stands for itself.
    """
    place, at, found = _Place(what, given), 0, []
    while chunk := _CHUNK.search(given, at):
        choice, at = _choice(place, chunk)
        found.append(choice)
    return tuple(found)


def _choice(place: _Place, chunk: re.Match[str]) -> tuple[Choice, int]:
    """The choice that begins with a chunk of text without spaces, and where it ends."""
    at, shown = chunk.start(), chunk[0]
    if not text.is_word(_ESCAPED.sub("", shown)):
        return _word(shown), chunk.end()
    first_quoted = _QUOTED.match(place.given, at)
    if first_quoted is not None and place.given[first_quoted.end() : first_quoted.end() + 1] != "|":
        return Choice((tuple(_terms(place, chunk)),)), chunk.end()  # quotation marks of the text itself
    is_optional = shown.startswith("?")
    options: list[tuple[Term, ...]] = []
    at += is_optional
    while True:
        option, at = _option(place, at, is_first=not is_optional and not options)
        options.append(option)
        if place.given[at : at + 1] != "|":
            return Choice(tuple(dict.fromkeys(options)), is_optional), at
        at += 1


def _option(place: _Place, at: int, *, is_first: bool) -> tuple[tuple[Term, ...], int]:
    """The option at a place, and where it ends."""
    if place.given[at : at + 1] == '"' and (quoted := _QUOTED.match(place.given, at)):
        if place.given[quoted.end() : quoted.end() + 1].strip(" |\t\n"):
            place.refuse(quoted.end(), "a space or | must follow the quotation mark")
        terms = [term for chunk in _CHUNK.finditer(place.given, *quoted.span(1)) for term in _terms(place, chunk)]
        if not terms:
            place.refuse(at, "there is nothing between the quotation marks")
        return tuple(terms), quoted.end()
    if place.given[at : at + 1] == '"' and not is_first:
        place.refuse(at, 'the quotation mark is not closed; write \\" for the character itself')
    plain = _PLAIN.match(place.given, at)
    if plain is None or not plain[0]:
        place.refuse(at, "an alternative is empty; write \\| or \\? for the character itself")
    if plain[0].startswith("?") and not is_first:
        place.refuse(at, "? makes all alternatives optional; write it once, before the first, or \\? for the character")
    return tuple(_terms(place, plain)), plain.end()


def _terms(place: _Place, found: re.Match[str]) -> Iterator[Term]:
    """The term of a text without spaces."""
    if "|" in re.sub(r"\\.", "", found[0]) and text.is_word(found[0]):
        place.refuse(found.start() + found[0].index("|"), "alternatives cannot stand within quotation marks")
    lemma = _LEMMA.fullmatch(found[0])
    if lemma is None:
        yield Term(_unescaped(found[0]))
        return
    pos = lemma[2].upper()
    if pos and pos not in PARTS_OF_SPEECH:
        known = ", ".join(PARTS_OF_SPEECH)
        place.refuse(
            found.start() + lemma.start(2),
            f"{lemma[2]!r} is no part of speech; choose one of {known}, or write \\~ for the character itself",
        )
    yield Term(_unescaped(lemma[1]), True, pos or None)


def _word(shown: str) -> Choice:
    return Choice(((Term(_unescaped(shown)),),))


def _unescaped(shown: str) -> str:
    return _ESCAPED.sub(r"\1", shown)


def write(phrase: Phrase) -> str:
    """The text of a phrase, of which ``parse`` makes the same phrase again."""
    return " ".join(map(_write_choice, phrase))


def _write_choice(choice: Choice) -> str:
    return "?" * choice.is_optional + "|".join(map(_write_option, choice.options))


def _write_option(terms: Sequence[Term]) -> str:
    written = " ".join(map(_write_term, terms))
    return written if len(terms) == 1 else f'"{written}"'


def _write_term(term: Term) -> str:
    word = escaped(term.word)
    return f"{word}~{term.pos or ''}" if term.is_lemma else word


def escaped(word: str) -> str:
    """A text that stands for itself, whatever characters it has."""
    return re.sub(r'([~|?"\\])', r"\\\1", word)


def split_line(line: str) -> list[str]:
    """The words and phrases of a line. Quotation marks keep a phrase together, and may stand within alternatives."""
    place, at, found = _Place("the line", line.rstrip("\r\n")), 0, []
    while chunk := _CHUNK.search(place.given, at):
        item, at = _item(place, chunk.start())
        found.append(item)
    return found


def _item(place: _Place, begin: int) -> tuple[str, int]:
    at = begin
    if place.given[at] == '"' and (quoted := _closed(place, at)) and quoted[1].strip():
        if place.given[quoted.end() : quoted.end() + 1] != "|":
            return quoted[1], quoted.end()
        at = quoted.end()
    while at < len(place.given) and not place.given[at].isspace():
        opens = place.given[at] == '"' and place.given[at - 1] in "|?" and at > begin
        at = _closed(place, at).end() if opens else at + (2 if place.given[at] == "\\" else 1)
    return place.given[begin:at], at


def _closed(place: _Place, at: int) -> re.Match[str]:
    """The text between the quotation mark at a place and the one that closes it."""
    quoted = _QUOTED.match(place.given, at)
    if quoted is None:
        place.refuse(at, 'the quotation mark is not closed; write \\" for the character itself')
    return quoted


def from_json(given: object, what: str) -> str:
    """The text of a keyword from JSON: a text, or an object with any_of, lemma (and pos), or optional."""
    if isinstance(given, str):
        return given
    return write((_choice_of(given, what),))


def _choice_of(given: object, what: str) -> Choice:
    """A single choice from JSON."""
    if isinstance(given, str):
        return _single(parse(given, what), what)
    if not isinstance(given, Mapping) or set(given) not in _JSON_KEYS:
        raise ConstraintError(
            f'{what} must be a string, {{"any_of": [...]}}, {{"lemma": ..., "pos": ...}} or {{"optional": ...}}, '
            f"not {given!r}"
        )
    if "lemma" in given:
        return Choice(((_lemma(given, what),),))
    if "optional" in given:
        return Choice(_choice_of(given["optional"], what).options, is_optional=True)
    if not isinstance(given["any_of"], list | tuple) or not given["any_of"]:
        raise ConstraintError(f"{what}: any_of must be a list of alternatives, not {given['any_of']!r}")
    choices = [_choice_of(one, what) for one in given["any_of"]]
    if any(one.is_optional for one in choices):
        raise ConstraintError(f'{what}: an alternative cannot be optional; write {{"optional": {{"any_of": [...]}}}}')
    return Choice(tuple(dict.fromkeys(option for one in choices for option in one.options)))


def _lemma(given: Mapping[str, Any], what: str) -> Term:
    word, pos = given["lemma"], given.get("pos")
    if not isinstance(word, str) or len(word.split()) != 1:
        raise ConstraintError(f"{what}: lemma must be a single word, not {word!r}")
    if pos is not None and pos not in PARTS_OF_SPEECH:
        raise ConstraintError(f"{what}: pos must be one of {', '.join(PARTS_OF_SPEECH)}, not {pos!r}")
    return Term(word.strip(), True, pos)


def _single(phrase: Phrase, what: str) -> Choice:
    """A phrase as a single choice: one that has several words must have no alternatives within it."""
    if len(phrase) == 1:
        return phrase[0]
    if not phrase or any(len(one.options) > 1 or one.is_optional for one in phrase):
        raise ConstraintError(f"{what}: {write(phrase)!r} must be words without | and ? here")
    return Choice((tuple(term for one in phrase for term in one.options[0]),))


def keyword_texts(keywords: object) -> tuple[str, ...]:
    """Keywords as texts, also those that are given as JSON objects."""
    if isinstance(keywords, Sequence) and not isinstance(keywords, str):
        keywords = [
            from_json(one, f"keyword {i}") if isinstance(one, Mapping) else one for i, one in enumerate(keywords, 1)
        ]
    return checks.texts("keywords", keywords, ConstraintError)
