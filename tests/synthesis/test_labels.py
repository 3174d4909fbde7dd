"""The label rules, by hand."""

import pytest

from redraft.synthesis.labels import Labelled, added, dropped, replaced, segment

_SOURCE = (
    "Opponents of the tariff say U.S. manufacturing would suffer under the climate bill "
    "regardless of trade policy changes ."
).split()
_START, _END = _SOURCE.index("manufacturing"), _SOURCE.index("bill") + 1


def test_the_papers_example() -> None:
    part = segment(_SOURCE, _START, _END)
    spoilt = dropped(part, {1})
    assert " ".join(spoilt.words) == "manufacturing suffer under the climate bill"
    assert spoilt.labels == [0, 2, 2, 0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        (0, 5, [0, 0, 0, 0, 0, 0, 0]),  # the whole sentence: nothing is missing
        (0, 4, [0, 0, 0, 0, 0, 2]),  # cut behind: EOS asks
        (2, 5, [0, 2, 0, 0, 0]),  # cut in front: the first word asks
        (1, 2, [0, 2, 2]),  # one word, cut on both sides
    ],
)
def test_a_cut_is_labelled_where_words_went(start: int, end: int, labels: list[int]) -> None:
    assert segment(["a", "b", "c", "d", "e"], start, end).labels == labels


@pytest.mark.parametrize(
    ("positions", "words", "labels"),
    [
        ({0}, "b c d", [0, 2, 0, 0, 0]),  # the first word: the next one asks
        ({3}, "a b c", [0, 0, 0, 0, 2]),  # the last word: EOS asks
        ({1, 2}, "a d", [0, 0, 2, 0]),  # a run of words is one hole
        ({0, 2}, "b d", [0, 2, 2, 0]),
        ({0, 1, 2}, "d", [0, 2, 0]),
        ({1, 2, 3}, "a", [0, 0, 2]),
    ],
)
def test_dropping(positions: set[int], words: str, labels: list[int]) -> None:
    spoilt = dropped(segment(["a", "b", "c", "d"], 0, 4), positions)
    assert spoilt == Labelled(words.split(), labels)


def test_dropping_the_first_word_of_a_cut_moves_its_mark() -> None:
    assert dropped(segment(["x", "a", "b", "c"], 1, 4), {0}) == Labelled(["b", "c"], [0, 2, 0, 0])


@pytest.mark.parametrize(
    ("start", "position", "labels"),
    [(0, 1, [0, 0, 1, 0, 0]), (0, 0, [0, 1, 0, 0, 0]), (1, 0, [0, 1, 0, 0])],
)
def test_replacing_marks_the_wrong_word(start: int, position: int, labels: list[int]) -> None:
    spoilt = replaced(segment(["a", "b", "c"], start, 3), position, "X")
    assert spoilt.labels == labels
    assert spoilt.words[position] == "X"


@pytest.mark.parametrize(
    ("start", "end", "gap", "words", "labels"),
    [
        (0, 3, 1, "a X b c", [0, 0, 3, 0, 0, 0]),
        (0, 3, 3, "a b c X", [0, 0, 0, 0, 3, 0]),  # before EOS
        (0, 2, 2, "a b X", [0, 0, 0, 3, 2]),  # EOS goes on asking
        (1, 3, 0, "X b c", [0, 3, 2, 0, 0]),  # so does the first word of a cut
    ],
)
def test_adding_marks_the_word_too_many(start: int, end: int, gap: int, words: str, labels: list[int]) -> None:
    assert added(segment(["a", "b", "c"], start, end), gap, "X") == Labelled(words.split(), labels)


@pytest.mark.parametrize("gap", [1, 2])
def test_of_equal_words_the_last_is_one_too_many(gap: int) -> None:
    part = segment(["a", "b", "c"], 0, 3)
    assert added(part, gap, "b") == Labelled(["a", "b", "b", "c"], [0, 0, 0, 3, 0, 0])


def test_spoiling_leaves_its_argument_alone() -> None:
    part = segment(["a", "b", "c"], 0, 3)
    replaced(part, 0, "X"), added(part, 0, "X"), dropped(part, {0})
    assert part == Labelled(["a", "b", "c"], [0, 0, 0, 0, 0])
