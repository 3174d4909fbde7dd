"""The infiller's drafts: reproducible, different, rewritten, with another system where it finds nothing."""

import logging
import math
from collections.abc import Sequence

import pytest

from redraft import text
from redraft.drafts import Settings
from redraft.errors import InputError
from redraft.infill_writer import InfillWriter, _Candidate
from redraft.models.base import Words
from redraft.models.pack import Pack
from redraft.recipes import RECIPES, InfillerRecipe, Overrides
from redraft.records import record
from redraft.sentence import Constraints, Order, num_words
from redraft.target import penalise_repetition, prefer
from tests.draft.test_particles import _END, _Toy, spelled

INPUTS = [
    Constraints(("us",), max_words=6),
    Constraints(("to", "us"), max_words=6),
    Constraints(("toward", "us"), order=Order.ANY, max_words=6),
    Constraints(template="us ___ to ___ .", max_words=7),
    Constraints(("us",), ban=("to",), min_words=2, max_words=6),
    Constraints(("to|toward", "?us"), order=Order.ANY, max_words=6),
    Constraints(template="us|to ___{2,3} to ___ .", max_words=8),
]


class ToyInfiller(_Toy):
    """The toy model with what a writer asks of an infiller besides."""

    name, precision, styles = "toy", "float32", ("News",)

    def log_probs(self, prompt: str, sentences: Sequence[Words], temperature: float = 1.0) -> list[float]:
        return [self._log_prob((*spelled(text.render(words)), _END), temperature) for words in sentences]

    def _log_prob(self, tokens: tuple[int, ...], temperature: float) -> float:
        import torch

        dists = [torch.tensor(self.log_dist(tokens[:i]) / temperature).log_softmax(-1) for i in range(len(tokens))]
        return float(sum(dist[token] for dist, token in zip(dists, tokens, strict=True)))


def make_writer(pack: Pack, **options) -> InfillWriter:  # type: ignore[no-untyped-def]
    recipe = RECIPES["infiller"].override(Overrides(particles=6))
    lowered = frozenset({"to", "us", "toward"})
    return InfillWriter(pack, recipe, ToyInfiller(3), style="News", lowered=lowered, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [0, 5])
def test_an_input_has_the_same_draft_alone_and_in_a_batch(tiny_pack: Pack, steps: int) -> None:
    writer, settings = make_writer(tiny_pack), Settings(steps, seed=4)
    together = writer.write_many(INPUTS, settings)
    for number, constraints in enumerate(INPUTS):
        (alone,) = make_writer(tiny_pack).write_many([constraints], settings, numbers=[number])
        assert [draft.text for draft in alone] == [draft.text for draft in together[number]]


def test_drafts_meet_their_constraints_and_differ(tiny_pack: Pack) -> None:
    for drafts in make_writer(tiny_pack).write_many(INPUTS, Settings(4, num=3, seed=1)):
        assert all(draft.constraints_met for draft in drafts)
        assert len({draft.text for draft in drafts}) == len(drafts)


def test_spares_come_after_the_drafts(tiny_pack: Pack) -> None:
    few, many = (
        make_writer(tiny_pack).write_many(INPUTS, Settings(4, num=2, spares=spares, seed=1)) for spares in (0, 9)
    )
    for drafts, with_spares in zip(few, many, strict=True):
        texts = [draft.text for draft in with_spares]
        assert texts[:2] == [draft.text for draft in drafts]
        assert len(set(texts)) == len(texts)
    assert sum(map(len, many)) > sum(map(len, few))
    assert "drafts:2|spares:9|" in many[0][0].signature


def test_templates_have_a_number_of_particles_of_their_own(tiny_pack: Pack) -> None:
    writer = InfillWriter(
        tiny_pack, InfillerRecipe("infiller", "", particles=9, particles_of_templates=4), ToyInfiller(3), style="News"
    )  # type: ignore[arg-type]
    inputs = [Constraints(("to",), max_words=3), Constraints(template="to ___", max_words=3)]
    drafts = [drafts[0] for drafts in writer.write_many(inputs, Settings(0, chains=2, seed=1))]
    assert [len(draft.particles) for draft in drafts] == [18, 8]
    assert "particles:18/8|" in drafts[0].signature
    assert "particles:6|" in make_writer(tiny_pack).signature(Settings(0), 1)


def test_more_given_words_have_more_particles(tiny_pack: Pack) -> None:
    recipe = InfillerRecipe("infiller", "", particles=8, particles_per_word=3)
    inputs = [Constraints(words, max_words=9) for words in (("us",), ("us", "to"), ("us", "to", "us"))]

    def numbers(recipe: InfillerRecipe, **settings: int) -> list[int]:
        writer = InfillWriter(tiny_pack, recipe, ToyInfiller(3), style="News")  # type: ignore[arg-type]
        found = writer.write_many(inputs, Settings(0, seed=1, **settings))
        assert ("per_word:" in found[0][0].signature) == (recipe.particles_per_word is not None)
        return [len(drafts[0].particles) for drafts in found]

    assert numbers(recipe) == [3, 6, 8]
    assert numbers(recipe, num=2) == [4, 6, 8]
    assert numbers(recipe, chains=2) == [6, 12, 16]
    assert numbers(recipe.override(Overrides(particles=4))) == [4, 4, 4]


