"""Labels of a corrupted sentence: the edit that each word needs.

Words have labels, and so do the start (BOS) and the end (EOS) of the sentence: [BOS, words..., EOS]. The label
"insert" belongs to the token that follows the missing words. BOS is always "copy": it is never edited.
"""

import enum
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Label(enum.IntEnum):
    """The classes of the paper, with its numbering."""

    COPY = 0
    REPLACE = 1
    INSERT = 2
    DELETE = 3


class Labelled(NamedTuple):
    """Words, and the labels of BOS, the words and EOS."""

    words: list[str]
    labels: list[int]


def segment(words: Sequence[str], start: int, end: int) -> Labelled:
    """The words [start:end]. Where words were cut off, the first word or EOS is labelled "insert"."""
    labels = [int(Label.COPY)] * (end - start + 2)
    if start > 0:
        labels[1] = Label.INSERT
    if end < len(words):
        labels[-1] = Label.INSERT
    return Labelled(list(words[start:end]), labels)


def replaced(part: Labelled, position: int, word: str) -> Labelled:
    """Put a wrong word in place of the right one. Its label overrides "insert": the wrong word is repaired first."""
    words, labels = list(part.words), list(part.labels)
    words[position] = word
    labels[position + 1] = Label.REPLACE
    return Labelled(words, labels)


def added(part: Labelled, gap: int, word: str) -> Labelled:
    """Add a superfluous word before word ``gap`` (before EOS for the last gap).

    Of several equal words in a row the last is labelled "delete": it is impossible to tell which of them was added.
    """
    words, labels = list(part.words), list(part.labels)
    while gap < len(words) and words[gap] == word:
        gap += 1
    words.insert(gap, word)
    labels.insert(gap + 1, Label.DELETE)
    return Labelled(words, labels)


def dropped(part: Labelled, positions: Collection[int]) -> Labelled:
    """Drop words; the token after each hole is labelled "insert"."""
    words: list[str] = []
    labels = [part.labels[0]]
    hole = False
    for position, word in enumerate(part.words):
        if position in positions:
            # A dropped word that was itself labelled "insert" only widens the hole: the label moves on.
            hole = True
            continue
        words.append(word)
        labels.append(Label.INSERT if hole else part.labels[position + 1])
        hole = False
    labels.append(Label.INSERT if hole else part.labels[-1])
    return Labelled(words, labels)
