"""Requests to write: one table of their fields, by which they are documented and checked.

What a sentence must contain is checked by ``redraft.records``, as in files and on the command line.
"""

import secrets
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redraft import checks
from redraft.drafts import Settings
from redraft.errors import ConstraintError, InputError
from redraft.models.pack import DEFAULT
from redraft.models.pull import SOURCES, is_pulled
from redraft.records import constraints_of
from redraft.sentence import Constraints
from redraft.target import SoftScore, penalise_repetition, power_of, prefer, prefer_length

MOST_BYTES = 256 * 1024  # of a body
MOST_WORDS = 200  # of a sentence; every system takes longer for longer sentences
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "any": object,
}
_MAXIMA = {
    "integer": "maximum",
    "number": "maximum",
    "string": "maxLength",
    "array": "maxItems",
    "object": "maxProperties",
}
_ARTICLES = {"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


class Field(NamedTuple):
    """A field of a request: its type, what it means, and the largest value or length that the server takes."""

    type: str
    description: str
    most: int | None = None

    def schema(self) -> dict[str, Any]:
        """The field in the terms of OpenAPI."""
        most = {} if self.most is None else {_MAXIMA[self.type]: self.most}
        items: dict[str, Any] = {"items": {}} if self.type == "array" else {}
        of_type = {} if self.type == "any" else {"type": self.type}
        return {**of_type, "description": self.description, **most, **items}

    def check(self, name: str, value: object) -> None:
        """Refuse a value of another type, and a value that is too large."""
        is_stray_bool = isinstance(value, bool) and self.type in ("integer", "number")
        if not isinstance(value, _TYPES[self.type]) or is_stray_bool:
            raise InputError(f"{name} must be {_ARTICLES.get(self.type, f'an {self.type}')}, not {value!r}")
        size = value if isinstance(value, int | float) else len(value) if isinstance(value, Sized) else 0
        if self.most is not None and size > self.most:
            of_what = {"string": " characters", "array": " items", "object": " items"}.get(self.type, "")
            raise InputError(f"{name} must be at most {self.most:,}{of_what} on this server, not {size:,}")


_KEYWORDS = Field("array", 'Words and phrases. Each is a string, such as "run~" or "car|bus", or an object.')
_TEMPLATE = Field(
    "string", "Text with blanks: ___ for any number of words, ___{3} for three, ___{2,4} for two to four."
)
_CONSTRAINTS = {
    "ban": Field("array", "Words and phrases that must not occur.", 1000),
    "allow": Field("array", "Words that may be used beside the given ones; without it, all words.", 10_000),
    "endings": Field("array", "What the last word may be."),
    "min_words": Field("integer", "Minimum number of words, not counting punctuation."),
    "max_words": Field("integer", "Maximum number of words, counting punctuation.", MOST_WORDS),
    "id": Field("any", "Any value, which the answer repeats."),
    "reference": Field("any", "Ignored, so that a line of a file is a request."),
    "references": Field("any", "Ignored as well."),
}
_OF_KEYWORDS = {
    "keywords": _KEYWORDS,
    "order": Field("string", '"given" or "any": whether the words keep their order.'),
}
_OF_TEMPLATE = {
    "template": _TEMPLATE,
    "lengths": Field("array", "The number of words of each blank, for recipes that need it."),
}
_SETTINGS = {
    "steps": Field("integer", "Number of revisions to try; by default that of the recipe."),
    "chains": Field("integer", "Number of chains.", 32),
    "num": Field("integer", "Number of different drafts.", 32),
    "spares": Field("integer", "Number of next best drafts after them, which take no more chains.", 32),
    "seed": Field("integer", "The same seed gives the same drafts. Without it, one is drawn; the answer names it."),
    "time_limit": Field("number", "Seconds after which the best draft so far is returned, up to the server's limit."),
    "passes": Field("integer", "Passes over the blanks, instead of steps."),
    "until_settled": Field("boolean", "End a chain once the classifier would leave every word as it is."),
}
_OPENING = {
    "recipe": Field("string", "The system that writes; see /v1/recipes."),
    "pack": Field("string", "The models, by name; see /v1/packs."),
    "temperature": Field("number", "Below 1 for likelier text, above 1 for more varied text.", 100),
    "style": Field("string", "The kind of text that the infiller writes."),
    "context": Field("string", "Text that the sentence follows.", 2000),
    "particles": Field("integer", "Sentences that the infiller writes to choose from.", 256),
    "candidates": Field("integer", "Words to weigh at each step.", 1000),
    "scored": Field("integer", "How many of them a causal model scores.", 1000),
    "kernel": Field("string", '"paper", "cgmh" or "exact".'),
    "generator": Field("string", '"forward", "backward", "both" or "masked".'),
    "target": Field("string", "A causal model that decides: the name of a model that was pulled."),
    "prefer": Field("object", 'Words and the nats by which they are preferred, such as {"river": 2}.', 100),
    "prefer_length": Field("integer", "A number of words to come near to.", MOST_WORDS),
    "repetition_penalty": Field("number", "Nats that each repeated word costs."),
}
_OWN = {
    "number": Field("integer", "Number of the input among those of one seed, as in a file. By default 0."),
    "trace": Field("boolean", "Whether the answer has every revision."),
}
_COMMON = {**_CONSTRAINTS, **_SETTINGS, **_OPENING, **_OWN}
GENERATE = {**_OF_KEYWORDS, **_COMMON}
INFILL = {**_OF_TEMPLATE, **_COMMON}
EXPLAIN = {
    "text": Field("string", "The draft."),
    "keywords": Field("array", "Words of it that must stay."),
    "pack": _OPENING["pack"],
}


@dataclass(frozen=True)
class Opening:
    """The arguments of ``redraft.load`` that a request gives. Requests with equal ones share a writer."""

    pack: str = DEFAULT
    recipe: str | None = None
    style: str | None = None
    context: str = ""
    particles: int | None = None
    candidates: int | None = None
    scored: int | None = None
    kernel: str | None = None
    generator: str | None = None
    target: str | None = None
    prefer: tuple[tuple[str, float], ...] = ()
    prefer_length: int | None = None
    repetition_penalty: float = 0.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        power_of(self.temperature)
        self.soft()
        if self.target is not None and not (self.target in SOURCES and is_pulled(self.target)):
            pulled = ", ".join(name for name in SOURCES if is_pulled(name)) or "none"
            raise InputError(f"this server has no target {self.target!r}; models that were pulled: {pulled}")

    def soft(self) -> list[SoftScore]:
        """The soft scores."""
        scores = [prefer(word, weight) for word, weight in self.prefer]
        if self.prefer_length is not None:
            scores.append(prefer_length(self.prefer_length))
        if self.repetition_penalty:
            scores.append(penalise_repetition(self.repetition_penalty))
        return scores


@dataclass(frozen=True)
class WriteRequest:
    """A valid request to write. Requests with equal openings and settings are written together."""

    constraints: Constraints
    opening: Opening
    settings: Settings  # without a seed
    seed: int
    number: int = 0
    trace: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Opening, Settings]:
        return self.opening, self.settings

    @property
    def num_chains(self) -> int:
        return self.settings.num_chains


