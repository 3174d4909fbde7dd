"""Keyword fit: how much more likely, by the judge, a sentence is with its own keywords than with another's.

The keywords are replaced by those of the next input with the same number of keywords. A meaningful sentence becomes
much less likely; a stock phrase that fits any word does not.
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
    """A text with swapped keywords, and how many were swapped."""

    text: str
    num_keywords: int


def swapped_texts(texts: Sequence[str], constraints: Sequence[Constraints]) -> list[Swapped | None]:
    """Each text with the keywords of another input; None if it has none of its own or there is no other input."""
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
    """Mean increase of NLL per keyword in nats; ``others`` are the scores of the swapped texts. None without any."""
    loss, num = np.zeros(len(scores)), np.zeros(len(scores))
    for i, (own, put, other) in enumerate(zip(scores, swapped, others, strict=True)):
        if put is not None and other is not None:
            loss[i], num[i] = other.nll - own.nll, put.num_keywords
    if not num.any():
        return None
    metric = share("keyword_fit", "nats", loss, num, **settings, other="next-input", tok="redraft")
    return replace(metric, least=-np.inf)


def _others(keywords: Sequence[tuple[str, ...]]) -> list[tuple[str, ...] | None]:
    """For each input the keywords of the next one with the same number, else those of the next one, repeated."""
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
    """Character span of each keyword: after the previous keyword if possible, else anywhere."""
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
    """Positions at which the wanted words start; the case of a sentence's first letter is ignored."""
    found = []
    for i in range(len(words) - len(wanted) + 1):
        here = words[i : i + len(wanted)]
        same = here[0].lower() == wanted[0].lower() if i == 0 else here[0] == wanted[0]
        if same and list(here[1:]) == list(wanted[1:]):
            found.append(i)
    return found


def _word_spans(given: str) -> list[Span]:
    """Character span of each word."""
    spans, at = [], 0
    for word in text.tokenise(given):
        at = given.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word)
    return spans
