"""Particles: constraints hold in each, and their weights make them draws from the model given the constraints."""

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from redraft import text
from redraft.draft.particles import DraftOrder, ParticleDrafter
from redraft.errors import ConstraintError
from redraft.models.base import Words
from redraft.models.causal.infiller import TokenTable
from redraft.models.causal.llama import UNREAD
from redraft.sentence import Constraints, Order

# "toward" is "to" and "ward", so that a word may end or be spelled on.
_TEXTS = ("\n", " to", "To", " us", "Us", "ward", ".")
_NUM_RUNS = 300
_END, _START = 0, len(_TEXTS)
_AFTER = {0: (), 1: (1, 3, 5, 6), 2: (1, 3, 5, 6), 3: (1, 3, 6), 4: (1, 3, 6), 5: (1, 3, 6), 6: (0,), _START: (2, 4)}


class _Toy:
    """A model with seven tokens whose expectations depend on the two tokens before."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self._table = np.full((8, 8, len(_TEXTS)), -np.inf)
        for last, following in _AFTER.items():
            self._table[:, last, following] = 1.2 * rng.normal(size=(8, len(following)))
        self.tokens = TokenTable(_TEXTS, _END)

    def log_dist(self, ids: Sequence[int]) -> np.ndarray:
        return torch.tensor(self._table[(_START, _START, *ids)[-2:]]).log_softmax(-1).numpy()

    def begin(
        self, prompt: str, num_rows: int, max_tokens: int, given: tuple[int, ...] = ()
    ) -> tuple[torch.Tensor, "_ToyDecoder"]:
        return torch.tensor(self.log_dist(given)), _ToyDecoder(self, num_rows, given)

    def step(self, steps: Sequence[tuple["_ToyDecoder", Sequence[int]]]) -> list[torch.Tensor]:
        return [decoder.read(ids) for decoder, ids in steps]

    def logits(self, prompt: str, rows: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        return [torch.tensor(np.stack([self.log_dist(row[:i]) for i in range(len(row))])) for row in rows]

    def spell(self, before: Words, added: Words) -> tuple[int, ...]:
        return spelled(text.render((*before, *added))[len(text.render(before)) :])


class _ToyDecoder:
    def __init__(self, model: _Toy, num_rows: int, given: tuple[int, ...]):
        self._model, self._rows, self._num_given = model, [given] * num_rows, len(given)

    def read(self, ids: Sequence[int]) -> torch.Tensor:
        self._rows = [(*row, token) if token != UNREAD else row for row, token in zip(self._rows, ids, strict=True)]
        read = [row for row, token in zip(self._rows, ids, strict=True) if token != UNREAD]
        return torch.tensor(np.stack([self._model.log_dist(row) for row in read]))

    def select(self, rows: Sequence[int], lengths: Sequence[int] | None = None) -> None:
        lasts = [None] * len(rows) if lengths is None else [self._num_given + length for length in lengths]
        self._rows = [self._rows[i][:last] for i, last in zip(rows, lasts, strict=True)]


def spelled(written: str) -> tuple[int, ...]:
    """The one way in which the toy model writes a text."""
    tokens = []
    while written:
        token = next(i for i, one in enumerate(_TEXTS) if written.startswith(one))
        tokens.append(token)
        written = written[len(_TEXTS[token]) :]
    return tuple(tokens)


def sentences(model: _Toy, most: int, ids: tuple[int, ...] = (), log_prob: float = 0.0) -> Iterator[tuple[str, float]]:
    """All texts of up to ``most`` tokens that the model can write, with their log-probabilities."""
    for token, log_next in enumerate(model.log_dist(ids)):
        if token == _END and np.isfinite(log_next):
            yield "".join(_TEXTS[i] for i in ids), log_prob + float(log_next)
        elif np.isfinite(log_next) and len(ids) < most:
            yield from sentences(model, most, (*ids, token), log_prob + float(log_next))


def is_met(constraints: Constraints, words: list[str]) -> bool:
    if not constraints.met_by(words):
        return False
    if constraints.template is None:
        return True
    pattern = re.sub(r"(\w+)\|(\w+)", r"(\1|\2)", constraints.template)
    pattern = re.sub(r"___\{(\d),(\d)\}", r"[a-z]+( [a-z]+){\1,\2}", pattern).replace("___", "[a-z]+( [a-z]+)*")
    pattern = re.sub(r"\{(\d),(\d)\}", lambda one: f"{{{int(one[1]) - 1},{int(one[2]) - 1}}}", pattern)
    pattern += " ." if constraints.has_ending else ""
    return re.fullmatch(pattern.replace(" .", " [.]"), " ".join(words).lower()) is not None


def enumerated(model: _Toy, constraints: Constraints) -> dict[str, float]:
    """The model's distribution over the sentences that meet the constraints, by trying all."""
    tried = sentences(model, 2 * constraints.limit)
    met = {written: log_prob for written, log_prob in tried if is_met(constraints, text.tokenise(written))}
    total = np.logaddexp.reduce(list(met.values()))
    return {written: float(np.exp(log_prob - total)) for written, log_prob in met.items()}


