"""Scores are remembered by what stands around a slot, and no more of them than there is room for."""

import numpy as np
import pytest

from redraft.models import memo
from redraft.models.base import Slot
from redraft.models.memo import ScoreMemo


def test_no_more_scores_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "_KEPT", 10)
    asked: list[int] = []

    def compute(slots, fillings, readings):  # type: ignore[no-untyped-def]
        asked.append(sum(map(len, fillings)))
        return [np.arange(len(some)) + 0.5 for some in fillings]

    kept = ScoreMemo()
    for at in (0, 1, 1, 0, 2, 0, 1):  # four scores a slot: two slots fit
        slot = Slot(("a",) * at, at, at)
        scores = kept.scores([slot], [[(word,) for word in "wxyz"]], [None], compute)
        assert scores[0].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert asked == [4, 4, 0, 0, 4, 0, 4]
    same = [Slot(("b",), 0, 0)] * 2
    for _ in range(20):
        kept.scores(same, [[("w",), ("x",)]] * 2, [None] * 2, compute)
    large = [[(str(n),) for n in range(50)]]
    assert len(kept.scores([Slot(("a",), 0, 0)], large, [None], compute)[0]) == 50
    kept.scores([Slot(("a",), 0, 0)], large, [None], compute)
    assert asked[-1] == 50  # more than fits is not kept at all
