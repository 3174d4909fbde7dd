"""Learning from the LSTM pair of a pack: an XLNet that has read little text begins with what they know of words.

A teacher tells two things. Its embeddings are those of the student's pieces that are whole words, to begin with. And
where a word begins it gives a distribution over what comes next, which says more of a place than the one word that
happened to stand there.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.errors import InputError
from redraft.models.lstm import AdaptiveSoftmax
from redraft.models.lstm_files import load_pair, readers_sha256
from redraft.models.output_layer import Columns
from redraft.models.pack import Pack
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import END, START, UNKNOWN
from redraft.models.xlnet import Order, XlnetLM

SHARE = 0.9  # of the loss where the teacher speaks; the rest is the text's
_NUM_CLUSTERS = 2  # of its softmax, beside the head: the teacher is silent on rarer words, which cost most of its time


class _Place(NamedTuple):
    """The words of a sentence in the order of reading, and where the pieces of each begin."""

    words: list[int]
    starts: list[int]


class TeacherBatch(NamedTuple):
    """Sentences that are read in one order, and how many predictions are made of them."""

    order: Order
    sentences: Sequence[NDArray[np.uint16]]
    num: int


class Teacher:
    """The LSTM models of a pack, for a student with these pieces."""

    def __init__(self, pack: Pack, splitter: SentencePieces):
        (forward, backward), self._vocabulary = load_pair(pack)
        self.identity = readers_sha256(pack)
        self._splitter = splitter
        self._networks = {Order.FORWARD: forward, Order.BACKWARD: backward}
        self._num_words = forward.softmax.edges[: _NUM_CLUSTERS + 1][-1]
        self._pieces = {word: splitter.split(word) for word in self._vocabulary.words[START + 1 :]}
        self._first_pieces = {
            Order.FORWARD: self._first(0, splitter.end),
            Order.BACKWARD: self._first(-1, splitter.begin),
        }
        self._first_words = {order: self._begun(pieces) for order, pieces in self._first_pieces.items()}
        self._other_words = {
            order: (self._first_words[order][pieces] != torch.arange(self._num_words)).nonzero().squeeze(1)
            for order, pieces in self._first_pieces.items()
        }

    def _first(self, which: int, end: int) -> Tensor:
        """For each word that it speaks of, the piece that is read first."""
        common = self._vocabulary.words[START + 1 : self._num_words]
        pieces = {END: end, UNKNOWN: 0, START: 0}
        pieces |= {START + 1 + at: self._pieces[word][which] for at, word in enumerate(common)}
        return torch.tensor([pieces[i] for i in range(self._num_words)])

    def _begun(self, first_pieces: Tensor) -> Tensor:
        """For each piece the most frequent word that it begins, -1 for none: ids are ranks."""
        words = torch.full((self._splitter.size,), -1)
        words[first_pieces.flip(0)] = torch.arange(self._num_words).flip(0)
        return words

    @torch.no_grad()
    def begin(self, network: XlnetLM) -> None:
        """Give the pieces that are words the embeddings of these words, at the scale that a fresh network has."""
        known = [(i, pieces[0]) for i, pieces in enumerate(self._pieces.values(), START + 1) if len(pieces) == 1]
        if not known:
            raise InputError("no word of the teacher is a piece of the student; choose another pack or other pieces")
        words, pieces = (torch.tensor(ids) for ids in zip(*known, strict=True))
        given = self._networks[Order.FORWARD].embedding.weight[words]
        own = network.transformer.word_embedding.weight
        width = min(own.shape[1], given.shape[1])
        own[pieces, :width] = given[:, :width] * (own.std() / given.std())

    @torch.no_grad()
    def lesson(self, parts: Sequence[TeacherBatch], columns: Columns) -> "SoftTargets":
        """Its share of what should be predicted of parts of a batch, one after the other."""
        starts = np.cumsum([0, *(part.num for part in parts)]).tolist()
        spoken = []
        for order in self._networks:
            heard = [
                (start, *self._hear(part)) for start, part in zip(starts, parts, strict=False) if part.order is order
            ]
            if heard:
                states = torch.cat([own for _, own, _ in heard])
                places = torch.full((starts[-1],), -1)
                places[torch.cat([rows + start for start, _, rows in heard])] = torch.arange(len(states))
                spoken.append((self._view(order, columns), states, places))
        return SoftTargets(spoken, starts[-1], len(columns.ids))

    def _hear(self, part: TeacherBatch) -> tuple[Tensor, Tensor]:
        """Its states [spoken, d] where it speaks, and which predictions of the part these are [spoken]."""
        found = [self._place(sentence, part.order) for sentence in part.sentences]
        longest = 1 + max((len(place.words) for place in found if place), default=0)
        inputs = torch.full((longest, len(found)), START)
        rows = torch.full((longest, len(found)), -1)
        offset = 0
        for column, (sentence, place) in enumerate(zip(part.sentences, found, strict=True)):
            if place:
                inputs[1 : len(place.words) + 1, column] = torch.tensor(place.words)
                spoken = torch.tensor([*place.words, END])
                at = torch.tensor([*place.starts, len(sentence)]) + offset
                rows[: len(spoken), column] = torch.where(self._speaks_of(spoken), at, -1)
            offset += len(sentence) + 1
        hidden, _ = self._networks[part.order](inputs)
        here = rows >= 0
        return hidden[here], rows[here]

    def _speaks_of(self, words: Tensor) -> Tensor:
        return (words < self._num_words) & (words != UNKNOWN)

    def _view(self, order: Order, columns: Columns) -> "_View":
        # Most pieces begin one word at the most, so the likeliest is taken with a look-up and only the rest are added.
        pieces = self._first_pieces[order]
        column_of = torch.full((self._splitter.size,), -1)
        column_of[columns.ids] = torch.arange(len(columns.ids))
        first = self._first_words[order][columns.ids]
        others = self._other_words[order]
        others = others[column_of[pieces[others]] >= 0]
        weights = columns.log_weights.exp()
        return _View(
            self._networks[order].softmax,
            first.clamp(min=0),
            torch.where(first < 0, 0.0, weights),
            others,
            column_of[pieces[others]],
            weights[column_of[pieces[others]]],
        )

    def _place(self, sentence: NDArray[np.uint16], order: Order) -> _Place | None:
        """None for the odd sentence whose words cannot be told from its pieces."""
        words = text.tokenise(self._splitter.join(sentence.tolist()))
        pieces = [self._pieces.get(word) or self._splitter.split(word) for word in words]
        if [i for own in pieces for i in own] != sentence.tolist():
            return None
        ids = self._vocabulary.ids(words)
        if order is Order.BACKWARD:
            ids, pieces = ids[::-1], pieces[::-1]
        return _Place(ids, np.cumsum([0, *map(len, pieces)])[:-1].tolist())


class _View(NamedTuple):
    """Where the columns of a step stand in what the teacher says: for each the likeliest word, and the other words."""

    softmax: AdaptiveSoftmax
    first: Tensor  # [columns], words
    weights: Tensor  # [columns]
    others: Tensor  # [n], words
    columns_of_others: Tensor  # [n]
    weights_of_others: Tensor  # [n]

    def probabilities(self, states: Tensor) -> Tensor:
        """Probabilities of the pieces that stand for the vocabulary, [n, columns]; those of a row sum to 1."""
        log_probs = self.softmax.log_prob(states, _NUM_CLUSTERS)
        log_probs[:, [UNKNOWN, START]] = -torch.inf
        result = log_probs[:, self.first].float().exp_().mul_(self.weights)
        result.index_add_(1, self.columns_of_others, log_probs[:, self.others].float().exp_() * self.weights_of_others)
        return result.div_(result.sum(1, keepdim=True))


class SoftTargets:
    """What a teacher says of the predictions of a batch, worked out when they are asked for."""

    def __init__(self, spoken: Sequence[tuple[_View, Tensor, Tensor]], num: int, num_columns: int):
        self._spoken, self._shape = spoken, (num, num_columns)

    @torch.no_grad()
    def __call__(self, rows: slice) -> Tensor:
        """Its share of some predictions, [predictions, columns]; those on which it is silent are zero."""
        num, num_columns = self._shape
        told = torch.zeros(len(range(num)[rows]), num_columns)
        for view, states, places in self._spoken:
            at = places[rows]
            here = at >= 0
            if here.any():
                told[here] = view.probabilities(states[at[here]]).mul_(SHARE)
        return told
