"""Algorithm 1 of the paper, over a batch of chains.

``init`` and ``step`` are all there is. A state holds what the next step needs; what happened is in the revision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.models.base import Reader, Target, Words
from redraft.numerics import accept
from redraft.predict.legal import legal_table
from redraft.predict.prior import Move, Prior, draw_move
from redraft.revise.candidates import CandidateGenerator, slot_of
from redraft.revise.moves import Proposal, fills, propose
from redraft.sentence import Action, Constraints, Sentence


@dataclass(frozen=True, slots=True)
class Chain:
    """What stays the same along a chain. Its generator is its own, so a batch cannot change its draws."""

    constraints: Constraints
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class State:
    """A chain between two steps. ``readings`` is what each model remembers of the sentence, the target's first."""

    sentence: Sentence
    log_prob: float
    readings: tuple[Any, ...]

    @property
    def nll(self) -> float:
        """Negative log-likelihood per word, the end of the sentence counted."""
        return -self.log_prob / (len(self.sentence) + 1)


@dataclass(frozen=True, slots=True)
class Revision:
    """What a step did. ``nll`` and ``words`` are those of the sentence after it."""

    action: Action
    position: int
    old: str | None
    new: str | None
    log_ratio: float
    accepted: bool
    nll: float
    words: Words


Step = tuple[State, Revision | None]


class Sampler:
    """Predict and revise, with given models, for given actions."""

    def __init__(self, target: Target, candidates: CandidateGenerator, prior: Prior, actions: frozenset[Action]):
        self._target, self._candidates, self._prior, self._actions = target, candidates, prior, actions
        readers: list[Reader] = [target, *candidates.proposers]
        self._readers = list(dict.fromkeys(readers))  # one reading serves a model in all its roles
        self._proposer_at = [self._readers.index(proposer) for proposer in candidates.proposers]

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """The first state is the constraints alone (line 3)."""
        return self._read([chain.constraints.start(chain.rng) for chain in chains], [()] * len(chains))

    def step(self, chains: Sequence[Chain], states: Sequence[State]) -> list[Step]:
        """Advance every chain by one step (lines 5 to 10). Where nothing may be touched a chain stays, unrevised."""
        moves = self._predict(chains, states)
        proposals = self._revise(chains, states, moves)
        decided = [
            proposal is not None and self._accepts(chain, state, proposal)
            for chain, state, proposal in zip(chains, states, proposals, strict=True)
        ]
        new_states = self._move(states, proposals, decided)
        return [
            (new, proposal and _revision(old, new, proposal, accepted))
            for old, new, proposal, accepted in zip(states, new_states, proposals, decided, strict=True)
        ]

    def _predict(self, chains: Sequence[Chain], states: Sequence[State]) -> list[Move | None]:
        """Draw an action and a position from the prior (line 5)."""
        sentences = [state.sentence for state in states]
        legal = [legal_table(s, chain.constraints, self._actions) for s, chain in zip(sentences, chains, strict=True)]
        tables = self._prior.log_tables(sentences, legal)
        return [draw_move(table, chain.rng) for table, chain in zip(tables, chains, strict=True)]

    def _revise(
        self, chains: Sequence[Chain], states: Sequence[State], moves: Sequence[Move | None]
    ) -> list[Proposal | None]:
        """Find candidates, score their sentences, draw one (lines 6 to 8)."""
        able = [(i, move) for i, move in enumerate(moves) if move is not None]
        proposals: list[Proposal | None] = [None] * len(moves)
        if not able:
            return proposals
        at = [i for i, _ in able]
        sentences = [states[i].sentence for i in at]
        slots = [slot_of(sentence, *move) for sentence, (_, move) in zip(sentences, able, strict=True)]
        readings = [[states[i].readings[model] for i in at] for model in self._proposer_at]
        words = self._candidates.candidates(sentences, slots, [chains[i].constraints for i in at], readings)
        filled = [fills(move.action, candidates) for (_, move), candidates in zip(able, words, strict=True)]
        scores = self._target.log_probs_filled(slots, filled, [states[i].readings[0] for i in at])
        for (i, move), candidates, score in zip(able, words, scores, strict=True):
            if candidates:
                proposals[i] = propose(*move, candidates, score, states[i].log_prob, chains[i].rng)
        return proposals

    def _accepts(self, chain: Chain, state: State, proposal: Proposal) -> bool:
        """Metropolis (lines 9 and 10). Drawing the word that stands there already is not an accepted revision."""
        accepted = accept(proposal.log_ratio, chain.rng)
        edit = proposal.edit
        same = edit.action is Action.REPLACE and state.sentence.words[edit.position] == edit.word
        return accepted and not same

    def _move(
        self, states: Sequence[State], proposals: Sequence[Proposal | None], decided: Sequence[bool]
    ) -> list[State]:
        moved = {
            i: states[i].sentence.apply(proposal.edit)
            for i, proposal in enumerate(proposals)
            if proposal is not None and decided[i]
        }
        new = dict(zip(moved, self._read(list(moved.values()), [states[i].readings for i in moved]), strict=True))
        return [new.get(i, state) for i, state in enumerate(states)]

    def _read(self, sentences: Sequence[Sentence], old: Sequence[tuple[Any, ...]]) -> list[State]:
        if not sentences:
            return []
        words = [sentence.words for sentence in sentences]
        by_reader = [
            reader.read(words, [before[model] if before else None for before in old])
            for model, reader in enumerate(self._readers)
        ]
        by_sentence = zip(*by_reader, strict=True)
        return [
            State(sentence, self._target.log_prob(readings[0]), readings)
            for sentence, readings in zip(sentences, by_sentence, strict=True)
        ]


def _revision(old: State, new: State, proposal: Proposal, accepted: bool) -> Revision:
    edit = proposal.edit
    word = None if edit.action is Action.INSERT else old.sentence.words[edit.position]
    return Revision(
        edit.action, edit.position, word, edit.word, proposal.log_ratio, accepted, new.nll, new.sentence.words
    )
