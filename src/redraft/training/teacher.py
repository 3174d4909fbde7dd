"""Knowledge distillation: the LSTM pair of a pack teaches an XLNet.

The teacher helps in two ways. Its word embeddings initialise those pieces of the student that are whole words. And at
the start of each word its distribution over the next word serves as soft targets, which carry more information than
the one word that happens to follow in the text.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.errors import InputError
from redraft.models.lstm.files import load_pair, readers_sha256
from redraft.models.lstm.network import AdaptiveSoftmax
from redraft.models.output_layer import Columns
from redraft.models.pack import Pack
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import END, START, UNKNOWN
from redraft.models.xlnet.network import ReadingOrder, XlnetLM

SHARE = 0.9  # weight of the soft targets in the loss, where there are any; the text itself has the rest
_NUM_CLUSTERS = 2  # clusters of its softmax besides the head; rarer words cost most of the time and get no soft targets


class _WordStarts(NamedTuple):
    """The words of a sentence in reading order, and the index of the first piece of each."""

    words: list[int]
    starts: list[int]


class TeacherBatch(NamedTuple):
    """Sentences that are read in one order, and the number of predictions made for them."""

    order: ReadingOrder
    sentences: Sequence[NDArray[np.uint16]]
    num: int


class Teacher:
    """The LSTM models of a pack, as the teacher of a student with the given pieces."""

    def __init__(self, pack: Pack, splitter: SentencePieces):
        (forward, backward), self._vocabulary = load_pair(pack)
        self.identity = readers_sha256(pack)
        self._splitter = splitter
        self._networks = {ReadingOrder.FORWARD: forward, ReadingOrder.BACKWARD: backward}
        self._num_words = forward.softmax.edges[: _NUM_CLUSTERS + 1][-1]
        self._pieces = {word: splitter.split(word) for word in self._vocabulary.words[START + 1 :]}
        self._first_pieces = {
            ReadingOrder.FORWARD: self._first(0, splitter.end),
            ReadingOrder.BACKWARD: self._first(-1, splitter.begin),
        }
        self._first_words = {order: self._most_frequent_words(pieces) for order, pieces in self._first_pieces.items()}
        self._other_words = {
            order: (self._first_words[order][pieces] != torch.arange(self._num_words)).nonzero().squeeze(1)
            for order, pieces in self._first_pieces.items()
        }

    def _first(self, which: int, end: int) -> Tensor:
        """For each word that has soft targets, the piece that is read first."""
        common = self._vocabulary.words[START + 1 : self._num_words]
        pieces = {END: end, UNKNOWN: 0, START: 0}
        pieces |= {START + 1 + at: self._pieces[word][which] for at, word in enumerate(common)}
        return torch.tensor([pieces[i] for i in range(self._num_words)])

    def _most_frequent_words(self, first_pieces: Tensor) -> Tensor:
        """For each piece the most frequent word that it starts, -1 for none. Ids of words are frequency ranks."""
        words = torch.full((self._splitter.size,), -1)
        words[first_pieces.flip(0)] = torch.arange(self._num_words).flip(0)
        return words

    @torch.no_grad()
    def initialise(self, network: XlnetLM) -> None:
        """Copy the embeddings of words to pieces that are whole words, at the scale of the network's own."""
        known = [(i, pieces[0]) for i, pieces in enumerate(self._pieces.values(), START + 1) if len(pieces) == 1]
        if not known:
            raise InputError("no word of the teacher is a piece of the student; choose another pack or other pieces")
        words, pieces = (torch.tensor(ids) for ids in zip(*known, strict=True))
        given = self._networks[ReadingOrder.FORWARD].embedding.weight[words]
        own = network.transformer.word_embedding.weight
        width = min(own.shape[1], given.shape[1])
        own[pieces, :width] = given[:, :width] * (own.std() / given.std())

    @torch.no_grad()
    def soft_targets(self, batches: Sequence[TeacherBatch], columns: Columns) -> "TeacherTargets":
        """Soft targets of the predictions of all batches, one batch after the other."""
        starts = np.cumsum([0, *(batch.num for batch in batches)]).tolist()
        parts = []
        for order in self._networks:
            found = [
                (start, *self._states(batch))
                for start, batch in zip(starts, batches, strict=False)
                if batch.order is order
            ]
            if found:
                states = torch.cat([own for _, own, _ in found])
                state_of = torch.full((starts[-1],), -1)
                state_of[torch.cat([rows + start for start, _, rows in found])] = torch.arange(len(states))
                parts.append((self._projection(order, columns), states, state_of))
        return TeacherTargets(parts, starts[-1], len(columns.ids))

    def _states(self, batch: TeacherBatch) -> tuple[Tensor, Tensor]:
        """Teacher states [n, d] where there are soft targets, and the predictions of the batch they belong to [n]."""
        found = [self._word_starts(sentence, batch.order) for sentence in batch.sentences]
        longest = 1 + max((len(one.words) for one in found if one), default=0)
        inputs = torch.full((longest, len(found)), START)
        rows = torch.full((longest, len(found)), -1)
        offset = 0
        for column, (sentence, one) in enumerate(zip(batch.sentences, found, strict=True)):
            if one:
                inputs[1 : len(one.words) + 1, column] = torch.tensor(one.words)
                targets = torch.tensor([*one.words, END])
                at = torch.tensor([*one.starts, len(sentence)]) + offset
                rows[: len(targets), column] = torch.where(self._is_covered(targets), at, -1)
            offset += len(sentence) + 1
        hidden, _ = self._networks[batch.order](inputs)
        here = rows >= 0
        return hidden[here], rows[here]

    def _is_covered(self, words: Tensor) -> Tensor:
        """Whether there are soft targets where the text has these words."""
        return (words < self._num_words) & (words != UNKNOWN)

    def _projection(self, order: ReadingOrder, columns: Columns) -> "_Projection":
        # Most pieces start at most one word, so the most frequent one is looked up and only the others are added.
        pieces = self._first_pieces[order]
        column_of = torch.full((self._splitter.size,), -1)
        column_of[columns.ids] = torch.arange(len(columns.ids))
        first = self._first_words[order][columns.ids]
        others = self._other_words[order]
        others = others[column_of[pieces[others]] >= 0]
        weights = columns.log_weights.exp()
        return _Projection(
            self._networks[order].softmax,
            first.clamp(min=0),
            torch.where(first < 0, 0.0, weights),
            others,
            column_of[pieces[others]],
            weights[column_of[pieces[others]]],
        )

    def _word_starts(self, sentence: NDArray[np.uint16], order: ReadingOrder) -> _WordStarts | None:
        """None for the rare sentence whose words cannot be recovered from its pieces."""
        words = text.tokenise(self._splitter.join(sentence.tolist()))
        pieces = [self._pieces.get(word) or self._splitter.split(word) for word in words]
        if [i for own in pieces for i in own] != sentence.tolist():
            return None
        ids = self._vocabulary.ids(words)
        if order is ReadingOrder.BACKWARD:
            ids, pieces = ids[::-1], pieces[::-1]
        return _WordStarts(ids, np.cumsum([0, *map(len, pieces)])[:-1].tolist())


