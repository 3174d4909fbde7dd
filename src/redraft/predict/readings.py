"""An XLNet over what two LSTM language models have read: a token classifier that need not learn the language first.

For every word, and for the end of the sentence, it is given what the forward model knows before the word, what the
backward model knows from the word on, and how likely the two find the word itself, the sentence without it, and
frequent words in its place or in the gap before it. The LSTM models stay as they are.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from redraft.models.lstm.network import LstmLM
from redraft.models.vocabulary import END, START, Vocabulary
from redraft.models.xlnet.network import XlnetConfig, XlnetLayers, initialise

_NUM_SCORES = 7
_LEAST = 1e-12
_SCALE = 0.2  # log-probabilities go down to some -20: this makes them as large as the other inputs


class XlnetOverReadings(XlnetLayers):
    """Ids of words in, a score for every label out. What is trained and saved are the layers, not the two readers."""

    def __init__(self, config: XlnetConfig, num_labels: int, readers: tuple[LstmLM, LstmLM], vocabulary: Vocabulary):
        super().__init__(config)
        self.config = config
        forward, backward = readers
        self.input = nn.Linear(forward.config.size + backward.config.size + _NUM_SCORES, config.d_model)
        self.input_norm = nn.LayerNorm(config.d_model)
        self.classifier = nn.Linear(config.d_model, num_labels)
        self.apply(initialise)
        self._readers = readers  # in a tuple, which keeps them out of this module's parameters
        self._plain = torch.from_numpy(vocabulary.plain_ids)
        self._is_word = torch.from_numpy(vocabulary.is_word)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] of BOS, words as they are shown, EOS, and which are real, to logits [rows, time, labels]."""
        hidden = self.input_norm(self.input(self.features(ids, real.sum(1) - 2)))
        result: Tensor = self.classifier(self.both_sides(hidden, real))
        return result

    @torch.no_grad()
    def features(self, ids: Tensor, num_words: Tensor) -> Tensor:
        """What the readers know at each place, [rows, time, size]; nothing at BOS."""
        place = torch.arange(ids.shape[1] - 1)[:, None]  # of a word among the words; the last one is EOS
        real = place <= num_words
        ahead, behind = (
            _read(reader, order, real)
            for reader, order in zip(self._readers, (ids.T, self._reversed(ids, num_words)), strict=True)
        )
        # The backward model has read the words from a place on once it has read num_words - place of them; it predicts
        # the word at the place one step before, when it has read what comes after.
        from_word, after_word = num_words - place, num_words - 1 - place
        has_after, after_word = after_word >= 0, after_word.clamp(min=0)
        number = torch.zeros(real.shape, dtype=torch.long)  # of a place among the real ones
        number[real] = torch.arange(int(real.sum()))
        at_word, at_after = (number.gather(0, where.clamp(min=0))[real] for where in (from_word, after_word))
        is_inside, is_first = has_after[real], (place == 0).expand(real.shape)[real]
        scores = [
            ahead.log_next,
            ahead.log_second * is_inside,  # of the next word, were this one not there
            behind.log_next[at_after] * is_inside,
            behind.log_second[at_after] * is_inside,
            behind.log_next[at_word] * is_first,  # of the begin of the sentence
            _log_fit(ahead.frequent, behind.frequent[at_after]),  # of frequent words in the place of this one
            _log_fit(ahead.frequent, behind.frequent[at_word]),  # and before it
        ]
        known = torch.cat([ahead.hidden, behind.hidden[at_word], torch.stack(scores, -1) * _SCALE], -1)
        found = known.new_zeros(len(ids), ids.shape[1], known.shape[-1])
        found[:, 1:][real.T] = known[number.T[real.T]]
        return found

    def _reversed(self, ids: Tensor, num_words: Tensor) -> Tensor:
        """Words from the last to the first in their plain form, after a start: [time, rows]."""
        is_word = self._is_word[ids]
        opening = is_word & (is_word.cumsum(1) == 1)
        plain = torch.where(opening, self._plain[ids], ids)
        place = torch.arange(ids.shape[1])
        back = plain.gather(1, (num_words[:, None] + 1 - place).clamp(min=0))
        back[:, 0] = START
        return back.masked_fill_(place > num_words[:, None], END).T


class _Reading(NamedTuple):
    """What a reader knows at the real places, a row each."""

    hidden: Tensor
    log_next: Tensor  # how likely it finds the word that comes next in its order
    log_second: Tensor  # and the one after that, in the same place
    frequent: Tensor  # probabilities of frequent words


def _read(reader: LstmLM, ids: Tensor, real: Tensor) -> _Reading:
    """Read ids [time + 1, rows] up to the last of them."""
    hidden = reader(ids[:-1])[0][real]
    second = torch.cat([ids[2:], ids.new_full((1, ids.shape[1]), END)])
    log_head = reader.softmax.log_head(hidden)
    log_next, log_second = (
        reader.softmax.log_prob_given(log_head, hidden, targets[real]) for targets in (ids[1:], second)
    )
    return _Reading(hidden, log_next, log_second, log_head[:, : reader.softmax.edges[0]].exp_())


def _log_fit(left: Tensor, right: Tensor) -> Tensor:
    """Log of the sum over words of the products of two probabilities, row by row."""
    return (left * right).sum(1).clamp_(min=_LEAST).log_()
