"""What each word of a spoilt sentence needs.

A label belongs to a word, or to the begin (BOS) or the end (EOS) of the sentence; labels are [BOS, words..., EOS].
"Insert" stands on what follows the missing words. BOS is always "copy": nothing is ever done there.
"""

import enum
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Label(enum.IntEnum):
    """The paper's classes, with its numbers."""

    COPY = 0
    REPLACE = 1
    INSERT = 2
    DELETE = 3


class Labelled(NamedTuple):
    """Words and the labels of BOS, the words and EOS."""

    words: list[str]
    labels: list[int]


def segment(words: Sequence[str], start: int, end: int) -> Labelled:
    """The words [start:end]. Where the cut took words away, the first word and EOS ask for them back."""
    labels = [int(Label.COPY)] * (end - start + 2)
    if start > 0:
        labels[1] = Label.INSERT
    if end < len(words):
        labels[-1] = Label.INSERT
    return Labelled(list(words[start:end]), labels)


def replaced(part: Labelled, position: int, word: str) -> Labelled:
    """A wrong word in the place of a right one. Its label covers up "insert": the word is to be mended first."""
    words, labels = list(part.words), list(part.labels)
    words[position] = word
    labels[position + 1] = Label.REPLACE
    return Labelled(words, labels)


def added(part: Labelled, gap: int, word: str) -> Labelled:
    """A word too many before word ``gap`` (before EOS for the last gap).

    Of equal words in a row the last is one too many: which of them was added cannot be seen.
    """
    words, labels = list(part.words), list(part.labels)
    while gap < len(words) and words[gap] == word:
        gap += 1
    words.insert(gap, word)
    labels.insert(gap + 1, Label.DELETE)
    return Labelled(words, labels)


def dropped(part: Labelled, positions: Collection[int]) -> Labelled:
    """Words left out; what stands after each hole is labelled "insert"."""
    words: list[str] = []
    labels = [part.labels[0]]
    hole = False
    for position, word in enumerate(part.words):
        if position in positions:
            # A word that asked for words before it leaves a hole that is wider still: the mark moves on.
            hole = True
            continue
        words.append(word)
        labels.append(Label.INSERT if hole else part.labels[position + 1])
        hole = False
    labels.append(Label.INSERT if hole else part.labels[-1])
    return Labelled(words, labels)
