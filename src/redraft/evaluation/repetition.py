"""Sentences that repeat themselves: the paper's three clauses, each on its own, and any of them.

A sentence repeats a unigram that occurs more than three times, a bigram more than twice, a trigram more than once. Read
to the letter ("all") this counts commas and articles: one news sentence in eight fails, three times what the paper
reports for people. The variant "content" passes over n-grams that hold no content word.
"""

from collections.abc import Sequence

from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import WordSequence, ngram_counts
from redraft.stopwords import is_content

_MOST = {"unigram": (1, 3), "bigram": (2, 2), "trigram": (3, 1)}  # clause: n, and how often is not yet a repetition


def repetition(outputs: Sequence[WordSequence]) -> list[Metric]:
    """Percent of sentences that each clause finds, in both variants."""
    return [metric for content in (False, True) for metric in _variant(outputs, content)]


def repeats(words: WordSequence, clause: str, *, content: bool = False) -> bool:
    """Whether a sentence repeats itself by one clause."""
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
