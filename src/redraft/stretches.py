"""Stretches: runs of free words of a sentence that may be rewritten.

A gap is everything between two given spans, or between one and an end of the sentence. A stretch is a gap or a part of
one. It is identified by the words that are kept before and after it, so it stays the same stretch when its own words
change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from redraft import text
from redraft.sentence import ENDING, FREE, Constraints, Order, Sentence

Gap = tuple[int, int]  # first word and the one after the last


@dataclass(frozen=True, slots=True)
class Stretch:
    """The words from ``start`` to ``end`` (exclusive) of a sentence, in gap number ``gap``."""

    gap: int
    start: int
    end: int
    is_whole_gap: bool

    def filled(self, sentence: Sentence, words: tuple[str, ...]) -> Sentence:
        """The sentence whose words are ``words``: those outside the stretch are the same as before."""
        after = len(sentence) - self.end
        size = len(words) - self.start - after
        closes_with_ending = not after and sentence.locks[-1:] == (ENDING,)
        locks = [FREE] * size
        if closes_with_ending:
            locks[-1] = ENDING
        inside = [True] * (size + 1)
        if not after:
            inside[-1] = sentence.open_gaps[-1]
        kept_words = words[: self.start], words[len(words) - after :]
        if kept_words != (sentence.words[: self.start], sentence.words[self.end :]):
            raise ValueError(f"{words} changes more than the stretch from {self.start} to {self.end}")
        return Sentence(
            words,
            (*sentence.locks[: self.start], *locks, *sentence.locks[self.end :]),
            (*sentence.open_gaps[: self.start], *inside, *sentence.open_gaps[self.end + 1 :]),
        )

    def moved_to(self, before: Sentence, after: Sentence) -> "Stretch":
        """The same stretch in the sentence that results from rewriting it."""
        return Stretch(self.gap, self.start, self.end + len(after) - len(before), self.is_whole_gap)


def gaps_of(sentence: Sentence) -> list[Gap]:
    """The gaps that may be written into, including empty ones. An ending belongs to the last gap."""
    held = [i for i, lock in enumerate(sentence.locks) if lock not in (FREE, ENDING)]
    ends = pairwise([-1, *held, len(sentence)])
    return [(left + 1, right) for left, right in ends if sentence.open_gaps[left + 1]]


def parts_of(sentence: Sentence, gap: Gap) -> list[Gap]:
    """All stretches of a gap, including empty ones. Nothing comes after an ending."""
    first, last = gap
    after_ending = last == len(sentence) and sentence.locks[-1:] == (ENDING,)
    starts = range(first, last + (not after_ending))
    return [(start, end) for start in starts for end in range(start, last + 1)]


def holds_first_places(sentence: Sentence, constraints: Constraints) -> bool:
    """Whether each given part is locked at its first occurrence. So the words of a sentence determine its locks."""
    is_template = constraints.template is not None
    any_order = constraints.order is Order.ANY and not is_template
    runs = [list(run) for lock, run in groupby(range(len(sentence)), key=sentence.locks.__getitem__) if lock >= 0]
    held = [sentence.locks[run[0]] for run in runs]
    at = 0
    for number, run in enumerate(runs):
        left = [part for part in range(len(constraints.parts)) if part not in held[:number]]
        pending = left if any_order else [part for part in left if part <= held[number]]
        fewest = max(constraints.room[number].least, is_template and sentence.open_gaps[at])  # a blank holds a word
        forms = [one for part in pending for one in constraints.parts[part].realisations]
        if any(reads_as(sentence.words, i, one) for i in range(at + fewest, run[0]) for one in forms):
            return False
        at = run[-1] + 1
    return True


def reads_as(words: Sequence[str], at: int, part: tuple[str, ...]) -> bool:
    """Whether a part occurs at a position; the capital at the beginning of a sentence makes no difference."""
    window = tuple(words[at : at + len(part)])
    return window in (part, tuple(text.surface([*words[:at], *part])[at:]))
