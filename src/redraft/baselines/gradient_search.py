"""TIGS (Liu et al., 2019): gradient search in the embedding space of the forward LSTM, for blanks of known length.

One word is revised at a time. Its free vector makes a step of Nesterov's gradient descent on the NLL of the sentence;
then the words nearest to the vector are scored, with the word that is there, and the best one stays. So the NLL of the
sentence never rises.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.draft.fillable import FillableWords
from redraft.errors import InputError
from redraft.models.base import Slot, Words
from redraft.models.lstm.embeddings import EmbeddingSpace
from redraft.models.lstm.reader import LstmReader, LstmReading
from redraft.sampler import Chain, Revision, State, Step
from redraft.sentence import ENDING, FREE, Action, Edit, Sentence
from redraft.target import Target

_MOMENTUM = 0.9


@dataclass(frozen=True)
class FreeVectors:
    """The free vector of each missing word that has one, and its velocity. Others are at the word's embedding."""

    moved: Mapping[int, tuple[Tensor, Tensor]] = field(default_factory=dict)


class GradientPasses:
    """Passes of the search over the missing words. ``start`` fills the blanks of a chain."""

    patience: int | None = 2  # passes without a change after which a sentence is left as it is

    def __init__(
        self,
        reader: LstmReader,
        space: EmbeddingSpace,
        start: Callable[[Chain], Sentence],
        *,
        num_nearest: int,
        rate: float,
    ):
        self.target = Target(reader)
        self._reader, self._space, self._start = reader, space, start
        self._num, self._rate = num_nearest, rate
        self._fillable = FillableWords(reader.words, reader.proposable)

    def with_power(self, power: float) -> "GradientPasses":
        """Refuse: the search goes to the likeliest sentence at any temperature."""
        raise InputError("gradient search has no temperature; leave it out")

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """The first sentences."""
        sentences = [self._start(chain) for chain in chains]
        readings = self._reader.read([one.words for one in sentences], [None] * len(sentences))
        return [self._state(*one, FreeVectors()) for one in zip(sentences, readings, strict=True)]

    def revise(self, chains: Sequence[Chain], states: Sequence[State], positions: Sequence[int]) -> list[Step]:
        """Revise one word of each sentence."""
        slots = [Slot(state.sentence.words, at, at + 1) for state, at in zip(states, positions, strict=True)]
        readings = [_reading(state) for state in states]
        moved = self._descend(states, readings, positions)
        fillings = self._fillings(chains, states, slots, [vector for vector, _ in moved])
        log_probs = self._reader.log_probs_filled(slots, fillings, readings)
        # The first of equals is the word that is there, so a word changes only for a better one.
        best = [words[int(found.argmax())][0] for words, found in zip(fillings, log_probs, strict=True)]
        edits = [Edit(Action.REPLACE, at, word) for at, word in zip(positions, best, strict=True)]
        sentences = [state.sentence.apply(edit) for state, edit in zip(states, edits, strict=True)]
        new_readings = self._reader.read([one.words for one in sentences], readings)
        gains = [float(found.max() - found[0]) for found in log_probs]
        steps = zip(states, edits, sentences, new_readings, moved, gains, strict=True)
        return [self._step(*one) for one in steps]

    def _step(
        self,
        old: State,
        edit: Edit,
        sentence: Sentence,
        reading: LstmReading,
        moved: tuple[Tensor, Tensor],
        gain: float,
    ) -> Step:
        """The new state, and what happened. The vector of a word that changed starts anew from its embedding."""
        changed = sentence.words != old.sentence.words
        others = {at: one for at, one in _vectors(old).items() if at != edit.position}
        new = self._state(sentence, reading, FreeVectors(others if changed else {**others, edit.position: moved}))
        before = old.sentence.words[edit.position]
        return new, Revision(edit.action, edit.position, before, edit.word, gain, changed, new.nll, new.sentence.words)

    def _descend(
        self, states: Sequence[State], readings: Sequence[LstmReading], positions: Sequence[int]
    ) -> list[tuple[Tensor, Tensor]]:
        """The free vectors after a step, and their velocities. The gradient is that at the place ahead."""
        at_words = self._space.vectors([reading.ids[at] for reading, at in zip(readings, positions, strict=True)])
        before = [
            _vectors(state).get(at, (vector, torch.zeros_like(vector)))
            for state, at, vector in zip(states, positions, at_words, strict=True)
        ]
        vectors, velocities = (torch.stack(part) for part in zip(*before, strict=True))
        gradients = self._space.gradients(vectors + _MOMENTUM * velocities, readings, positions)
        velocities = _MOMENTUM * velocities - self._rate * gradients
        return list(zip(vectors + velocities, velocities, strict=True))

    def _fillings(
        self, chains: Sequence[Chain], states: Sequence[State], slots: Sequence[Slot], vectors: Sequence[Tensor]
    ) -> list[list[Words]]:
        """The word that is there, then the others to be scored: those nearest to the vector, or the endings."""
        masks = np.stack([self._mask(*one) for one in zip(chains, states, slots, strict=True)])
        nearest = self._space.nearest(torch.stack(list(vectors)), masks, self._num)
        found: list[list[Words]] = []
        for chain, state, slot, near in zip(chains, states, slots, nearest, strict=True):
            names = [self._reader.words[i] for i in near]
            if state.sentence.locks[slot.start] == ENDING:
                names = list(chain.constraints.allowed_endings)
            elif slot.opens_sentence:
                names = [self._reader.vocabulary.plain(name) for name in names]
            present = slot.words[slot.start]
            others: list[Words] = [(name,) for name in dict.fromkeys(names) if name != present]
            allowed = [one for one in others if chain.constraints.has_no_banned_phrase(slot.fill(one))]
            found.append([(present,), *allowed])
        return found

    def _mask(self, chain: Chain, state: State, slot: Slot) -> NDArray[np.bool_]:
        follows_given = slot.start > 0 and state.sentence.locks[slot.start - 1] != FREE
        mask = self._fillable.mask(chain.constraints, follows_given=follows_given)
        return mask & self._reader.vocabulary.may_open if slot.opens_sentence else mask

    def _state(self, sentence: Sentence, reading: LstmReading, vectors: FreeVectors) -> State:
        log_prob = self._reader.log_prob(reading)
        return State(sentence, log_prob, log_prob, (reading, vectors))


def _reading(state: State) -> LstmReading:
    reading = state.readings[0]
    if not isinstance(reading, LstmReading):
        raise TypeError(f"{type(reading)} is no reading of an LSTM")
    return reading


def _vectors(state: State) -> Mapping[int, tuple[Tensor, Tensor]]:
    vectors = state.readings[1]
    return vectors.moved if isinstance(vectors, FreeVectors) else {}
