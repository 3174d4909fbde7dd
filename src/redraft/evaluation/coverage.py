"""Exact constraint coverage: the words of the text are checked with ``Constraints.met_by``."""

from collections.abc import Sequence

from redraft import text
from redraft.evaluation.metric import Metric, mean, share
from redraft.evaluation.ngrams import WordSequence
from redraft.phrases import occurrences
from redraft.sentence import Constraints

_NO_LIMIT = 1_000_000  # words


def coverage(outputs: Sequence[WordSequence], constraints: Sequence[Constraints]) -> list[Metric]:
    """Percent of sentences with all given words, of given words that occur, of sentences that meet all constraints."""
    pairs = list(zip(outputs, constraints, strict=True))
    complete = [100.0 * _given_words_only(wanted).met_by(words) for words, wanted in pairs]
    met = [100.0 * wanted.met_by(words) for words, wanted in pairs]
    found = [found_spans(words, wanted) for words, wanted in pairs]
    hits, wholes = [100.0 * sum(flags) for flags in found], [float(len(flags)) for flags in found]
    by_word = [share("coverage_words", "%", hits, wholes, match="exact", order="any")] if any(wholes) else []
    return [
        mean("coverage", "%", complete, match="exact", order="as-given"),
        *by_word,
        mean("constraints_met", "%", met, match="exact"),
    ]


def found_spans(words: WordSequence, constraints: Constraints) -> list[bool]:
    """Whether each required keyword, or each known part of the template, occurs at all, in any of its realisations."""
    shown = text.surface(words)
    return [bool(occurrences(part, shown)) for part in constraints.parts if not part.is_optional]


def _given_words_only(constraints: Constraints) -> Constraints:
    return Constraints(
        keywords=constraints.keywords,
        template=constraints.template,
        order=constraints.order,
        endings=(),
        max_words=_NO_LIMIT,
    )
