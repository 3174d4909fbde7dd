"""Test sets as in the paper: keywords of a sentence, or a sentence with words removed, with the sentence as reference.

The seed determines one shuffle of the source. Every set takes its sentences in that order, so sets of one seed share
most of their sentences, and a set does not depend on which others are made with it.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from redraft import corpus, text
from redraft.errors import ConstraintError, InputError
from redraft.files import replacing
from redraft.models.base import Words
from redraft.sentence import BLANK, Constraints
from redraft.stopwords import is_content

Strategy = Literal["random", "middle"]
_FEWEST_WORDS = 4  # of a sentence to mask, so that a quarter of it is a word


@dataclass(frozen=True)
class TestSet:
    """A named list of inputs, each a JSON object for ``redraft generate --input``."""

    __test__ = False  # keeps pytest from collecting the class

    name: str
    inputs: tuple[dict[str, Any], ...]


def read_sentences(path: Path) -> list[Words]:
    """The distinct sentences of a file, one per line, tokenised or natural."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    sentences = dict.fromkeys(tuple(text.tokenise(unicodedata.normalize("NFC", line))) for line in lines)
    found = [words for words in sentences if words]
    if not found:
        raise InputError(f"{path} is empty; give a file with one sentence per line")
    return found


def held_out_lines(folder: Path, names: Sequence[str] = ()) -> list[str]:
    """The lines of a corpus that no model is trained on; with ``names``, those of the files of these names."""
    paths = {path.name: path for path in corpus.text_files(folder)}
    if unknown := [name for name in names if name not in paths]:
        raise InputError(f"{folder} has no {unknown[0]}; choose some of: {', '.join(paths)}")
    chosen = [path for name, path in paths.items() if not names or name in names]
    found = [line for path in chosen for line in corpus.lines(path) if corpus.is_held_out(line)]
    if not found:
        raise InputError(f"{folder} has no held-out line in {', '.join(path.name for path in chosen)}")
    return list(dict.fromkeys(found))


def keyword_set(sentences: Sequence[Words], k: int, num: int, seed: int) -> TestSet:
    """``num`` inputs of ``k`` distinct content words each, in sentence order."""
    rng = np.random.default_rng([seed, k])
    made = (
        {"keywords": list(_draw_keywords(words, k, rng)), "reference": text.detokenise(words)}
        for words in _shuffled(sentences, seed)
        if len(content_words(words)) >= k
    )
    return TestSet(f"keywords-k{k}", _take(made, num, f"k{k}", f"at least {k} content words"))


def infill_set(sentences: Sequence[Words], strategy: Strategy, ratio: int, num: int, seed: int) -> TestSet:
    """``num`` templates with ``ratio`` percent of the words masked; adjacent masked words form one blank.

    The number of words of each blank is beside the template, for systems that must be told.
    """
    rng = np.random.default_rng([seed, ratio])
    masked = (
        (words, _mask(len(words), strategy, ratio, rng))
        for words in _shuffled(sentences, seed)
        if len(words) >= _FEWEST_WORDS
    )
    made = (
        {
            "template": template(words, hidden),
            "lengths": blank_lengths(len(words), hidden),
            "reference": text.detokenise(words),
        }
        for words, hidden in masked
    )
    name = f"{strategy}-{ratio}"
    return TestSet(f"infill-{name}", _take(made, num, name, f"at least {_FEWEST_WORDS} words"))


def content_words(words: Words) -> list[str]:
    """The distinct content words of a sentence, in order of first occurrence.

    The first word is skipped: its capital hides how it is written inside a sentence.
    """
    first = text.opening(words)
    places: dict[str, str] = {}
    for index, word in enumerate(words):
        if index != first and is_content(word):
            places.setdefault(word.lower(), word)
    return list(places.values())


def template(words: Words, masked: frozenset[int]) -> str:
    """The sentence with each run of masked words replaced by one blank."""
    runs = _runs(len(words), masked)
    return " ".join(BLANK if hidden else text.detokenise([words[i] for i in run]) for hidden, run in runs)


def blank_lengths(length: int, masked: frozenset[int]) -> list[int]:
    """The number of words of each run of masked words."""
    return [len(list(run)) for hidden, run in _runs(length, masked) if hidden]


def _runs(length: int, masked: frozenset[int]) -> Iterator[tuple[bool, Iterator[int]]]:
    return groupby(range(length), key=masked.__contains__)


def write_sets(sets: Sequence[TestSet], out: Path) -> list[Path]:
    """Write all sets to one ``.jsonl`` file, or each to its own file in a folder."""
    if out.suffix == ".jsonl":
        return [_write([one for made in sets for one in made.inputs], out)]
    return [_write(made.inputs, out / f"{made.name}.jsonl") for made in sets]


def _write(inputs: Sequence[dict[str, Any]], path: Path) -> Path:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in inputs)
    return path


def _shuffled(sentences: Sequence[Words], seed: int) -> Iterator[Words]:
    order = np.random.default_rng(seed).permutation(len(sentences))
    return (sentences[i] for i in order)


def _draw_keywords(words: Words, k: int, rng: np.random.Generator) -> Words:
    choices = content_words(words)
    return tuple(choices[i] for i in sorted(rng.choice(len(choices), size=k, replace=False)))


def _mask(length: int, strategy: Strategy, ratio: int, rng: np.random.Generator) -> frozenset[int]:
    """Positions to mask: the given share of the words, rounded down, but at least one and not all."""
    num = min(length - 1, max(1, length * ratio // 100))
    if strategy == "random":
        return frozenset(int(place) for place in rng.choice(length, size=num, replace=False))
    start = (length - num) // 2
    return frozenset(range(start, start + num))


def _take(made: Iterator[dict[str, Any]], num: int, prefix: str, needed: str) -> tuple[dict[str, Any], ...]:
    inputs = list(islice(filter(_is_usable, made), num))
    if len(inputs) < num:
        raise InputError(
            f"the source has only {len(inputs)} sentences with {needed}; use --num {len(inputs)} or less"
            if inputs
            else f"the source has no sentence with {needed}; give another file"
        )
    return tuple({"id": f"{prefix}-{number}", **one} for number, one in enumerate(inputs, 1))


def _is_usable(given: dict[str, Any]) -> bool:
    """Whether it is a valid input: a source line may contain a blank or control characters."""
    try:
        if "template" in given:
            made = Constraints(template=given["template"], lengths=given["lengths"])
            return BLANK not in given["reference"] and bool(made)
        return bool(Constraints(keywords=tuple(given["keywords"])))
    except ConstraintError:
        return False