CASES = {
    "one": Constraints(("us",), max_words=4),
    "two": Constraints(("to", "us"), max_words=5),
    "twice": Constraints(("us", "us"), max_words=4),
    "part of a word": Constraints(("to", "toward"), max_words=4),
    "any order": Constraints(("to", "us"), order=Order.ANY, max_words=4),
    "any order, shared start": Constraints(("toward", "to us"), order=Order.ANY, max_words=5),
    "phrase": Constraints(("us to",), max_words=5),
    "ban and minimum": Constraints(("us",), ban=("to",), min_words=2, max_words=5),
    "template": Constraints(template="us ___ to ___ .", max_words=6),
    "open template": Constraints(template="___ toward ___", max_words=5),
    "alternatives": Constraints(("us|toward",), max_words=4),
    "one begins with the other": Constraints(("to|toward", "us"), max_words=4),
    "any order, one begins with the other": Constraints(("to|toward", "us"), order=Order.ANY, max_words=4),
    "a word or a phrase with it": Constraints(('us|"to us"', "to"), max_words=5),
    "a phrase that begins with the word": Constraints(('us|"us to"',), max_words=4),
    "phrases that overlap": Constraints(('"us us"|"us to"',), max_words=4),
    "a word twice, once as it is": Constraints(("us|to", "us"), order=Order.ANY, max_words=4),
    "optional": Constraints(("us", "?to"), max_words=4),
    "optional before": Constraints(("?toward", "us"), max_words=4),
    "optional, any order": Constraints(("us", "?to|toward"), order=Order.ANY, max_words=4),
    "template with alternatives": Constraints(template="us|to ___ to|toward .", max_words=5),
    "open template with alternatives": Constraints(template="___ us|toward ___", max_words=5),
    "a list of words": Constraints(("us",), allow=("to", "us"), max_words=4),
    "a list of words and alternatives": Constraints(("us|toward",), allow=("us", "toward"), max_words=4),
    "a list without an alternative": Constraints(("us|toward",), allow=("to", "toward"), max_words=4),
    "numbers of words": Constraints(template="us ___{2,3} to .", max_words=6),
    "numbers of words at the ends": Constraints(template="___{2,2} to ___{1,2}", max_words=5),
}


@pytest.mark.parametrize("constraints", CASES.values(), ids=CASES)
def test_weighted_draws_are_those_of_the_model_given_the_constraints(constraints: Constraints) -> None:
    model = _Toy(3)
    wanted = enumerated(model, constraints)
    drafter, rng = ParticleDrafter(model), np.random.default_rng(0)
    columns = {written: i for i, written in enumerate(wanted)}
    weights = np.zeros((_NUM_RUNS, len(wanted)))  # a run's weight of each sentence
    for run in weights:
        for one in drafter.draft(DraftOrder(constraints, rng, 8)):
            run[columns[one.sentence.text]] += np.exp(one.log_weight)
    shares, totals = np.array(list(wanted.values())), weights.sum(1, keepdims=True)
    errors = weights.sum(0) / totals.sum() - shares
    deviations = np.sqrt(((weights - totals * shares) ** 2).sum(0)) / totals.sum()
    assert (np.abs(errors) < 4.5 * deviations + 0.01).all()
    assert deviations.max() < 0.06  # or the test would see nothing


def test_the_same_seed_gives_the_same_particles() -> None:
    drafts = [ParticleDrafter(_Toy(5)).draft(DraftOrder(CASES["two"], np.random.default_rng(7), 6)) for _ in range(2)]
    assert drafts[0] == drafts[1]


# One draw of each case, kept so that a change of the code that should not change draws is seen to change none.
_DRAWN = {
    "one": ["Us to.", "To us.", "Us to.", "Us us to.", "Us to to.", "Us toward."],
    "any order": ["To us.", "Us to.", "Us us to.", "Us to to.", "To us to.", "Us toward to."],
    "phrase": ["Us to.", "Us to toward.", "Us to toward.", *["Us toward us to."] * 3],
    "template": [f"Us {rest}." for rest in "us to to|to to to|us to us to|us to to us|toward to us to".split("|")]
    + ["Us toward to us toward."],
}


