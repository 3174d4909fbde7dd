"""First drafts hold what is given, and a beam as wide as the language finds the likeliest sentence."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redraft
from redraft.draft.grid_beam import GridBeam
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import DEFAULT, Pack, open_pack
from redraft.sampler import Chain
from redraft.sentence import Constraints, Order, Sentence, num_words
from redraft.target import prefer_length
from redraft.writer import Settings


@pytest.fixture(scope="module")
def english() -> Pack:
    return open_pack(DEFAULT)


def _drafts(pack: Pack, constraints: Constraints, *, width: int = 4, noise: float = 0.0, seed: int = 0):
    chain = Chain(constraints, np.random.default_rng(seed))
    return GridBeam(load_lstm(pack, "forward"), width, noise).draft(chain)


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(("dog",)),
        Constraints(("dog", "old man", "Xylophone", "sea")),
        Constraints(("sea", "dog", "park"), order=Order.ANY),
        Constraints(("dog", "sea"), ban=("the", "a dog")),
        Constraints(("dog",), min_words=20),
        Constraints(("dog", "sea"), max_words=3),
        Constraints(("dog",), endings=()),
        Constraints(template="The ___ sees ___ ."),
        Constraints(template="___ the dog"),
        Constraints(template="___"),
    ],
)
def test_a_draft_meets_its_constraints(tiny_pack: Pack, constraints: Constraints) -> None:
    for seed in range(3):
        draft = _drafts(tiny_pack, constraints, noise=0.5, seed=seed)
        assert not constraints.unmet(draft.words)
        assert constraints.shortfall(draft) == 0 or constraints.max_words == 3


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["dog", "sea", "New York", "can't", "naïve", "the", "123"]), min_size=1, max_size=5))
def test_any_keywords(tiny_pack: Pack, keywords: list[str]) -> None:
    constraints = Constraints(tuple(keywords))
    assert not constraints.unmet(_drafts(tiny_pack, constraints, width=2).words)


def test_a_wide_beam_finds_the_likeliest_sentence(tiny_pack: Pack) -> None:
    """All sentences of a keyword and up to two words of few: the beam keeps every one."""
    model = load_lstm(tiny_pack, "forward")
    kept = {"the", "old", "dog", "sees", "a"}
    banned = tuple(word for word in model.words if word.lower() not in kept and word != ".")
    constraints = Constraints(("dog",), ban=banned, max_words=4, min_words=3)
    draft = _drafts(tiny_pack, constraints, width=200)
    texts = {
        (*before, "dog", *after, ".")
        for num in range(3)
        for before in itertools.product(kept - {"dog"}, repeat=num)
        for after in itertools.product(kept - {"dog"}, repeat=2 - num)
        if all(left != right for left, right in itertools.pairwise((*before, "dog", *after)))
        and len({word for word in (*before, *after) if len(word) > 3}) == sum(len(w) > 3 for w in (*before, *after))
    }
    scores = {words: model.log_prob(model.read([words], [None])[0]) for words in texts}
    assert draft.words == max(scores, key=lambda words: scores[words])


def test_a_plain_choice_takes_the_likeliest_whole_sentence(tiny_pack: Pack) -> None:
    model, constraints = load_lstm(tiny_pack, "forward"), Constraints(("dog",), min_words=1)

    def costs(*, is_per_word: bool) -> list[float]:
        beam = GridBeam(model, 4, is_per_word=is_per_word)
        found = [one.words for one in beam.ranked(Chain(constraints, np.random.default_rng(0)), 1000)]
        totals = [-model.log_prob(model.read([words], [None])[0]) for words in found]
        return [total / (len(words) + 1) if is_per_word else total for total, words in zip(totals, found, strict=True)]

    for is_per_word in (False, True):
        assert len(costs(is_per_word=is_per_word)) > 4
        assert costs(is_per_word=is_per_word) == sorted(costs(is_per_word=is_per_word))


def test_noise_makes_drafts_differ_and_a_seed_makes_them_the_same(tiny_pack: Pack) -> None:
    constraints = Constraints(("dog", "sea"))
    several = {_drafts(tiny_pack, constraints, noise=2.0, seed=seed).words for seed in range(6)}
    assert len(several) > 1
    assert _drafts(tiny_pack, constraints, noise=2.0, seed=1) == _drafts(tiny_pack, constraints, noise=2.0, seed=1)


def test_words_that_the_model_does_not_know_find_a_place(english: Pack) -> None:
    """Their cost is known only once they are read."""
    model = load_lstm(english, "forward")
    assert not {"selfie", "fine-tuning"} & set(model.words)
    for keywords in (("dog", "park", "selfie"), ("fine-tuning",)):
        words = _drafts(english, Constraints(keywords), width=5).words
        assert words[: len(keywords)] != keywords


def test_no_given_word_becomes_another_one(english: Pack) -> None:
    for keyword in ("don", "won", "can"):
        words = _drafts(english, Constraints((keyword,)), width=5).words
        assert words[words.index(keyword) + 1] != "'t"


def test_soft_scores_choose_among_what_was_found(tiny_pack: Pack) -> None:
    model, constraints = load_lstm(tiny_pack, "forward"), Constraints(("dog",), min_words=1)
    for length in (3, 6, 9):
        beam = GridBeam(model, 4, soft=(prefer_length(length, 50.0),))
        assert num_words(beam.draft(Chain(constraints, np.random.default_rng(0))).words) == length


def test_a_wish_for_a_length_is_heard(tiny_pack: Pack) -> None:
    def drafts(length: int, recipe: str) -> list[int]:
        writer = redraft.load(str(tiny_pack.folder), recipe, candidates=10, soft=[prefer_length(length)])
        inputs = [Constraints((word,)) for word in ("dog", "sea", "doctor", "ball")]
        return [num_words(one.words) for (one,) in writer.write_many(inputs, Settings(seed=0))]

    for recipe in ("gbs", "l-mcmc"):
        for length in (4, 8):
            assert np.abs(np.array(drafts(length, recipe)) - length).mean() <= 1


def test_every_input_has_a_draft_before_one_has_two(tiny_pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    plain = GridBeam.ranked

    def ranked(self: GridBeam, chain: Chain, num: int, in_time: Callable[[], bool]) -> list[Sentence]:
        order.append(chain.constraints.keywords[0])
        return plain(self, chain, num, in_time)

    monkeypatch.setattr(GridBeam, "ranked", ranked)
    writer = redraft.load(str(tiny_pack.folder), "gbs")
    writer.write_many([Constraints((word,)) for word in ("dog", "sea")], Settings(chains=2, seed=0))
    assert order == ["dog", "sea", "dog", "sea"]


def test_a_search_ends_when_the_time_is_up(tiny_pack: Pack) -> None:
    model, chain = load_lstm(tiny_pack, "forward"), Chain(Constraints(("dog",)), np.random.default_rng(0))
    looks = iter([True, True, True, False])
    cut = GridBeam(model, 4).ranked(chain, 100, lambda: next(looks))
    assert max(map(len, cut)) <= 3 < max(map(len, GridBeam(model, 4).ranked(chain, 100)))


def test_an_ending_does_not_complete_a_banned_phrase(tiny_pack: Pack) -> None:
    free = _drafts(tiny_pack, Constraints(("dog",)))
    banned = " ".join(free.words[-2:])
    assert _drafts(tiny_pack, Constraints(("dog",), ban=(banned,))).words[-2:] != free.words[-2:]
