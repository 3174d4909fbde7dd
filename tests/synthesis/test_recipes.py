from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.predict.classifier import LABELS
from redraft.sentence import Action
from redraft.synthesis.recipes import (
    HEAVY_INSERT,
    MAX_WORDS,
    MIN_WORDS,
    MIXED,
    NUM_DRAWS,
    PAPER,
    Corruption,
    CorruptionRecipe,
    Fault,
    draw_corruption,
)

_DRAWS = st.lists(st.floats(0, 1, exclude_max=True), min_size=NUM_DRAWS, max_size=NUM_DRAWS)


def test_the_paper_has_six_instances_a_sentence() -> None:
    kinds = {(recipe.action, recipe.min_segment is None) for recipe in PAPER}
    assert kinds == {(action, whole) for action in Action if action.value in LABELS for whole in (True, False)}
    assert len(PAPER) == 6


@given(recipe=st.sampled_from(PAPER + HEAVY_INSERT), size=st.integers(MIN_WORDS, MAX_WORDS), draws=_DRAWS)
def test_a_plan_stays_inside_the_sentence(recipe: CorruptionRecipe, size: int, draws: list[float]) -> None:
    start, end, (fault,) = draw_corruption(recipe, size, draws)
    length = end - start
    assert start >= 0
    assert end <= size
    assert length >= (recipe.min_segment or size)
    assert fault.action is recipe.action
    if recipe.action is Action.INSERT:
        low, high = recipe.share
        assert max(1, int(low * length)) <= len(fault.places) <= max(1, int(high * length))
        assert fault.places < set(range(length))
    else:
        (place,) = fault.places
        assert 0 <= place <= length - (recipe.action is Action.REPLACE)


@given(recipe=st.sampled_from(MIXED), size=st.integers(MIN_WORDS, MAX_WORDS), draws=_DRAWS)
def test_mixed_faults_go_from_last_to_first_and_never_touch(
    recipe: CorruptionRecipe, size: int, draws: list[float]
) -> None:
    start, end, faults = draw_corruption(recipe, size, draws)
    places = [place for fault in faults for place in fault.places]
    assert len(places) == len(faults) >= 1
    assert all(after - before >= 2 for after, before in pairwise(places))
    assert 0 <= places[-1] <= places[0] < end - start
    assert all(0 <= fault.draw < 1 for fault in faults)


@pytest.mark.parametrize(("size", "num"), [(6, 1), (13, 1), (14, 2), (20, 3), (40, 6), (52, 7)])
def test_the_paper_drops_fifteen_percent(size: int, num: int) -> None:
    insert_whole = next(recipe for recipe in PAPER if recipe.name == "insert-whole")
    assert len(draw_corruption(insert_whole, size, [0.5] * NUM_DRAWS).faults[0].places) == num


def test_segments_have_every_length_and_place() -> None:
    recipe = next(recipe for recipe in PAPER if recipe.name == "replace-segment")
    spans = {
        draw_corruption(recipe, 8, [a / 30, b / 30] + [0.0] * (NUM_DRAWS - 2))[:2] for a in range(30) for b in range(30)
    }
    assert spans == {(start, start + size) for size in (6, 7, 8) for start in range(9 - size)}


def test_the_last_draw_reaches_the_last_gap() -> None:
    recipe = next(recipe for recipe in PAPER if recipe.name == "delete-whole")
    assert draw_corruption(recipe, 7, [0.999] * NUM_DRAWS) == Corruption(
        0, 7, (Fault(Action.DELETE, frozenset({7}), 0.999),)
    )