@dataclass(frozen=True)
class ExplainRequest:
    """A valid request to explain a draft."""

    text: str
    keywords: tuple[str, ...]
    pack: str

    @property
    def key(self) -> "ExplainRequest":
        return self

    @property
    def num_chains(self) -> int:
        return 1


def write_request(given: Mapping[str, Any], fields: Mapping[str, Field], pack: str, time_limit: float) -> WriteRequest:
    """A request from its JSON object. ``pack`` is that of the server, ``time_limit`` the longest in seconds."""
    found = _checked(given, fields)
    settings = Settings(
        **{name: found[name] for name in _SETTINGS if name in found and name not in ("seed", "time_limit")},
        time_limit=min(time_limit, found.get("time_limit", time_limit)),
    )
    seed, number = found.get("seed", secrets.randbits(32)), found.get("number", 0)
    checks.check_seed(seed)
    checks.check_count("number", number, 0)
    opening = {name: found[name] for name in _OPENING if name in found}
    if "prefer" in opening:
        opening["prefer"] = tuple(opening["prefer"].items())
    constraints = constraints_of({name: found[name] for name in fields if name in found and name not in _NOT_IN_FILES})
    num_words = max(constraints.limit, sum(constraints.lengths or ()))
    if num_words > MOST_WORDS:
        raise ConstraintError(
            f"the sentence may have {num_words:,} words, more than the {MOST_WORDS} that this server writes"
        )
    about = {"id": found["id"]} if "id" in found else {}
    opened = Opening(**{"pack": pack, **opening})
    return WriteRequest(constraints, opened, settings, seed, number, found.get("trace", False), about)


_NOT_IN_FILES = {*_SETTINGS, *_OPENING, *_OWN}


def explain_request(given: Mapping[str, Any], pack: str) -> ExplainRequest:
    """A request to explain from its JSON object."""
    found = _checked(given, EXPLAIN)
    if "text" not in found:
        raise InputError("give the draft to explain as text")
    if len(found["text"].split()) > MOST_WORDS:
        raise InputError(f"the draft has more than {MOST_WORDS} words")
    return ExplainRequest(found["text"], checks.texts("keywords", found.get("keywords", ())), found.get("pack", pack))


def _checked(given: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    """The fields that are not null. An unknown field and a value of the wrong type are errors."""
    if unknown := [name for name in given if name not in fields]:
        raise InputError(f"unknown field {unknown[0]!r}; the fields are {', '.join(fields)}")
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        fields[name].check(name, value)
    return found


def schema(fields: Mapping[str, Field]) -> dict[str, Any]:
    """The JSON schema of a request."""
    properties = {name: one.schema() for name, one in fields.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}
