"""What is done to a source sentence: one instance for each recipe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.sentence import Action

MIN_WORDS, MAX_WORDS = 6, 52  # of a source sentence
NUM_DRAWS = 64  # uniform numbers that one instance may use; a multiple of four, see redraft.synthesis.corrupt
_KEYS = 8  # the first of them that order the words for dropping


@dataclass(frozen=True)
class Recipe:
    """How to spoil a sentence so that ``action`` would mend it.

    name         as it is stored with the instance
    action       the revision that the classifier should learn to ask for
    min_segment  fewest words of the segment that is cut out first; None takes the whole sentence
    share        the share of the words that is dropped (for insert), drawn between these two
    """

    name: str
    action: Action
    min_segment: int | None = None
    share: tuple[float, float] = (0.15, 0.15)


PAPER = (
    Recipe("replace-segment", Action.REPLACE, 6),
    Recipe("insert-segment", Action.INSERT, 4),
    Recipe("delete-segment", Action.DELETE, 6),
    Recipe("replace-whole", Action.REPLACE),
    Recipe("insert-whole", Action.INSERT),
    Recipe("delete-whole", Action.DELETE),
)
# Not in the paper: drafts as bare as those that a chain starts from.
HEAVY_INSERT = (
    Recipe("heavy-insert-segment", Action.INSERT, 4, (0.15, 0.90)),
    Recipe("heavy-insert-whole", Action.INSERT, None, (0.15, 0.90)),
)
RECIPES = {"paper": PAPER, "heavy-insert": HEAVY_INSERT}


class Plan(NamedTuple):
    """What a recipe does to one sentence: the segment, then the places in it, counted from its first word."""

    start: int
    end: int
    position: int  # the word to replace, or the gap that gets a word
    drops: frozenset[int]


def plan(recipe: Recipe, num_words: int, draws: Sequence[float]) -> Plan:
    """Turn uniform numbers in [0, 1) into places of a sentence of ``num_words`` words."""
    start, end = 0, num_words
    if recipe.min_segment is not None:
        size = recipe.min_segment + int(draws[0] * (num_words - recipe.min_segment + 1))
        start = int(draws[1] * (num_words - size + 1))
        end = start + size
    size = end - start
    if recipe.action is Action.INSERT:
        return Plan(start, end, 0, _drops(recipe, size, draws))
    num_places = size if recipe.action is Action.REPLACE else size + 1
    return Plan(start, end, int(draws[2] * num_places), frozenset())


def _drops(recipe: Recipe, size: int, draws: Sequence[float]) -> frozenset[int]:
    low, high = recipe.share
    # The epsilon keeps 0.15 * 20 at 3, whatever its binary digits.
    num = min(max(1, int((low + draws[2] * (high - low)) * size + 1e-9)), size - 1)
    order = sorted(range(size), key=lambda position: draws[_KEYS + position])
    return frozenset(order[:num])