@pytest.mark.parametrize("case", _DRAWN)
def test_draws_stay_the_same(case: str) -> None:
    found = ParticleDrafter(_Toy(3)).draft(DraftOrder(CASES[case], np.random.default_rng(1), 6))
    assert [one.sentence.text for one in found] == _DRAWN[case]


_WORDS = st.sampled_from(["to", "us", "toward", "to us", "us us toward"])


@given(
    st.lists(_WORDS, min_size=1, max_size=3),
    st.sampled_from(Order),
    st.sets(st.sampled_from(["to", "us to", "toward toward"]), max_size=2),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 99),
)
def test_every_particle_meets_every_constraint(
    keywords: list[str], order: Order, banned: set[str], more: int, spare: int, seed: int
) -> None:
    num_given = sum(len(keyword.split()) for keyword in keywords)
    try:
        constraints = Constraints(
            tuple(keywords), order=order, ban=tuple(banned), min_words=more, max_words=num_given + more + 1 + spare
        )
    except ConstraintError:
        return
    for one in ParticleDrafter(_Toy(seed)).draft(DraftOrder(constraints, np.random.default_rng(seed), 6)):
        assert constraints.met_by(one.sentence.words)
        assert constraints.met_by(text.tokenise(one.sentence.text))
        for lock, keyword in enumerate(keywords):
            held = [word for word, own in zip(one.sentence.words, one.sentence.locks, strict=True) if own == lock]
            assert held == keyword.split()


def has_in_order(words: list[str], keywords: Sequence[Sequence[str]]) -> bool:
    """Whether one alternative of each keyword occurs, one after the other: a check that shares no code with redraft."""
    if not keywords:
        return True
    found = [re.search(rf"(^| ){one}(?= |$)", " ".join(words).lower()) for one in keywords[0]]
    ends = [one.end() for one in found if one]
    return bool(ends) and has_in_order(" ".join(words)[min(ends) :].split(), keywords[1:])


_FORMS = {"us|to": ["us", "to"], "to|toward": ["to", "toward"], 'us|"to us"': ["us", "to us"], "toward": ["toward"]}


@given(
    st.lists(st.sampled_from([*_FORMS, "?us|toward"]), min_size=1, max_size=3).filter(lambda one: set(one) & {*_FORMS}),
    st.sampled_from(Order),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_every_particle_has_a_form_of_each_word(keywords: list[str], order: Order, spare: int, seed: int) -> None:
    constraints = Constraints(tuple(keywords), order=order, max_words=2 * len(keywords) + 1 + spare)
    required = [_FORMS[one] for one in keywords if one in _FORMS]
    orders = itertools.permutations(required) if order is Order.ANY else [required]
    orders = [list(one) for one in orders]
    for one in ParticleDrafter(_Toy(seed)).draft(DraftOrder(constraints, np.random.default_rng(seed), 6)):
        assert constraints.met_by(one.sentence.words)
        words = text.tokenise(one.sentence.text)
        assert any(has_in_order(words, each) for each in orders)
        locked = {lock for lock in one.sentence.locks if lock >= 0}
        assert locked >= {number for number, keyword in enumerate(keywords) if not keyword.startswith("?")}


@given(
    st.lists(st.sampled_from(["to", "us", "___", "toward", "___"]), min_size=1, max_size=6),
    st.booleans(),
    st.integers(0, 99),
)
def test_every_blank_is_filled(pieces: list[str], has_stop: bool, seed: int) -> None:
    template = " ".join([*pieces, "___", *(["."] if has_stop else [])])
    constraints = Constraints(template=template)
    for one in ParticleDrafter(_Toy(seed)).draft(DraftOrder(constraints, np.random.default_rng(seed), 6)):
        assert constraints.met_by(one.sentence.words)
        assert one.sentence.num_empty_gaps == 0


class _Endless(_Toy):
    """A model that hardly ever ends a word, as one that writes on where there is no room for another."""

    def log_dist(self, ids: Sequence[int]) -> np.ndarray:
        found = super().log_dist(ids)
        if ids and ids[-1] not in (_END, 6):
            found = np.logaddexp(found + np.log(0.25), np.where(np.arange(len(_TEXTS)) == 5, np.log(0.75), -np.inf))
        return found


@pytest.mark.parametrize("template", ["___ us ___ us ___ us .", "us ___ us ___ us ."])
def test_particles_without_room_complete_the_sentence(template: str) -> None:
    drafter = ParticleDrafter(_Endless(3))
    constraints = Constraints(template=template, max_words=len(template.split()) + 1)
    orders = [DraftOrder(constraints, np.random.default_rng(seed), 6) for seed in range(20)]
    assert sum(len(drafter.draft(order)) for order in orders) > 60
