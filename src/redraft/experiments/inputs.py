"""Inputs of the systems: the test sets of the paper, made from one file, and the inputs that the paper prints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.batch import Input
from redraft.errors import InputError
from redraft.evaluation import testsets
from redraft.evaluation.testsets import TestSet
from redraft.experiments import paper_samples
from redraft.models.base import Words
from redraft.records import constraints_of

VALIDATION = Path("one-billion-word/dev.txt")
PAPER_KEYWORDS, PAPER_TEMPLATES = "paper-keywords", "paper-templates"
PAPER_KEYWORD = "paper-keyword"  # those of PAPER_KEYWORDS with one keyword, for systems that take no more
TestSets = Mapping[str, Sequence[Input]]


@dataclass(frozen=True)
class TestSetColumn:
    """A test set and its title in a table."""

    set: str
    title: str


KEYWORDS = tuple(TestSetColumn(f"keywords-k{k}", f"k={k}") for k in (1, 2, 3, 4))
INFILLING = tuple(
    TestSetColumn(f"infill-{strategy}-{ratio}", f"{strategy} {ratio} %")
    for strategy in ("middle", "random")
    for ratio in (25, 50, 75)
)
_PRINTED = {
    PAPER_KEYWORDS: (*paper_samples.TABLE3, *paper_samples.TABLE8),
    PAPER_KEYWORD: tuple(one for one in paper_samples.TABLE8 if len(one.given["keywords"]) == 1),
    PAPER_TEMPLATES: paper_samples.TABLE9,
}


def first_inputs(sets: TestSets, name: str, num: int) -> Sequence[Input]:
    """The first inputs of a test set; of those that the paper prints, all."""
    return sets[name] if name in _PRINTED else sets[name][:num]


def source(data: Path, name: Path) -> Path:
    """The path of a file of the data folder, which must exist."""
    if not (data / name).is_file():
        raise InputError(f"{data} has no {name.as_posix()}, one sentence per line; give the folder that holds it")
    return data / name


def make_sets(names: Iterable[str], test: Path, num: int, seed: int) -> dict[str, list[Input]]:
    """The test sets with these names, from a file of sentences.

    A set of a larger ``num`` starts with the inputs of a smaller one.
    """
    wanted = list(dict.fromkeys(names))
    sentences = []
    if any(name not in _PRINTED for name in wanted):
        if not test.is_file():
            raise InputError(f"there is no {test} with test sentences, one per line; give --test or the right --data")
        sentences = testsets.read_sentences(test)
    return {name: _inputs(_make(name, sentences, num, seed).inputs) for name in wanted}


def _make(name: str, sentences: Sequence[Words], num: int, seed: int) -> TestSet:
    if name in _PRINTED:
        return TestSet(name, tuple(one.input for one in _PRINTED[name]))
    kind, _, rest = name.partition("-")
    if kind == "keywords":
        return testsets.keyword_set(sentences, int(rest.removeprefix("k")), num, seed)
    strategy, _, ratio = rest.partition("-")
    return testsets.infill_set(sentences, "middle" if strategy == "middle" else "random", int(ratio), num, seed)


def _inputs(given: Sequence[dict[str, Any]]) -> list[Input]:
    return [Input(number, one["id"], one, constraints_of(one)) for number, one in enumerate(given, 1)]
