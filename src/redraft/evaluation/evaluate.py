"""All metrics of a system's outputs, and the differences between two systems."""

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.errors import InputError
from redraft.evaluation.bleu import bleu
from redraft.evaluation.chains import acceptance, length, own_nll, seconds
from redraft.evaluation.coverage import coverage
from redraft.evaluation.diversity import distinct, entropy
from redraft.evaluation.fluency import fluency
from redraft.evaluation.judge import Score
from redraft.evaluation.metric import Bootstrap, Difference, Figure, Metric
from redraft.evaluation.ngrams import Words
from redraft.evaluation.outputs import Output
from redraft.evaluation.repetition import repetition
from redraft.evaluation.self_bleu import self_bleu
from redraft.sentence import Constraints


@dataclass(frozen=True)
class Judged:
    """A judge's scores of the outputs, in their order, and the judge's part of the signature."""

    scores: Sequence[Score]
    settings: dict[str, str]


@dataclass(frozen=True)
class Material:
    """What is evaluated. Metrics whose material is None are left out."""

    outputs: Sequence[Output]
    constraints: Sequence[Constraints] | None = None
    references: Sequence[Words] | None = None
    judged: Judged | None = None


def metrics_of(material: Material) -> list[Metric]:
    """Every metric that the material allows."""
    outputs = material.outputs
    words = [one.words for one in outputs]
    found: list[Metric | None] = []
    if material.constraints is not None:
        found += coverage(words, material.constraints)
    if material.judged is not None:
        found += fluency(words, material.judged.scores, material.judged.settings)
    found += own_nll(outputs)
    if material.references is not None:
        found += bleu(words, material.references)
    found += [self_bleu(words), distinct(words), entropy(words), *repetition(words)]
    found += [length(words), *acceptance(outputs), *seconds(outputs)]
    return [metric for metric in found if metric is not None]


def figures(metrics: Sequence[Metric], bootstrap: Bootstrap) -> list[Figure]:
    """The metrics' values with intervals and signatures."""
    counts = bootstrap.counts(len(metrics[0]))
    return [bootstrap.figure(metric, counts) for metric in metrics]


def differences(first: Sequence[Metric], second: Sequence[Metric], bootstrap: Bootstrap) -> list[Difference]:
    """First minus second, for every metric that both have. Sentence i of both must be for the same input."""
    if len(first[0]) != len(second[0]):
        raise InputError(f"{len(first[0])} outputs cannot be compared with {len(second[0])}")
    counts = bootstrap.counts(len(first[0]))
    others = {metric.name: metric for metric in second}
    return [bootstrap.difference(one, others[one.name], counts) for one in first if one.name in others]
