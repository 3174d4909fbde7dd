"""What is done to a source sentence: one instance for each recipe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.sentence import Action

MIN_WORDS, MAX_WORDS = 6, 52  # of a source sentence
NUM_DRAWS = 64  # uniform numbers that one instance may use; a multiple of four, see redraft.synthesis.corrupt
_KEYS = 8  # the first of them that order the words
_MENDED_BY = (Action.REPLACE, Action.INSERT, Action.DELETE)


@dataclass(frozen=True)
class CorruptionRecipe:
    """How to spoil a sentence so that ``action`` would mend it.

    name         as it is stored with the instance
    action       the revision that the classifier should learn to ask for; None spoils in all three ways at once
    min_segment  fewest words of the segment that is cut out first; None takes the whole sentence
    share        the share of the words that is dropped (insert) or spoilt (None), drawn between these two
    """

    name: str
    action: Action | None
    min_segment: int | None = None
    share: tuple[float, float] = (0.15, 0.15)


PAPER = (
    CorruptionRecipe("replace-segment", Action.REPLACE, 6),
    CorruptionRecipe("insert-segment", Action.INSERT, 4),
    CorruptionRecipe("delete-segment", Action.DELETE, 6),
    CorruptionRecipe("replace-whole", Action.REPLACE),
    CorruptionRecipe("insert-whole", Action.INSERT),
    CorruptionRecipe("delete-whole", Action.DELETE),
)
# Not in the paper: drafts as bare as those that a chain starts from.
HEAVY_INSERT = (
    CorruptionRecipe("heavy-insert-segment", Action.INSERT, 4, (0.15, 0.90)),
    CorruptionRecipe("heavy-insert-whole", Action.INSERT, None, (0.15, 0.90)),
)
# Not in the paper either: drafts with several faults, as those in the middle of a chain. They teach faster, too: of the
# paper's instances one word in 23 is a wrong one, of these one in seven.
MIXED = (
    CorruptionRecipe("mixed-segment", None, 6, (0.10, 0.33)),
    CorruptionRecipe("mixed-whole", None, None, (0.10, 0.33)),
)
RECIPES = {"paper": PAPER, "heavy-insert": HEAVY_INSERT, "mixed": MIXED}


class Fault(NamedTuple):
    """What ``action`` would mend: a wrong word, a word too many before a place, or words that were dropped."""

    action: Action
    places: frozenset[int]  # in the segment; one for all but insert
    draw: float  # chooses the wrong word


class Corruption(NamedTuple):
    """What a recipe does to one sentence: the segment, then its faults from the last to the first."""

    start: int
    end: int
    faults: tuple[Fault, ...]


def plan(recipe: CorruptionRecipe, num_words: int, draws: Sequence[float]) -> Corruption:
    """Turn uniform numbers in [0, 1) into places of a sentence of ``num_words`` words."""
    start, end = 0, num_words
    if recipe.min_segment is not None:
        size = recipe.min_segment + int(draws[0] * (num_words - recipe.min_segment + 1))
        start = int(draws[1] * (num_words - size + 1))
        end = start + size
    size = end - start
    if recipe.action is None:
        return Corruption(start, end, _mixed(recipe, size, draws))
    if recipe.action is Action.INSERT:
        places = frozenset(_order(size, draws)[: _num(recipe, size, draws)])
    else:
        num_places = size if recipe.action is Action.REPLACE else size + 1
        places = frozenset({int(draws[2] * num_places)})
    return Corruption(start, end, (Fault(recipe.action, places, draws[3]),))


def _num(recipe: CorruptionRecipe, size: int, draws: Sequence[float]) -> int:
    low, high = recipe.share
    # The epsilon keeps 0.15 * 20 at 3, whatever its binary digits.
    return min(max(1, int((low + draws[2] * (high - low)) * size + 1e-9)), size - 1)


def _order(size: int, draws: Sequence[float]) -> list[int]:
    """The places of a segment, shuffled."""
    return sorted(range(size), key=lambda position: draws[_KEYS + position])


def _mixed(recipe: CorruptionRecipe, size: int, draws: Sequence[float]) -> tuple[Fault, ...]:
    """Faults of all kinds, no two side by side: a label must not hide another."""
    chosen: set[int] = set()
    num = _num(recipe, size, draws)
    for place in _order(size, draws):
        if len(chosen) < num and not {place - 1, place + 1} & chosen:
            chosen.add(place)
    return tuple(_fault(place, draws[_KEYS + place]) for place in sorted(chosen, reverse=True))


def _fault(place: int, draw: float) -> Fault:
    # The first digits of the number have ordered the places; those that follow are as good as two new numbers.
    kind, word = draw * 2**12 % 1, draw * 2**28 % 1
    return Fault(_MENDED_BY[int(kind * len(_MENDED_BY))], frozenset({place}), word)
