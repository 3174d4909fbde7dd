"""Replay a chain: its sentences, from the trace of its revisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redraft import text
from redraft.sentence import Action, Constraints, Edit, Sentence

Segment = tuple[str, bool]  # a stretch of text, and whether it is marked


@dataclass(frozen=True, slots=True)
class Moment:
    """A sentence of a chain, and the accepted revision that led to it. Step 0 is the start."""

    step: int
    sentence: Sentence
    edit: Edit | None
    nll: float | None


def start_of(record: Mapping[str, Any], constraints: Constraints) -> Sentence:
    """The start of a traced chain: as recorded, else made from the constraints."""
    given = record.get("start")
    if given is None:
        return constraints.start()
    return Sentence(*(tuple(given[key]) for key in ("words", "locks", "open_gaps")))


def replay(start: Sentence, trace: Sequence[Mapping[str, Any]]) -> Iterator[Moment]:
    """The start and the sentence after each accepted revision; ValueError if the trace does not fit the start."""
    sentence = start
    yield Moment(0, sentence, None, None)
    for step, revision in enumerate(trace, 1):
        if revision["accepted"]:
            action = Action(revision["action"])
            word = revision["new"] if action in (Action.REPLACE, Action.INSERT, Action.VARY) else None
            edit = Edit(action, int(revision["position"]), word)
            try:
                sentence = sentence.apply(edit)
            except IndexError as error:
                raise ValueError(f"step {step} revises a position outside the sentence") from error
            yield Moment(step, sentence, edit, float(revision["nll"]))


def segments(words: Sequence[str], marked: Sequence[bool]) -> list[Segment]:
    """The words as natural text, split between marked and unmarked words; a space between the two is not marked."""
    surface = text.surface(words)
    shown = text.detokenise(surface)
    found: list[Segment] = []
    at = 0
    for (start, end), mark in zip(text.spans(surface), marked, strict=True):
        gap_marked = mark and bool(found) and found[-1][1]
        for piece, kind in ((shown[at:start], gap_marked), (shown[start:end], mark)):
            if found and found[-1][1] == kind:
                found[-1] = (found[-1][0] + piece, kind)
            elif piece:
                found.append((piece, kind))
        at = end
    return found


def given_words(words: Sequence[str], constraints: Constraints) -> list[bool]:
    """Mask of the words that the constraints give: each given part at its first position, in order."""
    marked = [False] * len(words)
    lowered = [word.lower() for word in words]
    at = 0
    for part in _parts(constraints):
        size = len(part)
        found = next((i for i in range(at, len(words) - size + 1) if lowered[i : i + size] == part), None)
        if found is not None:
            marked[found : found + size] = [True] * size
            at = found + size
    return marked


def _parts(constraints: Constraints) -> list[list[str]]:
    start = constraints.start()
    parts: dict[int, list[str]] = {}
    for word, lock in zip(start.words, start.locks, strict=True):
        if lock >= 0:
            parts.setdefault(lock, []).append(word.lower())
    return list(parts.values())
