"""Keyword fit with a toy judge that knows which words go together."""

import pytest

from redraft.evaluation.evaluate import Judged, Material, metrics_of, swapped_texts_to_judge, texts_to_judge
from redraft.evaluation.judge import JudgeReading, JudgeScore
from redraft.evaluation.keyword_fit import keyword_fit, swapped_texts
from redraft.evaluation.outputs import SystemOutput
from redraft.sentence import Constraints

INPUTS = [
    Constraints(keywords=("dog", "bone")),
    Constraints(keywords=("Paris",)),
    Constraints(keywords=("New York", "taxi")),
]
TEXTS = ["The dog's  old bone .", "Paris is old, said Paris.", "A taxi in New York."]


def swapped(texts, inputs=INPUTS):
    return [None if one is None else (one.text, one.num_keywords) for one in swapped_texts(texts, inputs)]


def test_keywords_of_the_next_input_that_has_as_many():
    assert swapped(TEXTS) == [
        ("The New York's  old taxi .", 2),  # not a space is changed
        ("New York is old, said Paris.", 1),  # no other has one keyword: the next, as many as are needed
        ("A bone in dog.", 2),  # in the places of the keywords, wherever they are
    ]


def test_first_word_may_have_a_capital():
    assert swapped(["Dogs like dog and bone.", "Dog ate bone.", "Bone dog."], [INPUTS[0]] * 2 + INPUTS[2:])[:2] == [
        ("Dogs like New York and taxi.", 2),
        ("New York ate taxi.", 2),
    ]
    assert swapped(["Bone.", "x"], [Constraints(keywords=("bone",)), Constraints(keywords=("taxi",))])[0] == (
        "Taxi.",
        1,
    )
    assert swapped(["A Bone.", "x"], [Constraints(keywords=("bone",)), Constraints(keywords=("taxi",))])[0] is None


def test_only_what_is_there_is_counted():
    assert swapped(["The dog.", "Nothing.", "dogs bones"]) == [("The New York.", 1), None, None]
    assert swapped(["The dog."], INPUTS[:1]) == [None]
    template = Constraints(template="The ___ .")
    assert swapped(["The dog."] * 2, [template, template]) == [None, None]


def test_by_hand():
    found = swapped_texts(TEXTS, INPUTS)
    metric = keyword_fit(
        [JudgeScore(10.0, 5)] * 3, found, [JudgeScore(14.0, 5), JudgeScore(10.5, 5), JudgeScore(9.0, 5)], {"judge": "x"}
    )
    assert metric.value == pytest.approx((4 + 0.5 - 1) / (2 + 1 + 2))
    assert metric.settings["judge"] == "x"
    assert keyword_fit([JudgeScore(1.0, 1)], [None], [None], {}) is None


def test_a_judge_of_sense():
    """A verb costs a nat after the noun that it goes with and three after any other; a stock phrase takes any noun."""
    verbs = {"dog": "barks", "taxi": "stops", "moon": "shines"}
    inputs = [Constraints(keywords=(noun,)) for noun in verbs]
    sense = [f"The {noun} {verb}." for noun, verb in verbs.items()]

    def nll(text):
        *_, noun, last = text.rstrip(".").split()
        return 3.0 if last in verbs.values() and verbs.get(noun) != last else 1.0

    def measured(texts):
        outputs = [SystemOutput(str(i), one, tuple(one.split())) for i, one in enumerate(texts)]
        material = Material(outputs, inputs, [(one,) for one in sense])
        needed = [*texts_to_judge(material), *swapped_texts_to_judge(material)]
        judged = Judged({one: JudgeReading(JudgeScore(nll(one), 5), None) for one in needed}, {})
        metrics = metrics_of(Material(outputs, inputs, material.references, judged)).metrics
        found = {metric.name: metric.value for metric in metrics}
        return found["keyword_fit"], found["keyword_fit_to_human"]

    assert measured(sense) == (2, 1)
    assert measured([f"It was the end of the {noun}." for noun in verbs]) == (0, 0)
    assert measured(["The dog stops.", "The taxi shines.", "The moon barks."]) == (-2, -1)
