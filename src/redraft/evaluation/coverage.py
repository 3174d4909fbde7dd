"""Exact constraint coverage: the words of the text are checked with ``Constraints.met_by``."""

from collections.abc import Sequence

from redraft import text
from redraft.evaluation.metric import Metric, mean, share
from redraft.evaluation.ngrams import WordSequence
from redraft.sentence import BLANK, Constraints, Template

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
    """Whether each keyword, or each known part of the template, occurs at all."""
    return [_anywhere(span).met_by(words) for span in _spans(constraints)]


def _spans(constraints: Constraints) -> list[str]:
    if constraints.template is None:
        return list(constraints.keywords)
    return [text.detokenise(part) for part in Template.parse(constraints.template).parts]


def _anywhere(span: str) -> Constraints:
    # A template rather than a keyword, since a known part may be only punctuation.
    return Constraints(template=f"{BLANK} {span} {BLANK}", endings=(), max_words=_NO_LIMIT)


def _given_words_only(constraints: Constraints) -> Constraints:
    return Constraints(
        keywords=constraints.keywords,
        template=constraints.template,
        order=constraints.order,
        endings=(),
        max_words=_NO_LIMIT,
    )
