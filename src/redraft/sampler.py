"""Algorithm 1 of the paper, over a batch of chains.

``init`` gives the first states, ``step`` advances them. A state holds what the next step needs; what happened is in
the revision.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Reader, Slot, Words
from redraft.numerics import Array, accept, log_uniform
from redraft.predict.legal import legal_table
from redraft.predict.prior import Move, Prior, SettlingPrior, draw_move, log_prior, reverse
from redraft.revise.candidates import Candidates, CandidateSource, slot_of
from redraft.revise.kernels import Kernel, Plan, Proposal
from redraft.revise.reviser import KernelReviser, Reviser
from redraft.scoring import log_weights, score_plans
from redraft.sentence import Action, Constraints, Edit, Sentence
from redraft.target import Target

CandidatesT = TypeVar("CandidatesT", bound=Candidates)


@dataclass(frozen=True, slots=True)
class Chain:
    """What stays the same along a chain. It has its own random generator, so the batch cannot change its draws."""

    constraints: Constraints
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class State:
    """A chain between two steps.

    ``readings`` is what each model has computed for the sentence, the scorer's first. Only the model that made a
    reading looks into it.
    """

    sentence: Sentence
    log_prob: float  # under the scorer
    log_target: float  # with power, soft scores and hard constraints
    readings: tuple[object, ...]

    @property
    def nll(self) -> float:
        """Negative log-likelihood per word, counting the end of the sentence."""
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


_WITH_WORD = (Action.REPLACE, Action.INSERT, Action.VARY)
Step = tuple[State, Revision | None]


class Sampler:
    """Revises sentences where the prior predicts, towards a target, with the rule of a kernel."""

    def __init__(
        self,
        target: Target,
        candidates: CandidateSource[CandidatesT],
        prior: Prior,
        kernel: Kernel[CandidatesT],
        actions: frozenset[Action],
    ):
        if not actions <= kernel.actions:
            raise ValueError(f"the kernel cannot {', '.join(a.value for a in actions - kernel.actions)}")
        self.target, self._prior = target, prior
        self._actions = actions | {Action.VARY}  # of which the paper has none: only where a part has several forms
        self.is_exact = kernel.is_exact  # whether the states of a chain are samples from the target
        self._ratio_needs_prior, self._visits_short = kernel.ratio_needs_prior, kernel.visits_short_drafts
        self._reviser: Reviser = KernelReviser(candidates, kernel)
        self._candidates: CandidateSource[Candidates] = candidates
        self._is_lazy = True  # score only as far as decisions need it, if scorer and kernel support that
        readers: list[Reader] = [target.scorer, *candidates.readers]
        self._readers = list(dict.fromkeys(readers))  # a model in several roles reads once
        self._reader_at = [self._readers.index(reader) for reader in candidates.readers]

    def with_power(self, power: float) -> "Sampler":
        """The same sampler towards the target with another power (1 / temperature)."""
        sampler = copy.copy(self)
        sampler.target = replace(self.target, power=power)
        return sampler

    def init(self, chains: Sequence[Chain]) -> list[State]:
        """The first states: the constraints alone (line 3)."""
        return self.read(chains, [chain.constraints.start(chain.rng) for chain in chains])

    def step(self, chains: Sequence[Chain], states: Sequence[State]) -> list[Step]:
        """Advance every chain by one step (lines 5 to 10). A chain in which nothing may be changed stays as it is."""
        # Predict an action and a position.
        tables = self.log_priors(chains, [state.sentence for state in states])
        moves = [draw_move(table, chain.rng) for table, chain in zip(tables, chains, strict=True)]
        log_levels = [log_uniform(chain.rng) for chain in chains]
        return self.revise(chains, states, tables, moves, log_levels)

    def revise(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        tables: Sequence[Array],
        moves: Sequence[Move | None],
        log_levels: Sequence[float],
    ) -> list[Step]:
        """Make a move in every chain that has one (lines 6 to 10). ``tables`` are the priors of the moves."""
        # Propose a word among the candidates.
        able = [i for i, move in enumerate(moves) if move is not None]
        found = self.propose(
            [chains[i] for i in able],
            [states[i] for i in able],
            [tables[i] for i in able],
            [move for move in moves if move is not None],
            [log_levels[i] for i in able],
        )
        # Accept or reject.
        proposals = dict(zip(able, found, strict=True))
        accepted = {i: p.edit for i, p in proposals.items() if p and _accepts(states[i], p, log_levels[i])}
        new_states = self._move(chains, states, accepted)
        return [
            (new, _revision(old, new, proposals.get(i), i in accepted))
            for i, (old, new) in enumerate(zip(states, new_states, strict=True))
        ]

    def log_priors(self, chains: Sequence[Chain], sentences: Sequence[Sentence]) -> list[Array]:
        """The prior over actions and positions (line 5)."""
        return self._prior.log_tables(sentences, self._legal(chains, sentences))

    @property
    def can_settle(self) -> bool:
        """Whether the prior says when a sentence needs no revision."""
        return isinstance(self._prior, SettlingPrior)

    def is_settled(self, chains: Sequence[Chain], states: Sequence[State]) -> list[bool]:
        """Whether each chain has a complete draft in which the prior expects no revision."""
        if not isinstance(self._prior, SettlingPrior):
            return [False] * len(chains)
        sentences = [state.sentence for state in states]
        return [
            quiet and not chain.constraints.shortfall(sentence, self.target.length)
            for quiet, chain, sentence in zip(
                self._prior.expects_no_revision(sentences, self._legal(chains, sentences)),
                chains,
                sentences,
                strict=True,
            )
        ]

    def _legal(self, chains: Sequence[Chain], sentences: Sequence[Sentence]) -> list[NDArray[np.bool_]]:
        return [legal_table(s, chain.constraints, self._actions) for s, chain in zip(sentences, chains, strict=True)]

    def propose(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        tables: Sequence[Array],
        moves: Sequence[Move],
        log_levels: Sequence[float] | None = None,
    ) -> list[Proposal | None]:
        """Find candidates, score their sentences, draw one, compute its ratio (lines 6 to 9).

        If the levels of acceptance are given, scores and ratios are exact only as far as the decisions depend on them.
        """
        if not chains:
            return []
        slots = _slots(states, moves)
        plans = self._reviser.plans(*self._sites(chains, states, moves, slots), [chain.rng for chain in chains])
        weights = self._score(chains, states, slots, plans, log_levels)
        drawn = [
            plan.propose(weight, state.log_target) for plan, weight, state in zip(plans, weights, states, strict=True)
        ]
        return self._with_prior(chains, states, tables, drawn)

    def weigh(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        tables: Sequence[Array],
        moves: Sequence[Move],
        words: Sequence[Words],
    ) -> list[Proposal | None]:
        """The proposals of given words, with the code of ``propose`` but without a draw: for enumeration in tests.

        ``words`` are those that the kernel would draw, the one that is proposed first; none for an action without one.
        """
        slots = _slots(states, moves)
        plans = self._reviser.plans_given(*self._sites(chains, states, moves, slots), words)
        weights = self._score(chains, states, slots, plans, None)
        found: list[Proposal | None] = [
            plan.weigh(weight, state.log_target, given[0] if move.action in _WITH_WORD else None)
            for plan, weight, state, move, given in zip(plans, weights, states, moves, words, strict=True)
        ]
        return self._with_prior(chains, states, tables, found)

    def _sites(
        self, chains: Sequence[Chain], states: Sequence[State], moves: Sequence[Move], slots: Sequence[Slot]
    ) -> tuple[list[Sentence], Sequence[Move], Sequence[Slot], list[Constraints], list[list[object]]]:
        """What candidates are found for: sentences, moves, slots, constraints, and the readings of each reader."""
        readings = [[state.readings[model] for state in states] for model in self._reader_at]
        return (
            [state.sentence for state in states],
            moves,
            slots,
            [chain.constraints for chain in chains],
            readings,
        )

    def _score(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        slots: Sequence[Slot],
        plans: Sequence[Plan],
        log_levels: Sequence[float] | None,
    ) -> list[Array]:
        return score_plans(
            self.target,
            [chain.constraints for chain in chains],
            slots,
            plans,
            [state.readings[0] for state in states],
            [state.log_target for state in states],
            log_levels,
            allows_short=self._visits_short,
            lazily=self._is_lazy,
        )

    def _with_prior(
        self,
        chains: Sequence[Chain],
        states: Sequence[State],
        tables: Sequence[Array],
        proposals: Sequence[Proposal | None],
    ) -> list[Proposal | None]:
        """Multiply ratios by the probability of drawing the reverse move over that of the move, if they need it."""
        result = list(proposals)
        if not self._ratio_needs_prior:
            return result
        able = [(i, proposal) for i, proposal in enumerate(proposals) if proposal is not None]
        new = self.log_priors([chains[i] for i, _ in able], [states[i].sentence.apply(p.edit) for i, p in able])
        for (i, proposal), table in zip(able, new, strict=True):
            move = Move(proposal.edit.action, proposal.edit.position)
            prior_ratio = log_prior(table, reverse(move)) - log_prior(tables[i], move)
            result[i] = proposal._replace(log_ratio=proposal.log_ratio + prior_ratio)
        return result

    def _move(self, chains: Sequence[Chain], states: Sequence[State], edits: Mapping[int, Edit]) -> list[State]:
        sentences = [states[i].sentence.apply(edit) for i, edit in edits.items()]
        read = self.read([chains[i] for i in edits], sentences, [states[i].readings for i in edits])
        new = dict(zip(edits, read, strict=True))
        return [new.get(i, state) for i, state in enumerate(states)]

    def read(
        self, chains: Sequence[Chain], sentences: Sequence[Sentence], old: Sequence[tuple[object, ...]] | None = None
    ) -> list[State]:
        """The states of sentences. ``old`` are readings of earlier states to start from."""
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
            (log_target,) = log_weights(
                self.target,
                chain.constraints,
                np.array([log_prob]),
                [sentence.words],
                allows_short=self._visits_short,
            )
            states.append(State(sentence, log_prob, float(log_target), readings))
        return states


def _slots(states: Sequence[State], moves: Sequence[Move]) -> list[Slot]:
    return [slot_of(state.sentence, *move) for state, move in zip(states, moves, strict=True)]


def _accepts(state: State, proposal: Proposal, log_level: float) -> bool:
    """Metropolis (line 10). Drawing the word that is there already does not count as an accepted revision."""
    edit = proposal.edit
    same = edit.action in (Action.REPLACE, Action.VARY) and _old_word(state, edit) == edit.word
    return accept(proposal.log_ratio, log_level) and not same


def _old_word(state: State, edit: Edit) -> str | None:
    """The word at the place of an edit; the words of a part that is varied."""
    if edit.action is Action.INSERT:
        return None
    start, end = state.sentence.span(edit.action, edit.position)
    return " ".join(state.sentence.words[start : end if edit.action is Action.VARY else start + 1])


def _revision(old: State, new: State, proposal: Proposal | None, accepted: bool) -> Revision | None:
    if proposal is None:
        return None
    edit = proposal.edit
    return Revision(
        edit.action,
        edit.position,
        _old_word(old, edit),
        edit.word,
        proposal.log_ratio,
        accepted,
        new.nll,
        new.sentence.words,
    )
