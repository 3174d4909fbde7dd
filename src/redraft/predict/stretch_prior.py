"""Where to rewrite: a prior over the stretches of a sentence.

A gap is drawn in proportion to the prior's mass over (action, position) inside it, mixed with a uniform distribution,
so that every gap can be drawn. Then the whole gap is taken, or a part of it, each part with the same probability.
"""

from collections.abc import Sequence

import numpy as np

from redraft.numerics import Array
from redraft.predict.legal import legal_table
from redraft.predict.prior import Prior
from redraft.sentence import Action, Constraints, Sentence
from redraft.stretches import Stretch, gaps_of, parts_of

_ACTIONS = frozenset({Action.REPLACE, Action.INSERT, Action.DELETE})
_EVEN = 0.3  # share of the uniform distribution over gaps
_WHOLE = 0.5  # how often a whole gap is taken


class StretchPrior:
    """Draws stretches, and computes the probability of drawing each."""

    def __init__(self, prior: Prior):
        self._prior = prior

    def draw(self, sentence: Sentence, constraints: Constraints, rng: np.random.Generator) -> Stretch | None:
        """Draw a stretch; None if nothing may be written."""
        gaps = gaps_of(sentence)
        if not gaps:
            return None
        (shares,) = self._shares([sentence], constraints)
        number = int(
            np.searchsorted(np.cumsum(shares), rng.random() * shares.sum(), side="right").clip(0, len(gaps) - 1)
        )
        first, last = gaps[number]
        if rng.random() < _WHOLE:
            return Stretch(number, first, last, is_whole_gap=True)
        parts = parts_of(sentence, (first, last))
        start, end = parts[int(rng.integers(len(parts)))]
        return Stretch(number, start, end, is_whole_gap=(start, end) == (first, last))

    def log_probs(self, sentences: Sequence[Sentence], stretches: Sequence[Stretch], constraints: Constraints) -> Array:
        """The log-probability of drawing each stretch of each sentence."""
        found = []
        for sentence, stretch, shares in zip(sentences, stretches, self._shares(sentences, constraints), strict=True):
            num_parts = len(parts_of(sentence, gaps_of(sentence)[stretch.gap]))
            part = (1 - _WHOLE) / num_parts + _WHOLE * stretch.is_whole_gap
            found.append(float(np.log(shares[stretch.gap] * part)))
        return np.array(found)

    def _shares(self, sentences: Sequence[Sentence], constraints: Constraints) -> list[Array]:
        """The probability of each gap."""
        legal = [legal_table(sentence, constraints, _ACTIONS) for sentence in sentences]
        tables = self._prior.log_tables(sentences, legal)
        return [_gap_shares(sentence, np.exp(table).sum(0)) for sentence, table in zip(sentences, tables, strict=True)]


def _gap_shares(sentence: Sentence, mass: Array) -> Array:
    """Shares of the gaps, from the mass of each position."""
    gaps = gaps_of(sentence)
    own = np.array([mass[first : last + 1].sum() for first, last in gaps])
    learned = own / own.sum() if own.sum() > 0 else np.full(len(gaps), 1 / len(gaps))
    return np.asarray(_EVEN / len(gaps) + (1 - _EVEN) * learned)
