"""The toolkit that every reader shares."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from redraft.models import batching
from redraft.models.base import Slot
from redraft.models.batching import BatchShape, Memo, common_prefix, filled_keys, padded, stacked_at_end
from redraft.models.lstm import reader as lstm_reader

_LENGTHS = st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=8)


@given(_LENGTHS, st.integers(1, 40))
def test_every_item_with_rows_is_in_one_group(lengths: list[list[int]], limit: int) -> None:
    def size(group: Sequence[int]) -> int:
        rows = [row for i in group for row in lengths[i]]
        return len(rows) * max(rows)

    found = list(batching.groups(lengths, lambda batch: batch.num_rows * batch.longest <= limit))
    assert sorted(i for group in found for i in group) == [i for i, rows in enumerate(lengths) if rows]
    assert all(size(group) <= limit for group in found if len(group) > 1)
    longest = [max(lengths[i]) for group in found for i in group]
    assert longest == sorted(longest, reverse=True)


def test_a_rule_sees_the_shape_that_the_call_would_have() -> None:
    shapes: list[BatchShape] = []

    def fits(batch: BatchShape) -> bool:
        shapes.append(batch)
        return batch.num_items < 3

    assert list(batching.groups([[2], [], [5, 1], [3], [1]], fits)) == [[2, 3], [0, 4]]
    assert shapes == [
        BatchShape(2, 3, 2, 5, 3, 9),
        BatchShape(3, 4, 2, 5, 2, 11),
        BatchShape(2, 2, 1, 2, 1, 3),
    ]


def test_padding_stands_at_the_end() -> None:
    ids, real = padded([[1, 2, 3], [], [4]], padding=9)
    assert ids.tolist() == [[1, 2, 3], [9, 9, 9], [4, 9, 9]]
    assert real.tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    assert padded([[]])[0].shape == (1, 1)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_caches_end_together(dim: int) -> None:
    parts = [torch.rand(2, 3, length, 4) for length in (5, 0, 2)]
    stack, real = stacked_at_end(parts, dim)
    assert real.tolist() == [[True] * 5, [False] * 5, [False] * 3 + [True] * 2]
    for at, part in enumerate(parts):
        one = stack.select(dim, at)
        assert one[..., 5 - part.shape[2] :, :].equal(part)
        assert not one[..., : 5 - part.shape[2], :].any()


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix(left: list[int], right: list[int]) -> None:
    length = common_prefix(left, right)
    assert left[:length] == right[:length]
    assert left[length : length + 1] != right[length : length + 1] or length == len(left) == len(right)


def test_the_least_recently_used_value_is_forgotten() -> None:
    memo: Memo[str, int] = Memo()
    for number, key in enumerate("abc"):
        memo.put(key, number)
    assert memo.get("a") == 0
    memo.trim(2)
    assert [memo.get(key) for key in "abc"] == [0, None, 2]
    memo.trim(0)
    assert memo.get("a") is None


def test_no_more_scores_are_kept_than_there_is_room_for(tiny_pack, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(lstm_reader, "_KEPT", 10)
    reader = lstm_reader.LstmReader("fresh", *_network_and_words(tiny_pack))
    computed: list[int] = []
    compute = reader._filled

    def counting(slots, fillings, readings):  # type: ignore[no-untyped-def]
        computed.append(sum(map(len, fillings)))
        return compute(slots, fillings, readings)

    monkeypatch.setattr(reader, "_filled", counting)
    sentence = ("the", "dog", "sees", "a", "ball", ".")
    (reading,) = reader.read([sentence], [None])
    fillings = [(word,) for word in ("the", "dog", "house", "park")]
    expected = {at: compute([Slot(sentence, at, at)], [fillings], [reading])[0] for at in range(3)}
    for at in (0, 1, 1, 0, 2, 0, 1):  # four scores a slot: two slots and a half fit
        (scores,) = reader.log_probs_filled([Slot(sentence, at, at)], [fillings], [reading])
        assert scores == pytest.approx(expected[at])
    assert computed == [4, 4, 0, 0, 4, 0, 2]
    same = [Slot(sentence, 3, 3)] * 2
    for _ in range(20):
        reader.log_probs_filled(same, [fillings[:2]] * 2, [reading] * 2)
    assert computed[7:] == [4] + [0] * 19
    large = [[(word,) for word in reader.words[3:40]]]
    for _ in range(2):  # more than fits is not kept as a whole
        assert len(reader.log_probs_filled([Slot(sentence, 4, 4)], large, [reading])[0]) == 37
    assert computed[-1] > 0


def _network_and_words(pack):  # type: ignore[no-untyped-def]
    from redraft.models.lstm.files import load_network

    return load_network(pack, "forward")


def test_keys_of_fillings_differ_by_slot() -> None:
    gap, replaced = Slot(("a", "c"), 1, 1), Slot(("a", "b", "c"), 1, 2)
    assert filled_keys(gap, [("b",)]) == filled_keys(replaced, [("b",)]) == [(("a",), ("b",), ("c",))]
    assert filled_keys(Slot(("a", "b"), 2, 2), [("c",)]) != filled_keys(gap, [("b",)])
