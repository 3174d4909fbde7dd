"""Keyword fit: how much likelier, by the judge, a sentence is with its own keywords than with another input's.

The keywords of the next input that has as many are put in the places of the sentence's own. A sentence that means
something becomes much less likely; a stock phrase into which any word fits does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

import numpy as np

from redraft import text
from redraft.evaluation.judge import JudgeScore
from redraft.evaluation.metric import Metric, share
from redraft.sentence import Constraints

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Swapped:
    """A text with other keywords in it, and how many were put there."""

    text: str
    num_keywords: int


def swapped_texts(texts: Sequence[str], constraints: Sequence[Constraints]) -> list[Swapped | None]:
    """Each text with the keywords of another input; None where none of its own is found, or there is no other input."""
    others = _others([one.keywords for one in constraints])
    return [
        None if other is None else _swap(one, wanted.keywords, other)
        for one, wanted, other in zip(texts, constraints, others, strict=True)
    ]


def keyword_fit(
    scores: Sequence[JudgeScore],
    swapped: Sequence[Swapped | None],
    others: Sequence[JudgeScore | None],
    settings: dict[str, str],
) -> Metric | None:
    """Mean loss in nats a keyword; ``others`` are the scores of the swapped texts. None where there are none."""
    loss, num = np.zeros(len(scores)), np.zeros(len(scores))
    for i, (own, put, other) in enumerate(zip(scores, swapped, others, strict=True)):
        if put is not None and other is not None:
            loss[i], num[i] = other.nll - own.nll, put.num_keywords
    if not num.any():
        return None
    metric = share("keyword_fit", "nats", loss, num, **settings, other="next-input", tok="redraft")
    return replace(metric, least=-np.inf)


def _others(keywords: Sequence[tuple[str, ...]]) -> list[tuple[str, ...] | None]:
    """For each input the keywords of the next that has as many, else of the next one, repeated to as many."""
    found: list[tuple[str, ...] | None] = []
    for i, own in enumerate(keywords):
        following = [one for one in (*keywords[i + 1 :], *keywords[:i]) if one and one != own]
        other = next((one for one in following if len(one) == len(own)), following[0] if following else None)
        found.append(None if other is None or not own else tuple(islice(cycle(other), len(own))))
    return found


def _swap(given: str, own: Sequence[str], other: Sequence[str]) -> Swapped | None:
    places = _places(given, own)
    put = sorted((place, new) for place, new in zip(places, other, strict=True) if place is not None)
    if not put:
        return None
    first = len(given) - len(given.lstrip())
    parts, at = [], 0
    for (start, end), new in put:
        opens = start == first and given[start].isupper()
        parts += [given[at:start], new[:1].upper() + new[1:] if opens else new]
        at = end
    return Swapped("".join([*parts, given[at:]]), len(put))


def _places(given: str, keywords: Sequence[str]) -> list[Span | None]:
    """Where each keyword stands in a text, in letters: after the keyword before it, or else wherever it is."""
    spans = _word_spans(given)
    words = [given[start:end] for start, end in spans]
    taken: set[int] = set()
    places: list[Span | None] = []
    at = 0
    for keyword in keywords:
        wanted = text.tokenise(keyword)
        starts = [i for i in _starts(words, wanted) if not taken & set(range(i, i + len(wanted)))]
        start = next((i for i in starts if i >= at), starts[0] if starts else None)
        if start is None:
            places.append(None)
            continue
        at = start + len(wanted)
        taken |= set(range(start, at))
        places.append((spans[start][0], spans[at - 1][1]))
    return places


def _starts(words: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where the wanted words begin; a sentence's first word may have a capital for that alone."""
    found = []
    for i in range(len(words) - len(wanted) + 1):
        here = words[i : i + len(wanted)]
        same = here[0].lower() == wanted[0].lower() if i == 0 else here[0] == wanted[0]
        if same and list(here[1:]) == list(wanted[1:]):
            found.append(i)
    return found


def _word_spans(given: str) -> list[Span]:
    """Where each word stands; words are what is left of a text without its white space."""
    spans, at = [], 0
    for word in text.tokenise(given):
        at = given.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word)
    return spans
