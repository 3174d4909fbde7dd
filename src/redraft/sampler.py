"""Algorithm 1 of the paper, over a batch of chains.

``init`` and ``step`` are all there is. A state holds what the next step needs; what happened is in the revision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.models.base import Target
from redraft.numerics import accept
from redraft.predict.legal import legal_table
from redraft.predict.prior import Move, Prior, draw_move
from redraft.revise.candidates import CandidateGenerator, slot_of
from redraft.revise.moves import Proposal, fills, propose
from redraft.sentence import Action, Constraints, Sentence


@dataclass(frozen=True, slots=True)
class State:
    """A chain between two steps. ``readings`` is what each model remembers of the sentence."""

    sentence: Sentence
    log_prob: float
    readings: tuple[Any, ...]

    @property
    def nll(self) -> float:
        """Negative log-likelihood per word, the end of the sentence counted."""
        return -self.log_prob / (len(self.sentence) + 1)


@dataclass(frozen=True, slots=True)
class Revision:
    """What a step did. ``nll`` is that of the sentence after it."""

    action: Action
    position: int
    old: str | None
    new: str | None
    log_ratio: float
    accepted: bool
    nll: float


@dataclass(frozen=True, slots=True)
class Chain:
    """What stays the same along a chain. Its generator is its own, so a batch cannot change its draws."""

    constraints: Constraints
    rng: np.random.Generator


class Sampler:
    """Predict and revise, with given models, for given actions."""

    def __init__(self, target: Target, candidates: CandidateGenerator, prior: Prior, actions: frozenset[Action]):
        self._target, self._candidates, self._prior, self._actions = target, candidates, prior, actions
        # One reading serves a model in all its roles; the target's comes first.
        self._readers = list(dict.fromkeys([target, *candidates.proposers]))
        self._proposer_at = [self._readers.index(proposer) for proposer in candidates.proposers]

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """The constraints alone are the first state."""
        return self._read([chain.constraints.start(chain.rng) for chain in chains], [()] * len(chains))

    def step(self, chains: Sequence[Chain], states: Sequence[State]) -> list[tuple[State, Revision | None]]:
        """Advance every chain by one step. A chain in which nothing may be touched stays, without a revision."""
        moves = self._predict(chains, states)
        able = [i for i, move in enumerate(moves) if move is not None]
        proposals = self._revise([chains[i] for i in able], [states[i] for i in able], [moves[i] for i in able])
        moved: dict[int, Sentence] = {}
        results: dict[int, tuple[State, Revision | None]] = {i: (state, None) for i, state in enumerate(states)}
        for i, proposal in zip(able, proposals, strict=True):
            if proposal is None:
                continue
            sentence = states[i].sentence.apply(proposal.edit)
            # Drawing the same word again is not an accepted revision.
            if accept(proposal.log_ratio, chains[i].rng) and sentence.words != states[i].sentence.words:
                moved[i] = sentence
            results[i] = (states[i], _revision(states[i], proposal))
        new_states = self._read(list(moved.values()), [states[i].readings for i in moved])
        for i, state in zip(moved, new_states, strict=True):
            revision = results[i][1]
            results[i] = (state, _accepted(revision, state)) if revision else (state, None)
        return [results[i] for i in range(len(states))]

    def _predict(self, chains: Sequence[Chain], states: Sequence[State]) -> list[Move | None]:
        sentences = [state.sentence for state in states]
        legal = [legal_table(s, chain.constraints, self._actions) for s, chain in zip(sentences, chains, strict=True)]
        tables = self._prior.log_tables(sentences, legal)
        return [draw_move(table, chain.rng) for table, chain in zip(tables, chains, strict=True)]

    def _revise(self, chains: Sequence[Chain], states: Sequence[State], moves: Sequence[Move]) -> list[Proposal | None]:
        if not chains:
            return []
        sentences = [state.sentence for state in states]
        slots = [slot_of(sentence, *move) for sentence, move in zip(sentences, moves, strict=True)]
        readings = [[state.readings[at] for state in states] for at in self._proposer_at]
        words = self._candidates.candidates(sentences, slots, [chain.constraints for chain in chains], readings)
        filled = [fills(move.action, candidates) for move, candidates in zip(moves, words, strict=True)]
        scores = self._target.log_probs_filled(slots, filled, [state.readings[0] for state in states])
        return [
            propose(*move, candidates, score, state.log_prob, chain.rng) if candidates else None
            for move, candidates, score, state, chain in zip(moves, words, scores, states, chains, strict=True)
        ]

    def _read(self, sentences: Sequence[Sentence], old: Sequence[tuple[Any, ...]]) -> list[State]:
        if not sentences:
            return []
        words = [sentence.words for sentence in sentences]
        readings = [
            reader.read(words, [before[at] if before else None for before in old])
            for at, reader in enumerate(self._readers)
        ]
        return [
            State(sentence, self._target.log_prob(read[0]), read)
            for sentence, *read_ in zip(sentences, *readings, strict=True)
            for read in [tuple(read_)]
        ]


def _revision(state: State, proposal: Proposal) -> Revision:
    edit = proposal.edit
    old = None if edit.action is Action.INSERT else state.sentence.words[edit.position]
    return Revision(edit.action, edit.position, old, edit.word, proposal.log_ratio, False, state.nll)


def _accepted(revision: Revision, state: State) -> Revision:
    return Revision(revision.action, revision.position, revision.old, revision.new, revision.log_ratio, True, state.nll)
