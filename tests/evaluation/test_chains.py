import pytest

from redraft.evaluation.chains import acceptance, length, own_nll, seconds
from redraft.evaluation.outputs import SystemOutput, TraceStep
from redraft.sentence import Action

R, I = Action.REPLACE, Action.INSERT  # noqa: E741


def output(*steps, seconds=None, num_steps=None):
    return SystemOutput(
        "1", "a", ("a",), trace=tuple(TraceStep(*one) for one in steps), seconds=seconds, steps=num_steps
    )


def test_rates_are_of_all_tries_of_an_action():
    outputs = [output((R, True), (R, True), (I, False)), output((R, False), (R, False)), output()]
    metrics = {metric.name: metric for metric in acceptance(outputs)}
    assert {name: metric.value for name, metric in metrics.items()} == {
        "acceptance_all": 40,
        "acceptance_replace": 50,
        "acceptance_insert": 0,
    }
    assert metrics["acceptance_all"].settings["traced"] == "2"


def test_no_trace_no_rates():
    assert acceptance([output(), output()]) == []


def test_seconds():
    values = {m.name: m.value for m in seconds([output(seconds=1.0, num_steps=10), output(seconds=2.0, num_steps=50)])}
    assert values == {"seconds": pytest.approx(1.5), "seconds_per_step": pytest.approx(0.05)}


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ([output(seconds=1.0), output()], []),
        ([output(seconds=1.0)], ["seconds"]),
        ([output(seconds=1.0, num_steps=0)], ["seconds"]),
    ],
)
def test_seconds_that_are_not_told_are_left_out(outputs, names):
    assert [metric.name for metric in seconds(outputs)] == names


def told(nll, target):
    return SystemOutput("1", "a", ("a",), nll=nll, target=target)


def test_nll_is_that_of_the_model_that_decided():
    (metric,) = own_nll([told(1.0, "tiny"), told(2.0, "tiny")])
    assert (metric.name, metric.value) == ("nll_by_tiny", 1.5)


@pytest.mark.parametrize("other", [told(2.0, "large"), told(None, "tiny"), told(2.0, None)])
def test_nll_of_different_or_unknown_models_is_left_out(other):
    assert own_nll([told(1.0, "tiny"), other]) == []


def test_length_counts_punctuation():
    assert length([["Yes", "."], ["No", ",", "sir", "."]]).value == 3