class _Projection(NamedTuple):
    """Maps the teacher's words to the columns of a step: the most frequent word of each and others."""

    softmax: AdaptiveSoftmax
    first: Tensor  # [columns], words
    weights: Tensor  # [columns]
    others: Tensor  # [n], words
    columns_of_others: Tensor  # [n]
    weights_of_others: Tensor  # [n]

    def probabilities(self, states: Tensor) -> Tensor:
        """Probabilities of the sampled columns of the vocabulary [n, columns]; each row sums to 1."""
        log_probs = self.softmax.log_prob(states, _NUM_CLUSTERS)
        log_probs[:, [UNKNOWN, START]] = -torch.inf
        result = log_probs[:, self.first].float().exp_().mul_(self.weights)
        result.index_add_(1, self.columns_of_others, log_probs[:, self.others].float().exp_() * self.weights_of_others)
        return result.div_(result.sum(1, keepdim=True))


class TeacherTargets:
    """Soft targets of the predictions of a batch, computed on demand."""

    def __init__(self, parts: Sequence[tuple[_Projection, Tensor, Tensor]], num: int, num_columns: int):
        self._parts, self._shape = parts, (num, num_columns)

    @torch.no_grad()
    def __call__(self, rows: slice) -> Tensor:
        """Weighted soft targets of some predictions [predictions, columns]; rows without soft targets are zero."""
        num, num_columns = self._shape
        result = torch.zeros(len(range(num)[rows]), num_columns)
        for projection, states, state_of in self._parts:
            at = state_of[rows]
            here = at >= 0
            if here.any():
                result[here] = projection.probabilities(states[at[here]]).mul_(SHARE)
        return result
