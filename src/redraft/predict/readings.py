"""A token classifier: an XLNet over the states of two LSTM language models, so it need not learn the language first.

Its features for every word, and for the end of the sentence, are the forward state before the word, the backward state
from the word on, and log-probabilities of the word itself, of the sentence without it, and of frequent words in its
place or in the gap before it. The LSTM models are frozen.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from redraft.models.lstm.network import LstmLM
from redraft.models.vocabulary import END, START, Vocabulary
from redraft.models.xlnet.network import XlnetConfig, XlnetLayers, initialise

_NUM_SCORES = 7
_LEAST = 1e-12
_SCALE = 0.2  # log-probabilities reach about -20: this scales them like the other inputs


class XlnetOverReadings(XlnetLayers):
    """From word ids to a score for every label. Only the layers are trained and saved, not the two LSTM models."""

    def __init__(self, config: XlnetConfig, num_labels: int, readers: tuple[LstmLM, LstmLM], vocabulary: Vocabulary):
        super().__init__(config)
        self.config = config
        forward, backward = readers
        self.input = nn.Linear(forward.config.size + backward.config.size + _NUM_SCORES, config.d_model)
        self.input_norm = nn.LayerNorm(config.d_model)
        self.classifier = nn.Linear(config.d_model, num_labels)
        self.apply(initialise)
        self._readers = readers  # in a tuple, so that they are not parameters of this module
        self._plain = torch.from_numpy(vocabulary.plain_ids)
        self._is_word = torch.from_numpy(vocabulary.is_word)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] of BOS, surface words and EOS, and which are real, to logits [rows, time, labels]."""
        hidden = self.input_norm(self.input(self.features(ids, real.sum(1) - 2)))
        result: Tensor = self.classifier(self.both_sides(hidden, real))
        return result

    @torch.no_grad()
    def features(self, ids: Tensor, num_words: Tensor) -> Tensor:
        """The features of each place, [rows, time, size]; zero at BOS."""
        place = torch.arange(ids.shape[1] - 1)[:, None]  # index of a word; the last one is EOS
        real = place <= num_words
        ahead, behind = (
            _read(reader, order, real)
            for reader, order in zip(self._readers, (ids.T, self._reversed(ids, num_words)), strict=True)
        )
        # The backward model has read the words from a place on after num_words - place steps. One step earlier, when it
        # has read only what follows, it predicts the word at the place.
        from_word, after_word = num_words - place, num_words - 1 - place
        has_after, after_word = after_word >= 0, after_word.clamp(min=0)
        number = torch.zeros(real.shape, dtype=torch.long)  # index of a place among the real ones
        number[real] = torch.arange(int(real.sum()))
        at_word, at_after = (number.gather(0, where.clamp(min=0))[real] for where in (from_word, after_word))
        is_inside, is_first = has_after[real], (place == 0).expand(real.shape)[real]
        scores = [
            ahead.log_next,
            ahead.log_second * is_inside,  # of the next word if this one were left out
            behind.log_next[at_after] * is_inside,
            behind.log_second[at_after] * is_inside,
            behind.log_next[at_word] * is_first,  # of the start of the sentence
            _log_fit(ahead.frequent, behind.frequent[at_after]),  # of frequent words instead of this one
            _log_fit(ahead.frequent, behind.frequent[at_word]),  # and before it
        ]
        known = torch.cat([ahead.hidden, behind.hidden[at_word], torch.stack(scores, -1) * _SCALE], -1)
        found = known.new_zeros(len(ids), ids.shape[1], known.shape[-1])
        found[:, 1:][real.T] = known[number.T[real.T]]
        return found

    def _reversed(self, ids: Tensor, num_words: Tensor) -> Tensor:
        """Words in reverse order and plain form, after a start symbol: [time, rows]."""
        is_word = self._is_word[ids]
        opening = is_word & (is_word.cumsum(1) == 1)
        plain = torch.where(opening, self._plain[ids], ids)
        place = torch.arange(ids.shape[1])
        back = plain.gather(1, (num_words[:, None] + 1 - place).clamp(min=0))
        back[:, 0] = START
        return back.masked_fill_(place > num_words[:, None], END).T


class _Reading(NamedTuple):
    """The features of one LSTM at the real places, one row each."""

    hidden: Tensor
    log_next: Tensor  # log-probability of the next word in its order
    log_second: Tensor  # and of the one after that, in the same place
    frequent: Tensor  # probabilities of frequent words


def _read(reader: LstmLM, ids: Tensor, real: Tensor) -> _Reading:
    """Read ids [time + 1, rows] except the last of each row."""
    hidden = reader(ids[:-1])[0][real]
    second = torch.cat([ids[2:], ids.new_full((1, ids.shape[1]), END)])
    log_head = reader.softmax.log_head(hidden)
    log_next, log_second = (
        reader.softmax.log_prob_given(log_head, hidden, targets[real]) for targets in (ids[1:], second)
    )
    return _Reading(hidden, log_next, log_second, log_head[:, : reader.softmax.edges[0]].exp_())


def _log_fit(left: Tensor, right: Tensor) -> Tensor:
    """Log of the sum over words of the product of two probabilities, row by row."""
    return (left * right).sum(1).clamp_(min=_LEAST).log_()
