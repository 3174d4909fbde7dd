"""Stock phrases by hand."""

import pytest

from redraft.evaluation.stock_phrases import stock_phrases

STOCK = [f"In the end , of the {word} .".split() for word in ("war", "year", "day")]


def test_by_hand():
    metric = stock_phrases([*STOCK, "In the end we left .".split()])
    assert metric.value == pytest.approx(75)
    # The comma does not count, nor the case; "in the end we" is in one output alone.
    assert metric.details == ("in the end of (3 of 4)", "the end of the (3 of 4)")


def test_two_outputs_are_chance():
    metric = stock_phrases([*STOCK[:2], *(["Word", str(i)] for i in range(8))])
    assert (metric.value, metric.details) == (0, ())


def test_a_phrase_counts_once_an_output():
    metric = stock_phrases([["a", "b", "c", "d"] * 5, ["x"], ["y"]])
    assert metric.value == 0


def test_only_ten_phrases_are_taken():
    """Twelve phrases in three outputs each, and one in four: the last two by alphabet are not looked for."""
    groups = [[f"{letter}{i}" for i in range(4)] for letter in "abcdefghijkl"]
    outputs = [words for words in groups for _ in range(3)] + [["z", "z", "z", "y"]] * 4
    metric = stock_phrases(outputs)
    assert len(metric.details) == 10
    assert metric.details[0] == "z z z y (4 of 40)"
    assert metric.value == pytest.approx(100 * (9 * 3 + 4) / 40)
