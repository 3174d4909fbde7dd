"""Sentences that repeat themselves: the three rules of the paper, separately and combined.

A sentence is repetitive if a unigram occurs more than three times, a bigram more than twice, or a trigram more than
once. Taken literally ("all"), this counts commas and articles: one news sentence in eight is repetitive, three times
as many as the paper reports for human text. The variant "content" ignores n-grams without a content word.
"""

from collections.abc import Sequence

from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import WordSequence, ngram_counts
from redraft.stopwords import is_content

_MOST = {
    "unigram": (1, 3),
    "bigram": (2, 2),
    "trigram": (3, 1),
}  # rule: n, and the largest count that is not a repetition


def repetition(outputs: Sequence[WordSequence]) -> list[Metric]:
    """Percent of repetitive sentences by each rule, in both variants."""
    return [metric for content in (False, True) for metric in _variant(outputs, content)]


def repeats(words: WordSequence, clause: str, *, content: bool = False) -> bool:
    """Whether a sentence is repetitive by one rule."""
    order, most = _MOST[clause]
    return any(
        count > most and (not content or any(map(is_content, ngram)))
        for ngram, count in ngram_counts(words, order).items()
    )


def _variant(outputs: Sequence[WordSequence], content: bool) -> list[Metric]:
    found = {clause: [repeats(words, clause, content=content) for words in outputs] for clause in _MOST}
    found["any"] = [any(clauses) for clauses in zip(*found.values(), strict=True)]
    suffix, variant = ("_content", "content") if content else ("", "all")
    return [
        mean(f"repetition_{clause}{suffix}", "%", [100.0 * one for one in flags], rule=_rule(clause), words=variant)
        for clause, flags in found.items()
    ]


def _rule(clause: str) -> str:
    return ",".join(f"{order}-gram>{most}" for name, (order, most) in _MOST.items() if clause in (name, "any"))
