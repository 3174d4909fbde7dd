"""Algorithm 1 of the paper, over a batch of chains.

``init`` and ``step`` are all there is. A state holds what the next step needs; what happened is in the revision.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Reader, Slot, Words
from redraft.numerics import Array, accept, log_uniform
from redraft.predict.legal import legal_table
from redraft.predict.prior import Move, Prior, draw_move, log_prior, reverse
from redraft.revise.candidates import Candidates, CandidateSource, slot_of
from redraft.revise.kernels import EarlyKernel, Kernel, Opening, Plan, Proposal
from redraft.revise.lazy import PartialScorer, settle
from redraft.sentence import Action, Constraints, Edit, Sentence
from redraft.target import Target


@dataclass(frozen=True, slots=True)
class Chain:
    """What stays the same along a chain. Its generator is its own, so a batch cannot change its draws."""

    constraints: Constraints
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class State:
    """A chain between two steps. ``readings`` is what each model remembers of the sentence, the scorer's first."""

    sentence: Sentence
    log_prob: float  # under the scorer
    log_target: float  # with power, soft scores and, for the exact kernel, hard constraints
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
    """Predict and revise, towards a target, by a kernel."""

    def __init__(
        self, target: Target, candidates: CandidateSource, prior: Prior, kernel: Kernel, actions: frozenset[Action]
    ):
        if not actions <= kernel.actions:
            raise ValueError(f"the kernel cannot {', '.join(a.value for a in actions - kernel.actions)}")
        self.target, self._candidates, self._prior = target, candidates, prior
        self._kernel, self._actions = kernel, actions
        readers: list[Reader] = [target.scorer, *candidates.readers]
        self._readers = list(dict.fromkeys(readers))  # one reading serves a model in all its roles
        self._lazy = (
            (target.scorer, kernel)
            if isinstance(target.scorer, PartialScorer) and isinstance(kernel, EarlyKernel)
            else None
        )
        self._reader_at = [self._readers.index(reader) for reader in candidates.readers]

    def with_power(self, power: float) -> "Sampler":
        """The same sampler towards the target with another power (1 / temperature)."""
        sampler = copy.copy(self)
        sampler.target = replace(self.target, power=power)
        return sampler

    @property
    def is_exact(self) -> bool:
        """Whether the chain's draws are draws from the target."""
        return self._kernel.counts_prior

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """The first state is the constraints alone (line 3)."""
        return self.read(chains, [chain.constraints.start(chain.rng) for chain in chains])

    def step(self, chains: Sequence[Chain], states: Sequence[State]) -> list[Step]:
        """Advance every chain by one step (lines 5 to 10). Where nothing may be touched a chain stays, unrevised."""
        tables = self.log_priors(chains, [state.sentence for state in states])
        moves = [draw_move(table, chain.rng) for table, chain in zip(tables, chains, strict=True)]
        log_levels = [log_uniform(chain.rng) for chain in chains]
        able = [i for i, move in enumerate(moves) if move is not None]
        found = self.propose(
            [chains[i] for i in able],
            [states[i] for i in able],
            [tables[i] for i in able],
            [move for move in moves if move is not None],
            log_levels=[log_levels[i] for i in able],
        )
        proposals = dict(zip(able, found, strict=True))
        moved = {i: p.edit for i, p in proposals.items() if p and _accepts(states[i], p, log_levels[i])}
        new_states = self._move(chains, states, moved)
        return [
            (new, _revision(old, new, proposals.get(i), i in moved))
            for i, (old, new) in enumerate(zip(states, new_states, strict=True))
        ]

    def log_priors(self, chains: Sequence[Chain], sentences: Sequence[Sentence]) -> list[Array]:
        """The prior over actions and positions (line 5)."""
        legal = [legal_table(s, chain.constraints, self._actions) for s, chain in zip(sentences, chains, strict=True)]
        return self._prior.log_tables(sentences, legal)

    def propose(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        tables: Sequence[Array],
        moves: Sequence[Move],
        tries: Sequence[Words] | None = None,
        log_levels: Sequence[float] | None = None,
    ) -> list[Proposal | None]:
        """Find candidates, score their sentences, draw one, compute its ratio (lines 6 to 9).

        With ``tries`` nothing is drawn: the proposals of the first of these words are weighed, or of none for an action
        without a word. The tests enumerate kernels so. Where the levels of acceptance are given, scores and ratios are
        exact only as far as the decisions hang on them.
        """
        if not chains:
            return []
        sentences = [state.sentence for state in states]
        slots = [slot_of(sentence, *move) for sentence, move in zip(sentences, moves, strict=True)]
        readings = [[state.readings[model] for state in states] for model in self._reader_at]
        constraints = [chain.constraints for chain in chains]
        candidates = self._candidates.candidates(sentences, slots, constraints, readings)
        plans = self._plans(chains, sentences, moves, candidates, tries)
        weights = self._log_targets(chains, slots, plans, states, log_levels)
        drawn = [
            self._kernel.propose(plan, weight, state.log_target)
            if tries is None
            else self._kernel.weigh(plan, weight, state.log_target, _word_of(move, tries[i]))
            for i, (plan, weight, state, move) in enumerate(zip(plans, weights, states, moves, strict=True))
        ]
        return self._with_prior(chains, sentences, tables, drawn) if self._kernel.counts_prior else drawn

    def _plans(
        self,
        chains: Sequence[Chain],
        sentences: Sequence[Sentence],
        moves: Sequence[Move],
        candidates: Sequence[Candidates],
        tries: Sequence[Words] | None,
    ) -> list[Plan]:
        return [
            self._kernel.plan(Opening(sentence, *move, found), chain.rng, None if tries is None else tries[i])
            for i, (chain, sentence, move, found) in enumerate(zip(chains, sentences, moves, candidates, strict=True))
        ]

    def _log_targets(
        self,
        chains: Sequence[Chain],
        slots: Sequence[Slot],
        plans: Sequence[Plan],
        states: Sequence[State],
        log_levels: Sequence[float] | None,
    ) -> list[Array]:
        """Log target of each plan's fillings, those that come twice scored once."""
        fillings = [list(dict.fromkeys(plan.fillings)) for plan in plans]
        places = [[one.index(words) for words in plan.fillings] for plan, one in zip(plans, fillings, strict=True)]
        readings = [state.readings[0] for state in states]

        def weights(i: int, log_probs: Array) -> Array:
            of_all = self._log_target(chains[i], log_probs, [slots[i].fill(words) for words in fillings[i]])
            return of_all[places[i]]

        if log_levels is None or self._lazy is None:
            log_probs = self.target.scorer.log_probs_filled(slots, fillings, readings)
        else:
            scorer, kernel = self._lazy

            def undecided(i: int, bounds: Array, is_final: NDArray[np.bool_]) -> list[int]:
                known = weights(i, bounds), is_final[places[i]]
                open_ = kernel.undecided(plans[i], *known, states[i].log_target, log_levels[i])
                return list(dict.fromkeys(places[i][at] for at in open_))

            log_probs = settle(scorer.scoring(slots, fillings, readings), undecided)
        return [weights(i, found) for i, found in enumerate(log_probs)]

    def _log_target(self, chain: Chain, log_probs: Array, sentences: Sequence[Words]) -> Array:
        weights = self.target.log_weights(log_probs, sentences)
        # A search may pass through drafts that are too short, a sampler may not.
        permits = chain.constraints.permits if self._kernel.counts_prior else chain.constraints.allows
        return np.where([permits(words) for words in sentences], weights, -np.inf)

    def _with_prior(
        self,
        chains: Sequence[Chain],
        sentences: Sequence[Sentence],
        tables: Sequence[Array],
        proposals: Sequence[Proposal | None],
    ) -> list[Proposal | None]:
        """Multiply the ratios by the probability of drawing the reverse move over that of the move."""
        able = [(i, proposal) for i, proposal in enumerate(proposals) if proposal is not None]
        there = [_move_of(proposal.edit) for _, proposal in able]
        new = self.log_priors([chains[i] for i, _ in able], [sentences[i].apply(p.edit) for i, p in able])
        result = list(proposals)
        for (i, proposal), move, table in zip(able, there, new, strict=True):
            prior_ratio = log_prior(table, reverse(move)) - log_prior(tables[i], move)
            result[i] = proposal._replace(log_ratio=proposal.log_ratio + prior_ratio)
        return result

    def _move(self, chains: Sequence[Chain], states: Sequence[State], edits: Mapping[int, Edit]) -> list[State]:
        sentences = [states[i].sentence.apply(edit) for i, edit in edits.items()]
        read = self.read([chains[i] for i in edits], sentences, [states[i].readings for i in edits])
        new = dict(zip(edits, read, strict=True))
        return [new.get(i, state) for i, state in enumerate(states)]

    def read(
        self, chains: Sequence[Chain], sentences: Sequence[Sentence], old: Sequence[tuple[Any, ...]] | None = None
    ) -> list[State]:
        """States of sentences, with the readings of earlier states to start from."""
        if not sentences:
            return []
        words = [sentence.words for sentence in sentences]
        before = old or [(None,) * len(self._readers)] * len(sentences)
        by_reader = [
            reader.read(words, [readings[model] for readings in before]) for model, reader in enumerate(self._readers)
        ]
        states = []
        for chain, sentence, readings in zip(chains, sentences, zip(*by_reader, strict=True), strict=True):
            log_prob = self.target.scorer.log_prob(readings[0])
            log_target = self._log_target(chain, np.array([log_prob]), [sentence.words])[0]
            states.append(State(sentence, log_prob, float(log_target), readings))
        return states


def _accepts(state: State, proposal: Proposal, log_level: float) -> bool:
    """Metropolis (line 10). Drawing the word that stands there already is not an accepted revision."""
    edit = proposal.edit
    same = edit.action is Action.REPLACE and state.sentence.words[edit.position] == edit.word
    return accept(proposal.log_ratio, log_level) and not same


def _move_of(edit: Edit) -> Move:
    return Move(edit.action, edit.position)


def _word_of(move: Move, tries: Words) -> str | None:
    return tries[0] if move.action in (Action.REPLACE, Action.INSERT) else None


def _revision(old: State, new: State, proposal: Proposal | None, accepted: bool) -> Revision | None:
    if proposal is None:
        return None
    edit = proposal.edit
    word = None if edit.action is Action.INSERT else old.sentence.words[edit.position]
    return Revision(
        edit.action, edit.position, word, edit.word, proposal.log_ratio, accepted, new.nll, new.sentence.words
    )
