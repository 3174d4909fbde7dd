"""A language model over a handful of words, in exact arithmetic, and everything about a chain written out in full."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from redraft.models.base import Slot, Words
from redraft.numerics import Array
from redraft.predict.classifier import Classifier
from redraft.predict.learned import LearnedPrior
from redraft.predict.legal import ROW, legal_table
from redraft.predict.prior import Move, Prior, UniformPrior, log_prior
from redraft.revise.candidates import CandidateGenerator, CandidateSource, CheaplyScored
from redraft.revise.kernels import ExactKernel, Kernel
from redraft.sampler import Chain, Sampler, State
from redraft.sentence import ENDING, Action, Constraints, Edit, Sentence
from redraft.target import SoftScore, Target


class Bigrams:
    """A bigram model: p(word | word before). Scores sentences, and proposes from the left or from the right."""

    def __init__(self, words: str, seed: int = 0, *, backward: bool = False):
        self.words: tuple[str, ...] = tuple(words.split())
        self.name = "bigrams"
        self.proposable = np.ones(len(self.words), dtype=np.bool_)
        # Rows: each word and the start; columns: each word and the end.
        self.table = np.random.default_rng(seed).dirichlet(np.full(len(self.words) + 1, 0.7), len(self.words) + 1)
        self._backward = backward
        self._scores: dict[Words, float] = {}

    def _id(self, word: str) -> int:
        return self.words.index(word)

    def score(self, words: Words) -> float:
        if words not in self._scores:
            ids = [-1, *(self._id(word) for word in words), -1]
            self._scores[words] = float(np.log(self.table[ids[:-1], ids[1:]]).sum())
        return self._scores[words]

    def read(self, sentences: Sequence[Words], old: Sequence[object]) -> list[Words]:
        return list(sentences)

    def log_prob(self, reading: Words) -> float:
        return self.score(reading)

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Words]
    ) -> list[Array]:
        return [
            np.array([self.score(slot.fill(words)) for words in filled])
            for slot, filled in zip(slots, fillings, strict=True)
        ]

    def dist(self, slot: Slot) -> Array:
        if self._backward:
            column = self.table[:-1, self._id(slot.after[0]) if slot.after else -1]
            return np.asarray(column / column.sum())
        row = self.table[self._id(slot.before[-1]) if slot.before else -1, :-1]
        return np.asarray(row / row.sum())

    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Words]) -> NDArray[np.floating]:
        return np.log(np.stack([self.dist(slot) for slot in slots]))


class SteepClassifier:
    """Stands for a trained network: label probabilities that differ wildly between sentences and places."""

    def __init__(self) -> None:
        self._seen: dict[Words, Array] = {}

    def log_probs(self, sentences: Sequence[Words]) -> list[Array]:
        for words in sentences:
            if words not in self._seen:
                scores = np.random.default_rng([ord(word[0]) for word in words]).normal(size=(len(words) + 1, 4))
                self._seen[words] = np.log(np.exp(2 * scores) / np.exp(2 * scores).sum(1, keepdims=True))
        return [self._seen[words] for words in sentences]


def steep_prior() -> LearnedPrior:
    """The production prior over a classifier that is as unfair as one can be."""
    return LearnedPrior(cast("Classifier", SteepClassifier()))


def toy_sampler(
    words: str,
    *,
    kernel: Kernel | None = None,
    actions: frozenset[Action] | None = None,
    prior: Prior | None = None,
    soft: tuple[SoftScore, ...] = (),
    power: float = 1.0,
    num: int = 2,
    seed: int = 0,
    cheap: Bigrams | None = None,
) -> Sampler:
    """With a ``cheap`` model, candidates carry its scores: the first of two stages."""
    scorer, backward = Bigrams(words, seed), Bigrams(words, seed, backward=True)
    kernel = kernel or ExactKernel(wide=0.1)
    candidates: CandidateSource = CandidateGenerator([scorer, backward], num)
    if cheap:
        candidates = CheaplyScored(candidates, cheap)
    return Sampler(Target(scorer, power, soft), candidates, prior or UniformPrior(), kernel, actions or kernel.actions)


def reachable(constraints: Constraints, words: Sequence[str]) -> list[Sentence]:
    """Every sentence that legal edits with these words lead to from the start."""
    found = {constraints.start(): None}
    queue = list(found)
    while queue:
        sentence = queue.pop()
        for row, position in np.argwhere(legal_table(sentence, constraints, frozenset(Action))):
            for word in choices(sentence, Move(list(Action)[row], int(position)), constraints, words):
                new = sentence.apply(Edit(list(Action)[row], int(position), word))
                if new not in found:
                    found[new] = None
                    queue.append(new)
    return list(found)


def choices(sentence: Sentence, move: Move, constraints: Constraints, words: Sequence[str]) -> Sequence[str | None]:
    """The words that a move could put down."""
    if move.action in (Action.DELETE, Action.SWAP):
        return [None]
    if move.action is Action.VARY:
        return [" ".join(one) for one in constraints.realisations_at(sentence, move.position)]
    if move.action is Action.REPLACE and sentence.locks[move.position] == ENDING:
        return constraints.allowed_endings
    return [word for word in words if word not in constraints.banned_words]


@dataclass(frozen=True)
class Enumerated:
    """A chain in full: its states, the target over them, the transition matrix, and what the parts add up to."""

    states: list[State]
    target: Array
    transition: Array
    proposed: Array  # total probability of all proposals from each state


def tries_of(
    sentence: Sentence, move: Move, constraints: Constraints, words: Sequence[str], num: int
) -> Iterator[Words]:
    """Every row of words that a kernel of ``num`` tries could draw; nothing for a swap."""
    if move.action is Action.DELETE:
        return itertools.product(choices(sentence, Move(Action.INSERT, 0), constraints, words), repeat=num - 1)  # type: ignore[return-value]
    taken = choices(sentence, move, constraints, words)
    if move.action is Action.VARY:
        return ((str(one),) for one in taken)
    return itertools.product(taken, repeat=num) if move.action is not Action.SWAP else iter([()])  # type: ignore[return-value]


def enumerate_chain(sampler: Sampler, constraints: Constraints, words: Sequence[str], num_tries: int = 1) -> Enumerated:
    """Weigh every proposal of every state with the sampler's own code."""
    chain = Chain(constraints, np.random.default_rng(0))
    sentences = reachable(constraints, words)
    states = sampler.read([chain] * len(sentences), sentences)
    number = {state.sentence: i for i, state in enumerate(states)}
    tables = sampler.log_priors([chain] * len(states), sentences)
    cells = [
        (i, Move(action, int(position)), tries)
        for i, (state, table) in enumerate(zip(states, tables, strict=True))
        for action in list(Action)[: len(table)]
        for position in np.flatnonzero(np.isfinite(table[ROW[action]]))
        for tries in tries_of(state.sentence, Move(action, int(position)), constraints, words, num_tries)
    ]
    proposals = sampler.weigh(
        [chain] * len(cells),
        [states[i] for i, _, _ in cells],
        [tables[i] for i, _, _ in cells],
        [move for _, move, _ in cells],
        [tries for _, _, tries in cells],
    )
    transition = np.zeros((len(states), len(states)))
    proposed = np.zeros(len(states))
    for (i, move, _), proposal in zip(cells, proposals, strict=True):
        assert proposal is not None
        probability = np.exp(log_prior(tables[i], move) + proposal.log_drawn)
        proposed[i] += probability
        if probability > 0:
            new = number[states[i].sentence.apply(proposal.edit)]
            moved = probability * np.exp(proposal.log_screen + min(0.0, proposal.log_ratio))
            transition[i, new] += moved
            transition[i, i] += probability - moved
    log_target = np.array([state.log_target for state in states])
    target = np.exp(log_target - log_target.max())
    still = proposed == 0  # nothing may be touched: the chain stays
    transition[still, still] = 1
    return Enumerated(states, target / target.sum(), transition, np.where(still, 1.0, proposed))
