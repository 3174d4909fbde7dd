"""Inputs and drafts as JSON objects."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from redraft.errors import InputError
from redraft.sentence import Constraints, Order

if TYPE_CHECKING:
    from redraft.drafts import Draft

_TEXTS = {"keywords": "keywords", "ban": "banned", "endings": "endings"}
_NUMBERS = ("min_words", "max_words")
_ABOUT = ("id", "reference", "references")  # carried from an input to its result, of no meaning to the writer
_KEYS = ("template", "order", *_TEXTS, *_NUMBERS, *_ABOUT)


def constraints_of(given: Mapping[str, Any]) -> Constraints:
    """Constraints from a JSON object; an unknown key or a value of another type is named."""
    if unknown := [key for key in given if key not in _KEYS]:
        raise InputError(f"unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}")
    fields: dict[str, Any] = {}
    for key, name in _TEXTS.items():
        if given.get(key) is not None:
            fields[name] = _texts(key, given[key])
    for key in _NUMBERS:
        if given.get(key) is not None:
            if not isinstance(given[key], int) or isinstance(given[key], bool) or given[key] < 1:
                raise InputError(f"{key} must be a whole number of at least 1, not {given[key]!r}")
            fields[key] = given[key]
    if given.get("template") is not None:
        if not isinstance(given["template"], str):
            raise InputError(f"template must be a text, not {given['template']!r}")
        fields["template"] = given["template"]
    if given.get("order") is not None:
        fields["order"] = Order.named(given["order"])
    return Constraints(**fields)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list of texts, not {value!r}")
    return tuple(value)


def finite(number: float) -> float | None:
    """The number, or null where it is infinite: JSON has no word for that."""
    return number if math.isfinite(number) else None


def record(draft: "Draft", *, trace: bool) -> dict[str, Any]:
    """A draft as a JSON object."""
    result: dict[str, Any] = {
        "text": draft.text,
        "words": list(draft.words),
        "nll": round(draft.nll, 6),
        "steps": draft.steps,
        "seconds": round(draft.seconds, 3),
        "constraints_met": draft.constraints_met,
        "signature": draft.signature,
    }
    if draft.earlier:
        result["earlier"] = [{"steps": one.steps, "text": one.text, "nll": round(one.nll, 6)} for one in draft.earlier]
    if trace and draft.start is not None:
        start = draft.start
        result["start"] = {"words": start.words, "locks": start.locks, "open_gaps": start.open_gaps}
    if trace and draft.particles:
        result["particles"] = [
            {"text": one.text, "nll": round(one.nll, 6), "weight": round(one.weight, 6)} for one in draft.particles
        ]
    if trace and draft.rewrites:
        result["rewrites"] = [
            {
                "start": one.start,
                "old": list(one.old),
                "new": list(one.new),
                "log_ratio": finite(round(one.log_ratio, 6)),
                "accepted": one.accepted,
            }
            for one in draft.rewrites
        ]
    if trace:
        result["trace"] = [
            {
                "action": revision.action.value,
                "position": revision.position,
                "old": revision.old,
                "new": revision.new,
                "log_ratio": finite(round(revision.log_ratio, 6)),
                "accepted": revision.accepted,
                "nll": round(revision.nll, 6),
            }
            for revision in draft.trace
        ]
    return result
