"""How source sentences are corrupted: each recipe makes one instance of a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.sentence import Action

MIN_WORDS, MAX_WORDS = 6, 52  # of a source sentence
NUM_DRAWS = 64  # uniform draws per instance; a multiple of four, see redraft.synthesis.corrupt
_KEYS = 8  # index of the first draw that is a sort key of a word
_REPAIRS = (Action.REPLACE, Action.INSERT, Action.DELETE)


@dataclass(frozen=True)
class CorruptionRecipe:
    """How to corrupt a sentence so that ``action`` repairs it.

    name         stored with the instance
    action       the edit that the classifier should learn to predict; None mixes all three kinds
    min_segment  minimum length in words of the segment that is cut out first; None keeps the whole sentence
    share        range of the fraction of words that is dropped (insert) or corrupted (None)
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
# Not in the paper: drafts as sparse as those that a chain starts from.
HEAVY_INSERT = (
    CorruptionRecipe("heavy-insert-segment", Action.INSERT, 4, (0.15, 0.90)),
    CorruptionRecipe("heavy-insert-whole", Action.INSERT, None, (0.15, 0.90)),
)
# Not in the paper: drafts with several faults, like those in the middle of a chain. Training is faster with them, too:
# one word in seven is wrong, against one in 23 of the paper's instances.
MIXED = (
    CorruptionRecipe("mixed-segment", None, 6, (0.10, 0.33)),
    CorruptionRecipe("mixed-whole", None, None, (0.10, 0.33)),
)
RECIPES = {"paper": PAPER, "heavy-insert": HEAVY_INSERT, "mixed": MIXED}


class Fault(NamedTuple):
    """A fault that ``action`` repairs: a wrong word, a superfluous word before a position, or dropped words."""

    action: Action
    places: frozenset[int]  # positions in the segment; exactly one unless the action is insert
    draw: float  # selects the wrong word


class Corruption(NamedTuple):
    """The segment that is cut from a sentence, and its faults from last to first."""

    start: int
    end: int
    faults: tuple[Fault, ...]


def draw_corruption(recipe: CorruptionRecipe, num_words: int, draws: Sequence[float]) -> Corruption:
    """Turn uniform draws in [0, 1) into a corruption of a sentence of ``num_words`` words."""
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
    # The epsilon keeps 0.15 * 20 at 3 in spite of rounding.
    return min(max(1, int((low + draws[2] * (high - low)) * size + 1e-9)), size - 1)


def _order(size: int, draws: Sequence[float]) -> list[int]:
    """The positions of a segment, shuffled."""
    return sorted(range(size), key=lambda position: draws[_KEYS + position])


def _mixed(recipe: CorruptionRecipe, size: int, draws: Sequence[float]) -> tuple[Fault, ...]:
    """Faults of all kinds, no two adjacent: one label must not hide another."""
    chosen: set[int] = set()
    num = _num(recipe, size, draws)
    for place in _order(size, draws):
        if len(chosen) < num and not {place - 1, place + 1} & chosen:
            chosen.add(place)
    return tuple(_fault(place, draws[_KEYS + place]) for place in sorted(chosen, reverse=True))


def _fault(place: int, draw: float) -> Fault:
    # The leading digits of the draw ordered the positions; the following digits serve as two independent draws.
    kind, word = draw * 2**12 % 1, draw * 2**28 % 1
    return Fault(_REPAIRS[int(kind * len(_REPAIRS))], frozenset({place}), word)
