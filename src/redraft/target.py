"""The target distribution: what chains draw from, as a value with a name.

    log target(sentence) = power x log p(sentence) + soft scores + (0 if the hard constraints hold, else -inf)

Everything that shapes the text belongs here: penalties, preferred lengths, preferred words.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redraft import checks, text
from redraft.errors import InputError
from redraft.models.base import Scorer, Words
from redraft.numerics import Array
from redraft.phrases import clean, contains, lowered, num_words


@dataclass(frozen=True)
class SoftScore:
    """A soft constraint: a function that adds a log weight to every sentence, given its words.

    Examples:
        >>> exclaim = redraft.SoftScore("exclaim", lambda words: 2.0 * (words[-1] == "!"))
        >>> exclaim.log_weight(("Look", "at", "the", "dog", "!"))
        2.0
        >>> shaped = redraft.load(recipe="l-mcmc-c", soft=[exclaim])
        >>> "exclaim" in shaped.generate("dog", steps=5).signature
        True

    Attributes:
        name: Name in signatures.
        log_weight: Function from the words of a sentence to nats that are added to its log-probability.
        length: Preferred number of words, if it prefers one.
        word: Preferred word, if it prefers one.
        weight: Nats by which ``word`` is preferred.
    """

    name: str
    log_weight: Callable[[Words], float]
    length: int | None = None
    word: str | None = None
    weight: float = 0.0


def prefer(word: str, weight: float) -> SoftScore:
    """Multiply the probability of sentences with a word or phrase by exp(weight). A negative weight makes it rarer.

    Examples:
        >>> river = redraft.prefer("river", 2.0)
        >>> river.log_weight(("The", "river", "is", "wide", "."))
        2.0
        >>> shaped = redraft.load(recipe="l-mcmc-c", soft=[river])
    """
    checks.check_text("a word that is preferred", word)
    if not _is_number(weight):
        raise InputError(f"the weight of {word!r} must be a number, not {weight}")
    word = clean(word, "a word that is preferred")
    wanted = tuple(lowered(text.tokenise(word)))
    if not wanted:
        raise InputError("a word that is preferred must not be empty")
    return SoftScore(f"prefer {word}={weight:g}", _Preference(wanted, weight), word=word, weight=weight)


def prefer_length(words: int, strength: float = 0.5) -> SoftScore:
    """Divide the probability by exp(strength) for every word that a sentence is longer or shorter.

    Examples:
        >>> short = redraft.prefer_length(5, strength=0.5)
        >>> short.log_weight(("The", "river", "is", "wide", "."))  # one word short
        -0.5
        >>> shaped = redraft.load(recipe="l-mcmc-c", soft=[short])
    """
    if not (_is_number(words) and words >= 1 and _is_number(strength) and strength >= 0):
        raise InputError(f"a length must be at least 1 and its strength at least 0, not {words} and {strength}")
    return SoftScore(f"length {words}~{strength:g}", _PreferredLength(words, strength), words)


def penalise_repetition(strength: float) -> SoftScore:
    """Divide the probability by exp(strength) every time that a word of more than three letters is repeated.

    Shorter words and punctuation do not count: good sentences repeat "the" and ",".

    Examples:
        >>> no_echo = redraft.penalise_repetition(1.0)
        >>> no_echo.log_weight(("The", "river", "is", "a", "wide", "river", "."))
        -1.0
        >>> shaped = redraft.load(recipe="l-mcmc-c", soft=[no_echo])
    """
    if not (_is_number(strength) and strength >= 0):
        raise InputError(f"a repetition penalty must be a number of at least 0, not {strength}")
    return SoftScore(f"repetition {strength:g}", _RepetitionPenalty(strength))


# Classes and not closures, so that a writer with soft scores can be pickled.
@dataclass(frozen=True)
class _Preference:
    wanted: Words
    weight: float

    def __call__(self, words: Words) -> float:
        return self.weight * contains(lowered(words), self.wanted)


@dataclass(frozen=True)
class _PreferredLength:
    length: int
    strength: float

    def __call__(self, words: Words) -> float:
        return -self.strength * abs(num_words(words) - self.length)


@dataclass(frozen=True)
class _RepetitionPenalty:
    strength: float

    def __call__(self, words: Words) -> float:
        long = [word.lower() for word in words if len(word) > 3 and text.is_word(word)]
        return -self.strength * (len(long) - len(set(long)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


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
        """The preferred number of words; None for any."""
        return min((score.length for score in self.soft if score.length is not None), default=None)

    def cost(self, log_prob: float, log_target: float, num_words: int) -> float:
        """Ranking cost, lower is better.

        The model's part is per word, or long sentences would always lose. Soft scores count in full: divided by the
        number of words, a preferred length would have too little effect.
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
