"""Precision, recall and F1 of each label, in the layout of the paper's Table 7."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.predict.classifier import LABELS

_NAMES = {"copy": "Copy", "replace": "Replacement", "insert": "Insertion", "delete": "Deletion"}
SETS = ("masked-lm", "random", "whole")
_TITLES = {"masked-lm": "Masked LM", "random": "Random", "whole": "Whole"}


@dataclass(frozen=True)
class LabelScores:
    """Scores computed from counts [true label, predicted label]. A label that never occurs scores 0."""

    counts: NDArray[np.int64]

    @property
    def table(self) -> NDArray[np.float64]:
        """Rows: the labels, then their mean (macro-average). Columns: precision, recall, F1."""
        hits = np.diag(self.counts).astype(np.float64)
        precision = _ratio(hits, self.counts.sum(0))
        recall = _ratio(hits, self.counts.sum(1))
        scores = np.stack([precision, recall, _ratio(2 * precision * recall, precision + recall)], 1)
        return np.concatenate([scores, scores.mean(0, keepdims=True)])

    @property
    def macro_f1(self) -> float:
        return float(self.table[-1, 2])

    def as_json(self) -> dict[str, Any]:
        names = [*LABELS, "macro-average"]
        rows = {
            name: dict(zip(("precision", "recall", "f1"), map(float, row.round(4)), strict=True))
            for name, row in zip(names, self.table, strict=True)
        }
        return {**rows, "words": int(self.counts.sum())}


def _ratio(part: NDArray[np.float64], whole: NDArray[Any]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return result


def markdown(scores: Mapping[str, LabelScores]) -> str:
    """The paper's Table 7, with the validation sets that were scored."""
    sets = [name for name in SETS if name in scores]
    lines = [
        "| | " + " | ".join(f"{_TITLES[name]} P | R | F1" for name in sets) + " |",
        "|---|" + "---|" * (3 * len(sets)),
    ]
    tables = [scores[name].table for name in sets]
    for row, label in enumerate([*(_NAMES[label] for label in LABELS), "Macro-average"]):
        values = [f"{value:.3f}" for table in tables for value in table[row]]
        lines.append(f"| {label} | " + " | ".join(values) + " |")
    return "\n".join(lines)
