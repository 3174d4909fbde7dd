"""Training examples for the infiller: sentences of a corpus and prompts with part of their words.

There are three kinds of prompts: keywords in order, keywords in any order, and templates. The missing words are drawn
for each example; an example depends only on its number, the corpus, the mix and the seed.
"""

import enum
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path

import numpy as np

from redraft import corpus, text
from redraft.errors import InputError
from redraft.models.base import Words
from redraft.models.causal.prompts import DEFAULT_STYLE, keywords_prompt, template_prompt
from redraft.stopwords import is_content

FEWEST_WORDS, MOST_WORDS = 5, 28
_MOST_KEYWORDS = 6
_SHARES = (0.15, 0.85)  # range of the fraction of missing words in a template
_PHRASE = 0.1  # fraction of keywords that include the following word
_CASE_SAMPLE = 200_000  # sentences that decide whether a word is capitalised inside a sentence
_ENDS = (".", "?", "!", '."', '?"', '!"')
_NEW_SEED = 1_000_003  # lines between the first sentences of two seeds
# Where a template of a wiki page was lost: "came into the match with a in their semi final", "a revenue of .".
_HOLE = re.compile(
    r"\b(?:an?|the|of|from|between|by|with|into)(?: (?:of|by|to|and|or|is|was|are|were|in|with|from|for)\b|[,;:)]|\.$)"
    r'|\([,;)]|""| [,;:.)]',
    re.IGNORECASE,
)


class PromptKind(enum.Enum):
    """The part of a sentence that a prompt shows."""

    KEYWORDS = "keywords"
    ANY_ORDER = "any order"
    SPAN = "span"  # one blank
    SCATTERED = "scattered"  # blanks at random places


_KINDS = {PromptKind.KEYWORDS: 0.45, PromptKind.ANY_ORDER: 0.1, PromptKind.SPAN: 0.22, PromptKind.SCATTERED: 0.23}


@dataclass(frozen=True)
class TextShare:
    """A file of the corpus (its name without suffixes), its style, and its share of the examples."""

    file: str
    style: str
    share: float

    @classmethod
    def parse(cls, written: str) -> "TextShare":
        """Parse a text such as ``wikinews=News:40``."""
        file, _, rest = written.partition("=")
        style, _, share = rest.partition(":")
        try:
            found = cls(file, style, float(share))
        except ValueError:
            found = cls("", "", 0.0)
        if not (found.file and found.style.isalpha() and 0 < found.share < float("inf")):
            raise InputError(f"{written!r} does not name a file, a style and a share; write it like wikinews=News:40")
        return found


@dataclass(frozen=True)
class InfillExample:
    """A prompt and the words of the sentence to write."""

    prompt: str
    words: Words


