"""Rewriting stretches: the probability of a draw is known, and the step leaves its target stationary."""

from itertools import pairwise, product

import numpy as np
import pytest
from tests.draft.test_particles import _END, _Toy, enumerated, is_met, sentences, spelled
from tests.exact.toy import steep_prior

from redraft import text
from redraft.draft.particles import DraftOrder, ParticleDrafter
from redraft.numerics import log_sum
from redraft.predict.prior import UniformPrior
from redraft.predict.stretch_prior import StretchPrior
from redraft.revise.rewrite import Rewriter, log_acceptance
from redraft.sentence import ENDING, FREE, Constraints, Order, Sentence
from redraft.stretches import Stretch, gaps_of, holds_first_places, parts_of

CASES = {
    "one": Constraints(("us",), max_words=4),
    "two": Constraints(("to", "us"), max_words=5),
    "twice": Constraints(("us", "us"), max_words=4),
    "any order": Constraints(("to", "us"), order=Order.ANY, max_words=4),
    "phrase": Constraints(("us to",), max_words=4),
    "ban and minimum": Constraints(("us",), ban=("to",), min_words=2, max_words=5),
    "template": Constraints(template="us ___ to ___ .", max_words=6),
    "open template": Constraints(template="___ toward ___", max_words=4),
}


class _ToyTarget:
    """The toy model's distribution over sentences, restricted to the constraints."""

    def __init__(self, model: _Toy):
        self._model = model

    def log_targets(self, constraints: Constraints, given: list[Sentence]) -> np.ndarray:
        return np.array([self._log_target(constraints, one) for one in given])

    def _log_target(self, constraints: Constraints, sentence: Sentence) -> float:
        if not is_met(constraints, list(text.tokenise(sentence.text))):
            return -np.inf
        if len(sentence) > constraints.limit or not holds_first_places(sentence, constraints):
            return -np.inf
        tokens = (*spelled(sentence.text), _END)
        return float(sum(self._model.log_dist(tokens[:i])[token] for i, token in enumerate(tokens)))


def _drafter(model: _Toy) -> ParticleDrafter:
    return ParticleDrafter(model, lowered=frozenset({"to", "us", "toward"}))


def states(model: _Toy, constraints: Constraints) -> list[Sentence]:
    """All sentences that meet the constraints, each with its parts at their first places."""
    found = []
    start = constraints.start()
    for written, _ in sentences(model, 2 * constraints.limit):
        words = tuple(text.tokenise(written.lower()))
        if not is_met(constraints, list(words)) or len(words) > constraints.limit:
            continue
        for places in product(range(len(words)), repeat=len(set(start.locks) - {ENDING})):
            if constraints.order is Order.GIVEN and list(places) != sorted(places):
                continue
            sentence = _placed(start, words, places)
            if sentence is None or (constraints.template is not None and sentence.num_empty_gaps):
                continue
            if holds_first_places(sentence, constraints):
                found.append(sentence)
    assert len({one.words for one in found}) == len(found)
    return found


def _placed(start: Sentence, words: tuple[str, ...], places: tuple[int, ...]) -> Sentence | None:
    """A sentence with part i at place i, where that is possible and blanks are filled."""
    shown, locks = list(words), [FREE] * len(words)
    if start.locks[-1] == ENDING:
        locks[-1] = ENDING
    for part, at in enumerate(places):
        own = [word for word, lock in zip(start.words, start.locks, strict=True) if lock == part]
        here = range(at, at + len(own))
        if at + len(own) > len(words) or any(locks[i] != FREE for i in here):
            return None
        if [word.lower() for word in words[at : at + len(own)]] != own:
            return None
        for i, word in zip(here, own, strict=True):
            locks[i], shown[i] = part, word
    inner = [a != b or a == FREE for a, b in pairwise(locks)]
    opens = start.open_gaps[0] or locks[0] == FREE
    made = Sentence(tuple(shown), tuple(locks), (opens, *inner, start.open_gaps[-1]))
    if not start.open_gaps[0] and locks[0] == FREE:
        return None
    if not start.open_gaps[-1] and locks[-1] == FREE:
        return None
    return made


def _stretches(sentence: Sentence) -> list[Stretch]:
    return [
        Stretch(number, start, end, is_whole_gap=(start, end) == gap)
        for number, gap in enumerate(gaps_of(sentence))
        for start, end in parts_of(sentence, gap)
    ]


def _same_around(old: Sentence, new: Sentence, stretch: Stretch) -> bool:
    after = len(old) - stretch.end
    kept = old.words[: stretch.start] + old.words[stretch.end :], old.locks[: stretch.start] + old.locks[stretch.end :]
    if len(new) < stretch.start + after:
        return False
    end = len(new) - after
    return kept == (new.words[: stretch.start] + new.words[end:], new.locks[: stretch.start] + new.locks[end:])