def test_of_the_drafts_for_keywords_only_the_likelier_ones_are_scored_alone(tiny_pack: Pack) -> None:
    class Counting(ToyInfiller):
        def log_probs(self, prompt: str, sentences: Sequence[Words], temperature: float = 1.0) -> list[float]:
            scored.append(len(sentences))
            return super().log_probs(prompt, sentences, temperature)

    scored: list[int] = []
    recipe = InfillerRecipe("infiller", "", particles=60, particles_of_templates=60, particles_per_word=None)
    writer = InfillWriter(tiny_pack, recipe, Counting(3), style="News")  # type: ignore[arg-type]
    inputs = [Constraints(("us",), max_words=8), Constraints(template="us ___ to ___ .", max_words=9)]
    drafts = [drafts[0] for drafts in writer.write_many(inputs, Settings(0, seed=1))]
    different = [len({particle.text for particle in draft.particles}) for draft in drafts]
    assert scored == [math.ceil(different[0] / 2), different[1]]
    assert different[0] > 16


def test_absurd_numbers_of_particles_are_refused(tiny_pack: Pack) -> None:
    with pytest.raises(InputError, match="chains times particles must be at most 1,024, not 1,200"):
        make_writer(tiny_pack).write(INPUTS[0], Settings(0, chains=200))


def test_rewrites_are_told(tiny_pack: Pack) -> None:
    writer = make_writer(tiny_pack, temperature=3.0)  # particles that leave something to rewrite
    drafts = [drafts[0] for drafts in writer.write_many(INPUTS, Settings(12, seed=2))]
    rewritten = [draft for draft in drafts if draft.rewrites]
    assert rewritten  # some draft is better after it
    for draft in rewritten:
        assert draft.rewrites[-1].accepted
        assert draft.rewrites[-1].words == draft.words
        assert draft.start is not None
        assert draft.start.words != draft.words
        told = record(draft, trace=True)["rewrites"]
        assert [one["accepted"] for one in told] == [one.accepted for one in draft.rewrites]
    assert "rewrites:12" in drafts[0].signature


def test_rewriting_raises_the_score_of_what_is_chosen(tiny_pack: Pack) -> None:
    model, inputs = ToyInfiller(3), [*INPUTS[:2] * 8]

    def scores(steps: int) -> list[float]:
        drafts = [
            drafts[0] for drafts in make_writer(tiny_pack, temperature=3.0).write_many(inputs, Settings(steps, seed=0))
        ]
        return [
            model.log_probs("", [draft.words])[0] / (len(spelled(draft.text)) + 1) ** 0.5
            + penalise_repetition(1.0).log_weight(draft.words)
            - max(0, constraints.preferred_words - num_words(draft.words))
            for constraints, draft in zip(inputs, drafts, strict=True)
        ]

    before, after = scores(0), scores(10)
    assert all(new >= old for old, new in zip(before, after, strict=True))
    assert sum(after) > sum(before)


def test_a_preference_is_heeded(tiny_pack: Pack) -> None:
    def num_with(weight: float) -> int:
        writer = make_writer(tiny_pack, soft=(prefer("toward", weight),))
        drafts = writer.write_many([INPUTS[0]] * 10, Settings(2, seed=0))
        return sum("toward" in one[0].words for one in drafts)

    assert num_with(6.0) > num_with(-6.0)


def test_a_preference_counts_in_full(tiny_pack: Pack) -> None:
    def score(weight: float) -> float:
        writer = make_writer(tiny_pack, soft=(prefer("us", weight),))
        sentence = Constraints(("us",)).start()
        return writer._score(INPUTS[0], _Candidate(sentence, -5.0, -4.0, 9, sentence))

    assert score(2.0) - score(0.0) == pytest.approx(2.0)


def test_another_system_writes_what_the_infiller_cannot(tiny_pack: Pack, caplog: pytest.LogCaptureFixture) -> None:
    impossible = Constraints(("us",), ban=("to", "toward", "us us"), min_words=4, max_words=6)
    with pytest.raises(InputError, match="allow more words"):
        make_writer(tiny_pack).write(impossible)
    other = make_writer(tiny_pack)
    writer = make_writer(tiny_pack, fallback=lambda: other)
    limits: list[float | None] = []
    other.write_jobs = lambda _, settings: limits.append(settings.time_limit) or [["a draft"]]  # type: ignore
    with caplog.at_level(logging.WARNING, logger="redraft"):
        assert writer.write(impossible, Settings(seed=0)) == ["a draft"]
        assert writer.write(impossible, Settings(seed=0, time_limit=1e-6)) == ["a draft"]
    assert limits == [None, 0.1]  # what is left of the time, and at least a moment
    assert "another system writes it" in caplog.text
