"""Metrics that outputs report about their chains: acceptance rates, seconds, own NLL, and length."""

from collections.abc import Sequence

from redraft.evaluation.metric import Metric, mean, share
from redraft.evaluation.ngrams import WordSequence
from redraft.evaluation.outputs import SystemOutput
from redraft.sentence import Action


def length(outputs: Sequence[WordSequence]) -> Metric:
    """Mean number of words, including punctuation."""
    return mean("length", "words", [float(len(words)) for words in outputs], tok="redraft", punctuation="yes")


def own_nll(outputs: Sequence[SystemOutput]) -> list[Metric]:
    """NLL per word by the target model, if every output states it. The metric is named after the model."""
    values = [one.nll for one in outputs if one.nll is not None]
    targets = {one.target for one in outputs}
    if len(values) < len(outputs) or len(targets) > 1 or None in targets:
        return []
    return [mean(f"nll_by_{targets.pop()}", "nats", values, tok="redraft")]


def acceptance(outputs: Sequence[SystemOutput]) -> list[Metric]:
    """Percent of proposed revisions that were accepted, for each action that was proposed and for all together.

    Drawing the old word again counts as rejected, as in the authors' logs.
    """
    groups = {"all": tuple(Action), **{action.value: (action,) for action in Action}}
    metrics = []
    for name, actions in groups.items():
        accepted = [100.0 * sum(step.accepted for step in one.trace if step.action in actions) for one in outputs]
        tried = [float(sum(step.action in actions for step in one.trace)) for one in outputs]
        if any(tried):
            traced = str(sum(bool(one.trace) for one in outputs))
            metrics.append(share(f"acceptance_{name}", "%", accepted, tried, same_word="rejected", traced=traced))
    return metrics


def seconds(outputs: Sequence[SystemOutput]) -> list[Metric]:
    """Seconds per sentence and per step, if every output states them."""
    spent = [one.seconds for one in outputs if one.seconds is not None]
    if len(spent) < len(outputs):
        return []
    metrics = [mean("seconds", "s", spent)]
    steps = [float(one.steps) for one in outputs if one.steps is not None]
    if len(steps) == len(outputs) and any(steps):
        metrics.append(share("seconds_per_step", "s", spent, steps))
    return metrics
