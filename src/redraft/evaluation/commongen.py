"""CommonGen: sentences with a set of concepts, each in any form, in any order; several references each.

A file has a line for each set: the concepts with spaces between them, then the references, separated by tabs. A concept
may name its part of speech, as in ``catch_V`` or ``dog_N``.
"""

from pathlib import Path
from typing import Any

from redraft.errors import ConstraintError, InputError
from redraft.evaluation.testsets import TestSet
from redraft.inflect import forms
from redraft.language import Choice, Term, write
from redraft.sentence import Constraints

_PARTS_OF_SPEECH = {"V": "VERB", "N": "NOUN", "A": "ADJ"}


def commongen_set(source: Path, num: int | None = None, *, verbatim: bool = False) -> TestSet:
    """The first ``num`` sets of a file, or all. With ``verbatim``, concepts are words in the given order."""
    try:
        lines = source.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    chosen = [(number, line) for number, line in enumerate(lines, 1) if line.strip()][:num]
    if not chosen:
        raise InputError(f"{source} is empty; give a file with concepts, a tab and references on each line")
    inputs = tuple(_input(line, f"{source}, line {number}", number, verbatim) for number, line in chosen)
    return TestSet("commongen-verbatim" if verbatim else "commongen", inputs)


def _input(line: str, where: str, number: int, verbatim: bool) -> dict[str, Any]:
    concepts, *references = (part.strip() for part in line.split("\t"))
    references = [one for one in references if one]
    if not concepts or not references:
        raise InputError(f"{where}: give the concepts, then each reference after a tab")
    names = [_name_and_pos(one) for one in concepts.split()]
    keywords = [name if verbatim else keyword(name, pos) for name, pos in names]
    made = {
        "id": f"commongen-{number}",
        "keywords": keywords,
        **({} if verbatim else {"order": "any"}),
        "references": references,
    }
    try:
        Constraints(keywords, order="given" if verbatim else "any")
    except ConstraintError as error:
        raise InputError(f"{where}: {error}") from error
    return made


def _name_and_pos(concept: str) -> tuple[str, str | None]:
    name, mark, pos = concept.rpartition("_")
    return (name, _PARTS_OF_SPEECH[pos]) if mark and name and pos in _PARTS_OF_SPEECH else (concept, None)


def keyword(lemma: str, pos: str | None) -> str:
    """Any form of a concept. One that the dictionary does not know is taken for a noun."""
    for kind in (pos, None, "NOUN"):
        try:
            forms(lemma, kind, lemma)
        except ConstraintError:
            continue
        return write((Choice(((Term(lemma, True, kind),),)),))
    raise InputError(f"no forms of the concept {lemma!r} are known")
