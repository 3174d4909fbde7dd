"""All metrics of a system's outputs, their ratios to the human references, and the differences between two systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from redraft import text
from redraft.errors import InputError
from redraft.evaluation import two_sample
from redraft.evaluation.bleu import bleu
from redraft.evaluation.captions import captions, coverage_forms
from redraft.evaluation.chains import acceptance, length, own_nll, seconds
from redraft.evaluation.coverage import coverage
from redraft.evaluation.diversity import distinct, entropy
from redraft.evaluation.fluency import fluency
from redraft.evaluation.judge import JudgeReading, JudgeScore
from redraft.evaluation.keyword_fit import Swapped, keyword_fit, swapped_texts
from redraft.evaluation.metric import Bootstrap, Difference, Figure, Metric, quotient
from redraft.evaluation.outputs import SystemOutput
from redraft.evaluation.repetition import repetition
from redraft.evaluation.self_bleu import self_bleu
from redraft.evaluation.stock_phrases import stock_phrases
from redraft.numerics import Array
from redraft.sentence import Constraints

# Metrics that are meaningful only relative to those of the human references.
RATIOS = ("nll_token", "keyword_fit", "self_bleu4", "distinct2", "entropy4", "length")

_LEAST_HUMAN = 1e-6  # below this the ratio is meaningless


@dataclass(frozen=True)
class Judged:
    """A judge's readings of texts, and the judge's part of the signature.

    ``readings`` has all texts of ``texts_to_judge``. Without those of ``swapped_texts_to_judge``, keyword fit is left
    out.
    """

    readings: Mapping[str, JudgeReading]
    settings: dict[str, str]

    def scores(self, texts: Sequence[str]) -> list[JudgeScore]:
        return [self.readings[one].score for one in texts]

    def features(self, texts: Sequence[str]) -> Array | None:
        """The features of the texts [texts, size]; None if any text has none."""
        found = [self.readings[one].features for one in texts]
        known = [one for one in found if one is not None]
        return np.stack(known).astype(np.float64) if len(known) == len(found) and known else None


@dataclass(frozen=True)
class Material:
    """The input of the metrics. Metrics that need a missing part are left out.

    ``references`` are one or more texts per output. Ratios to human text and the two-sample test use the first.
    """

    outputs: Sequence[SystemOutput]
    constraints: Sequence[Constraints] | None = None
    references: Sequence[Sequence[str]] | None = None
    judged: Judged | None = None

    @property
    def human(self) -> "Material | None":
        """The first references, as outputs."""
        if self.references is None:
            return None
        pairs = zip(self.outputs, self.references, strict=True)
        outputs = [SystemOutput(one.id, several[0], tuple(text.tokenise(several[0]))) for one, several in pairs]
        return Material(outputs, self.constraints, None, self.judged)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.outputs]

    def swapped(self) -> list[Swapped | None]:
        """The texts with the keywords of other inputs swapped in."""
        return [] if self.constraints is None else swapped_texts(self.texts, self.constraints)


class Omission(NamedTuple):
    """A metric that was left out, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Measured:
    """All metrics that can be computed from the material, and those that were left out."""

    metrics: Sequence[Metric]
    left_out: Sequence[Omission]


def texts_to_judge(material: Material) -> list[str]:
    """The texts that the judge must read: the outputs and the first references."""
    human = material.human
    return [*material.texts, *(human.texts if human else ())]


def swapped_texts_to_judge(material: Material) -> list[str]:
    """The texts that the judge must score for keyword fit: outputs and references with swapped keywords."""
    human = material.human
    swapped = [*material.swapped(), *(human.swapped() if human else ())]
    return [one.text for one in swapped if one is not None]


def metrics_of(material: Material) -> Measured:
    """All metrics that can be computed from the material, some with their ratio to the human references."""
    human = material.human
    by_people = {} if human is None else {metric.name: metric for metric in _metrics(human, RATIOS)}
    metrics: list[Metric] = []
    left_out: list[Omission] = []
    if material.judged is not None:
        found = _two_sample(material, human, material.judged)
        metrics += () if isinstance(found, str) else found
        left_out += [Omission(name, found) for name in two_sample.NAMES] if isinstance(found, str) else ()
    for metric in _metrics(material):
        metrics.append(metric)
        if metric.name not in by_people:
            continue
        name, below = f"{metric.name}_to_human", by_people[metric.name]
        if below.value > _LEAST_HUMAN:
            metrics.append(quotient(name, metric, below, over="human"))
        else:
            left_out.append(Omission(name, f"the references have a {metric.name} of {below.value:.3g}"))
    return Measured(metrics, left_out)


def _metrics(material: Material, names: Sequence[str] | None = None) -> list[Metric]:
    """The metrics of the texts; all, or only those with the given names."""
    outputs, judged = material.outputs, material.judged
    words = [one.words for one in outputs]
    found: list[Metric | None] = []
    if names is None and material.constraints is not None:
        found += [*coverage(words, material.constraints), *coverage_forms(words, material.constraints)]
    if judged is not None:
        found += fluency(words, judged.scores(material.texts), judged.settings)
        found.append(_keyword_fit(material, judged))
    if names is None:
        found += own_nll(outputs)
    if names is None and material.references is not None:
        references = [[text.tokenise(one) for one in several] for several in material.references]
        found += [*bleu(words, [several[0] for several in references]), *captions(words, references)]
    found += [self_bleu(words), distinct(words), entropy(words)]
    if names is None:
        found += [stock_phrases(words), *repetition(words)]
    found += [length(words), *(() if names else (*acceptance(outputs), *seconds(outputs)))]
    return [metric for metric in found if metric is not None and (names is None or metric.name in names)]


def _keyword_fit(material: Material, judged: Judged) -> Metric | None:
    swapped = material.swapped()
    readings = [None if one is None else judged.readings.get(one.text) for one in swapped]
    if not swapped or any(one is not None and found is None for one, found in zip(swapped, readings, strict=True)):
        return None
    others = [None if one is None else one.score for one in readings]
    return keyword_fit(judged.scores(material.texts), swapped, others, judged.settings)


def _two_sample(material: Material, human: Material | None, judged: Judged) -> list[Metric] | str:
    """The metrics of the two-sample test, or the reason why it is impossible."""
    own, other = judged.features(material.texts), judged.features(human.texts) if human else None
    reason = two_sample.why_not(material.texts, human.texts if human else None, has_features=own is not None)
    if reason is not None or own is None or other is None:
        return reason or "the judge gives no hidden states"
    return two_sample.two_sample(own, other, judged.settings)


def figures(metrics: Sequence[Metric], bootstrap: Bootstrap) -> list[Figure]:
    """The values of the metrics with intervals and signatures."""
    counts = bootstrap.counts(len(metrics[0]))
    return [bootstrap.figure(metric, counts) for metric in metrics]


def differences(first: Sequence[Metric], second: Sequence[Metric], bootstrap: Bootstrap) -> list[Difference]:
    """First minus second, for every metric that both have. Sentence i of both must belong to the same input."""
    if len(first[0]) != len(second[0]):
        raise InputError(f"{len(first[0])} outputs cannot be compared with {len(second[0])}")
    counts = bootstrap.counts(len(first[0]))
    others = {metric.name: metric for metric in second}
    return [bootstrap.difference(one, others[one.name], counts) for one in first if one.name in others]
