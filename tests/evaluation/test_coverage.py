import pytest

from redraft.evaluation.coverage import coverage, found_spans
from redraft.sentence import Constraints, Order
from redraft.text import tokenise

# text, constraints, all given words, found each, everything met
TABLE = [
    ("The old doctor went home .", Constraints(("doctor", "home")), 1, [1, 1], 1),
    ("Doctor and nurse .", Constraints(("doctor", "nurse")), 1, [1, 1], 1),  # the opening capital is no difference
    ("Home saw a doctor .", Constraints(("doctor", "home")), 0, [1, 1], 0),  # there, in another order
    ("Home saw a doctor .", Constraints(("doctor", "home"), order=Order.ANY), 1, [1, 1], 1),
    ("The doctors went home .", Constraints(("doctor", "home")), 0, [0, 1], 0),  # an inflected form is another word
    ("Credit of a card .", Constraints(("credit card",)), 0, [0], 0),  # a phrase stays together
    ("The doctor went home", Constraints(("doctor",)), 1, [1], 0),  # no ending
    ("The old doctor went .", Constraints(("doctor",), ban=("old",)), 1, [1], 0),
    ("word " * 40 + "doctor .", Constraints(("doctor",)), 1, [1], 0),  # too long, and yet the word is there
    ("He left , they say , at dawn .", Constraints(template="He left ___ , at dawn ."), 1, [1, 1], 1),
    ("He left .", Constraints(template="He left ___ , ___"), 0, [1, 0], 0),
    (
        "Yesterday he left , at dawn .",
        Constraints(template="He left ___ , at dawn ."),
        0,
        [0, 1],
        0,
    ),  # not at the begin
    ("Then went home . She home .", Constraints(template="___ home ___ ."), 1, [1, 1], 1),
    ("She went home . And then more", Constraints(template="She ___ home ."), 0, [1, 1], 0),  # not last
    ("home", Constraints(template="home ___ home"), 0, [1, 1], 0),  # no word is two
    ("", Constraints(("doctor",)), 0, [0], 0),
]


@pytest.mark.parametrize(("text", "constraints", "complete", "found", "met"), TABLE)
def test_table(text, constraints, complete, found, met):
    words = tokenise(text)
    assert found_spans(words, constraints) == [bool(one) for one in found]
    values = {metric.name: metric.value for metric in coverage([words], [constraints])}
    assert values == {
        "coverage": 100 * complete,
        "coverage_words": pytest.approx(100 * sum(found) / len(found)),
        "constraints_met": 100 * met,
    }


def test_shares_are_of_all_given_words():
    outputs = [tokenise("a b c ."), tokenise("x .")]
    values = {m.name: m.value for m in coverage(outputs, [Constraints(("a", "b", "c")), Constraints(("y",))])}
    assert values == {"coverage": 50, "coverage_words": 75, "constraints_met": 50}


def test_without_given_words_there_is_no_share_of_them():
    names = [metric.name for metric in coverage([("Hello", ".")], [Constraints(template="___")])]
    assert names == ["coverage", "constraints_met"]
