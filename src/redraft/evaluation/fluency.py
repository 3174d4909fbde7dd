"""Negative log-likelihood by a judge: per token as in the paper, and per word to compare tokenizers."""

from collections.abc import Sequence

from redraft.evaluation.judge import JudgeScore
from redraft.evaluation.metric import Metric, mean
from redraft.evaluation.ngrams import WordSequence


def fluency(outputs: Sequence[WordSequence], scores: Sequence[JudgeScore], settings: dict[str, str]) -> list[Metric]:
    """Mean over sentences of NLL / (n + 1) in nats, for n tokens of the judge or n words; the end counts as one."""
    per_token = [score.nll / score.num_tokens for score in scores]
    per_word = [score.nll / (len(words) + 1) for words, score in zip(outputs, scores, strict=True)]
    return [
        mean("nll_token", "nats", per_token, **settings),
        mean("nll_word", "nats", per_word, **settings, tok="redraft"),
    ]