@pytest.mark.parametrize("prior", [UniformPrior(), steep_prior()], ids=["uniform", "learned"])
@pytest.mark.parametrize("constraints", CASES.values(), ids=CASES)
def test_rewriting_is_stationary(constraints: Constraints, prior) -> None:  # type: ignore[no-untyped-def]
    """The transition matrix of one and of two tries, enumerated with the production code."""
    model = _Toy(3)
    drafter, where, target = _drafter(model), StretchPrior(prior), _ToyTarget(model)
    rewriter = Rewriter(drafter, where, target, tries=1)
    every = states(model, constraints)
    log_targets = target.log_targets(constraints, every)
    shares = np.exp(log_targets - log_sum(log_targets))
    moves = {1: np.zeros((len(every), len(every))), 2: np.zeros((len(every), len(every)))}
    num_never = num_all = 0  # versions that cannot be drawn, and all
    for i, old in enumerate(every):
        stretches = _stretches(old)
        log_chosen = where.log_probs([old] * len(stretches), stretches, constraints)
        assert np.exp(log_chosen).sum() == pytest.approx(1)
        for stretch, log_here in zip(stretches, log_chosen, strict=True):
            among = [j for j, one in enumerate(every) if _same_around(old, one, stretch)]
            log_drawn = np.array([_log_drawn(drafter, constraints, old, every[j], stretch) for j in among])
            assert log_sum(log_drawn) < 1e-9
            num_never += int(np.isneginf(log_drawn).sum())
            num_all += len(among)
            log_weights = rewriter.log_weights(
                constraints,
                [old, *(every[j] for j in among)],
                stretch,
                np.array([log_targets[i], *log_targets[among]]),
                np.array([log_drawn[among.index(i)], *log_drawn]),
            )
            _add_moves(moves, i, among, np.exp(log_drawn), log_weights, np.exp(log_here))
    assert num_never < 0.1 * num_all
    for matrix in moves.values():
        assert (matrix.sum(1) <= 1 + 1e-12).all()
        matrix[np.diag_indices(len(every))] += 1 - matrix.sum(1)
        assert np.abs(shares @ matrix - shares).max() < 1e-12
        flow = shares[:, None] * matrix
        assert np.abs(flow - flow.T).max() < 1e-12
        if len(every) > 1:
            assert 1 - (matrix.diagonal() * shares).sum() > 0.01  # it moves


def _log_drawn(drafter: ParticleDrafter, constraints: Constraints, old: Sentence, new: Sentence, stretch: Stretch):  # type: ignore[no-untyped-def]
    """What the drafter says of the present words, asked of the new sentence."""
    _, log_drawn = drafter.rewrite(constraints, new, stretch.moved_to(old, new), np.random.default_rng(0), 0)
    return log_drawn


def _add_moves(moves, i, among, drawn, log_weights, chance) -> None:  # type: ignore[no-untyped-def]
    old, new = log_weights[0], log_weights[1:]
    failed = 1 - drawn.sum()  # a try that comes to nothing
    able = np.flatnonzero(drawn)
    for a in able:
        j = among[a]
        one_try = min(1.0, float(np.exp(log_acceptance(np.array([old, new[a]]), 0))))
        moves[1][i, j] += chance * drawn[a] * one_try
        moves[2][i, j] += chance * 2 * drawn[a] * failed * one_try
        for b in able:
            pair = np.array([old, new[a], new[b]])
            picked = float(np.exp(new[a] - log_sum(pair[1:])))
            both = picked * min(1.0, float(np.exp(log_acceptance(pair, 0))))
            moves[2][i, j] += chance * 2 * drawn[a] * drawn[b] * both


@pytest.mark.parametrize("name", ["two", "template", "ban and minimum"])
def test_draws_come_as_often_as_they_say(name: str) -> None:
    model, constraints = _Toy(4), CASES[name]
    drafter, rng = _drafter(model), np.random.default_rng(1)
    old = max(states(model, constraints), key=len)
    stretch = Stretch(1, *gaps_of(old)[1], is_whole_gap=True)
    num, counts, log_drawn = 6000, {}, {}
    for _ in range(num // 200):
        for one in drafter.rewrite(constraints, old, stretch, rng, 200)[0]:
            counts[one.sentence.words] = counts.get(one.sentence.words, 0) + 1
            log_drawn[one.sentence.words] = one.log_drawn
    for words, count in counts.items():
        share = np.exp(log_drawn[words])
        assert abs(count / num - share) < 4.5 * np.sqrt(share * (1 - share) / num) + 1e-3


CHAINS = {
    "two": CASES["two"],
    "forms": Constraints(("us|toward", "to"), max_words=4),
}


@pytest.mark.parametrize("constraints", CHAINS.values(), ids=CHAINS)
def test_a_chain_reaches_the_target(constraints: Constraints) -> None:
    model = _Toy(3)
    shares = enumerated(model, constraints)
    rewriter = Rewriter(_drafter(model), StretchPrior(UniformPrior()), _ToyTarget(model), tries=3)
    rng, num = np.random.default_rng(2), 4000
    start = _drafter(model).draft(DraftOrder(constraints, rng, 4))[0].sentence
    state, counts = rewriter.init(constraints, start), dict.fromkeys(shares, 0)
    for _ in range(num):
        state, rewrite = rewriter.step(constraints, state, rng)
        assert rewrite is None or rewrite.words == state.sentence.words
        counts[state.sentence.text] += 1
    distance = 0.5 * sum(abs(counts[written] / num - share) for written, share in shares.items())
    assert distance < 0.06