class InfillText:
    """The training or held-out sentences of a corpus folder, by style."""

    def __init__(self, folder: Path, mix: Sequence[TextShare] = (), *, held_out: bool = False):
        files = {path.name.removesuffix(".xz").removesuffix(".txt"): path for path in corpus.text_files(folder)}
        wanted = {share.file for share in mix} or set(files)
        usable = partial(_is_usable, held_out=held_out)
        lines = {name: list(filter(usable, corpus.lines(path))) for name, path in files.items() if name in wanted}
        shares = tuple(mix) or tuple(
            TextShare(name, DEFAULT_STYLE, len(found)) for name, found in lines.items() if found
        )
        if unknown := [share.file for share in shares if not lines.get(share.file)]:
            raise InputError(f"{folder} has no sentences in a file {unknown[0]}; it has {', '.join(sorted(files))}")
        if not shares:
            raise InputError(f"{folder} has no sentences of {FEWEST_WORDS} to {MOST_WORDS} words that end like one")
        self._shares, self._lines = shares, lines
        total = sum(share.share for share in shares)
        self._weights = [share.share / total for share in shares]

    @property
    def styles(self) -> list[str]:
        """The styles, by decreasing share."""
        shares: Counter[str] = Counter()
        for share in self._shares:
            shares[share.style] += share.share  # type: ignore[assignment]
        return [style for style, _ in shares.most_common()]

    @cached_property
    def _lowered(self) -> frozenset[str]:
        """Words that are more often lower case than capitalised inside a sentence."""
        counts: Counter[str] = Counter()
        for lines in self._lines.values():
            for line in lines[: _CASE_SAMPLE // len(self._lines)]:
                counts.update(text.tokenise(line)[1:])
        return frozenset(word for word, count in counts.items() if count > counts[text.capitalise(word)])

    def example(self, number: int, seed: int, kind: PromptKind | None = None) -> InfillExample:
        """The example of a number. Numbers run through all sentences of a file before one is repeated."""
        rng = np.random.default_rng((seed, number))
        share = self._shares[rng.choice(len(self._shares), p=self._weights)]
        lines = self._lines[share.file]
        words = tuple(text.tokenise(lines[(number + seed * _NEW_SEED) % len(lines)]))
        kind = kind or list(_KINDS)[rng.choice(len(_KINDS), p=list(_KINDS.values()))]
        return InfillExample(self._prompt(kind, share.style, self._inside(words), rng), words)

    def _inside(self, words: Words) -> Words:
        """The words as a user would type them: the first one in lower case unless it is a name."""
        first = words[0][:1].lower() + words[0][1:]
        return (first, *words[1:]) if first in self._lowered else words

    def _prompt(self, kind: PromptKind, style: str, words: Words, rng: np.random.Generator) -> str:
        if kind in (PromptKind.KEYWORDS, PromptKind.ANY_ORDER):
            if parts := _keywords(words, rng):
                if kind is PromptKind.KEYWORDS:
                    return template_prompt(style, [None, *(piece for part in parts for piece in (part, None))])
                return keywords_prompt(style, [parts[i] for i in rng.permutation(len(parts))])
            kind = PromptKind.SPAN
        masked = _span(len(words), rng) if kind is PromptKind.SPAN else _scattered(len(words), rng)
        runs = groupby(range(len(words)), key=masked.__contains__)
        return template_prompt(style, [None if hidden else tuple(words[i] for i in run) for hidden, run in runs])


def _is_usable(line: str, *, held_out: bool) -> bool:
    """Return whether a line reads as a whole sentence. A caption that starts in lower case seldom has a verb."""
    return (
        corpus.is_held_out(line) == held_out
        and FEWEST_WORDS <= line.count(" ") + 1 <= MOST_WORDS
        and line.endswith(_ENDS)
        and not line[0].islower()
        and not _HOLE.search(line)
    )


def _keywords(words: Words, rng: np.random.Generator) -> list[Words]:
    """Up to six content words in order, some with the word that follows."""
    places = [i for i, word in enumerate(words) if is_content(word)]
    num = min(len(places), int(rng.integers(1, _MOST_KEYWORDS + 1)))
    chosen = sorted(int(place) for place in rng.choice(places, size=num, replace=False)) if num else []
    parts, taken = [], -1
    for place in chosen:
        if place <= taken:
            continue
        taken = place + (rng.random() < _PHRASE and place + 1 < len(words) and text.is_word(words[place + 1]))
        parts.append(words[place : taken + 1])
    return parts


def _num_masked(length: int, rng: np.random.Generator) -> int:
    return min(length - 1, max(1, round(length * rng.uniform(*_SHARES))))


def _span(length: int, rng: np.random.Generator) -> frozenset[int]:
    num = _num_masked(length, rng)
    start = int(rng.integers(0, length - num + 1))
    return frozenset(range(start, start + num))


def _scattered(length: int, rng: np.random.Generator) -> frozenset[int]:
    return frozenset(map(int, rng.choice(length, size=_num_masked(length, rng), replace=False)))
