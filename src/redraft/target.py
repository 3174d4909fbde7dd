"""The target distribution: what a chain is to draw from, as a value with a name.

    log target(sentence) = power x log p(sentence) + soft scores + (0 where the hard constraints hold, else -inf)

A penalty, a length preference, a taste for a word: whatever shapes the text belongs here, the same for every sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redraft import checks, text
from redraft.errors import InputError
from redraft.models.base import Scorer, Words
from redraft.numerics import Array
from redraft.sentence import clean, contains, num_words


@dataclass(frozen=True)
class SoftScore:
    """A log weight for every sentence, given its words.

    ``length`` is the number of words that it prefers; ``word`` is a word that it prefers, by ``weight`` nats.
    """

    name: str
    log_weight: Callable[[Words], float]
    length: int | None = None
    word: str | None = None
    weight: float = 0.0


def prefer(word: str, weight: float) -> SoftScore:
    """Multiply the probability of sentences with a word or phrase by exp(weight); a negative one makes it rarer."""
    if not np.isfinite(weight):
        raise InputError(f"the weight of {word!r} must be a number, not {weight}")
    word = clean(word, "a word that is preferred")
    wanted = [part.lower() for part in text.tokenise(word)]
    if not wanted:
        raise InputError("a word that is preferred must not be empty")

    def log_weight(words: Words) -> float:
        return weight * contains([w.lower() for w in words], wanted)

    return SoftScore(f"prefer {word}={weight:g}", log_weight, word=word, weight=weight)


def prefer_length(words: int, strength: float = 0.5) -> SoftScore:
    """Divide the probability by exp(strength) for every word that a sentence is longer or shorter."""
    if words < 1 or not (strength >= 0 and np.isfinite(strength)):
        raise InputError(f"a length must be at least 1 and its strength at least 0, not {words} and {strength}")
    return SoftScore(f"length {words}~{strength:g}", lambda given: -strength * abs(num_words(given) - words), words)


def penalise_repetition(strength: float) -> SoftScore:
    """Divide the probability by exp(strength) for every time that a word of some weight comes again.

    Words of up to three letters and punctuation are left out: good sentences repeat "the" and ",".
    """
    if not (strength >= 0 and np.isfinite(strength)):
        raise InputError(f"a repetition penalty must be a number of at least 0, not {strength}")

    def log_weight(words: Words) -> float:
        weighty = [word.lower() for word in words if len(word) > 3 and text.is_word(word)]
        return -strength * (len(weighty) - len(set(weighty)))

    return SoftScore(f"repetition {strength:g}", log_weight)


def power_of(temperature: float) -> float:
    """The power of the target at a temperature."""
    checks.check_positive("the temperature", temperature)
    return 1 / temperature


@dataclass(frozen=True)
class Target:
    """A scoring model, a power (1 / temperature) and soft scores. The hard constraints are each chain's own."""

    scorer: Scorer
    power: float = 1.0
    soft: tuple[SoftScore, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.power < np.inf:
            raise InputError(f"the power must be above 0, not {self.power}")

    @property
    def name(self) -> str:
        power = "" if self.power == 1 else f"^{self.power:g}"
        return " + ".join([f"{self.scorer.name}{power}", *(score.name for score in self.soft)])

    @property
    def length(self) -> int | None:
        """The number of words that is wished for; None for any."""
        return min((score.length for score in self.soft if score.length is not None), default=None)

    def cost(self, log_prob: float, log_target: float, num_words: int) -> float:
        """What the best sentence has least of: the model's part a word, or long ones would lose; soft scores whole.

        A wish for a length that was shared out among the words would be too weak to be heard.
        """
        if log_target == -np.inf:
            return np.inf
        model = self.power * log_prob
        return -model / (num_words + 1) - (log_target - model)

    def log_weights(self, log_probs: Array, sentences: Sequence[Words]) -> Array:
        """Log target weights from the scorer's log-probabilities."""
        weights = self.power * log_probs
        for score in self.soft:
            weights = weights + np.array([score.log_weight(words) for words in sentences])
        return weights
