"""Inputs and drafts as JSON objects."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from redraft import checks
from redraft.errors import InputError
from redraft.language import from_json
from redraft.sentence import Constraints, Order

if TYPE_CHECKING:
    from redraft.drafts import Draft

_TEXTS = ("ban", "endings", "allow")
_NUMBERS = ("min_words", "max_words")
_ABOUT = ("id", "reference", "references")  # copied from an input to its result; the writer does not use them
_KEYS = ("template", "lengths", "order", "keywords", *_TEXTS, *_NUMBERS, *_ABOUT)


def object_of(written: str) -> dict[str, Any]:
    """The JSON object that a text is."""
    try:
        given = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON object ({error})") from error
    if not isinstance(given, dict):
        raise InputError("not a JSON object")
    check_json(given)
    return given


def check_json(given: Mapping[str, Any]) -> None:
    """Refuse an object with half a surrogate pair, which is no Unicode text, or with a number that JSON lacks."""
    try:
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"not Unicode text: it contains a lone surrogate ({error.object[error.start]!r})") from error
    except ValueError as error:
        raise InputError("not a JSON object: NaN and Infinity are no JSON numbers") from error


def constraints_of(given: Mapping[str, Any]) -> Constraints:
    """Constraints from a JSON object. An unknown key or a value of the wrong type is an error that names it."""
    if unknown := [key for key in given if key not in _KEYS]:
        raise InputError(f"unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}")
    if "id" in given:
        checks.check_id(given["id"])
    fields: dict[str, Any] = {}
    for key in _TEXTS:
        if given.get(key) is not None:
            fields[key] = _texts(key, given[key])
    if given.get("keywords") is not None:
        fields["keywords"] = _keywords(given["keywords"])
    for key in _NUMBERS:
        if given.get(key) is not None:
            fields[key] = _count(key, given[key])
    if given.get("template") is not None:
        if not isinstance(given["template"], str):
            raise InputError(f"template must be a string, not {given['template']!r}")
        fields["template"] = given["template"]
    if given.get("lengths") is not None:
        if not isinstance(given["lengths"], list):
            raise InputError(f"lengths must be a list of whole numbers, one for each blank, not {given['lengths']!r}")
        fields["lengths"] = tuple(_count("each of the lengths", length) for length in given["lengths"])
    if given.get("order") is not None:
        fields["order"] = Order.of(given["order"])
    return Constraints(**fields)


def _count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{key} must be a whole number of at least 1, not {value!r}")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list of strings, not {value!r}")
    return tuple(value)


def _keywords(value: Any) -> tuple[str, ...]:
    """Keywords as texts; objects such as {"any_of": [...]} are written in the language of redraft.language."""
    if not isinstance(value, list) or not all(isinstance(item, str | dict) for item in value):
        raise InputError(f"keywords must be a list of strings, not {value!r}")
    return tuple(from_json(item, f"keyword {number}") for number, item in enumerate(value, 1))


def record(draft: "Draft", *, trace: bool) -> dict[str, Any]:
    """A draft as a JSON object."""
    return draft.to_dict(trace=trace)
