"""Beam search over blanks: a full beam is an exhaustive search, and given words and lengths are kept."""

import itertools

import numpy as np
import pytest
from tests.lstms import half_reader, log_prob_of_ids, make_lstm, reader, vocabulary_of

from redraft import text
from redraft.blanks import Layout
from redraft.draft.blank_beam import BlankBeam
from redraft.draft.fillable import RandomFilling
from redraft.models.lstm.network import LstmLM
from redraft.sentence import Constraints

_VOCABULARY = vocabulary_of(". the The dog a A 't London")
_WORDS = _VOCABULARY.words[3:]
_FULL = 10_000
_CASES = {
    "inside": Constraints(template="the ___{2} dog ___{1} ."),
    "opening": Constraints(template="___{2} dog ."),
    "closing": Constraints(template="dog ___{3}", endings=(".", "?")),
    "an unknown word": Constraints(template="Xylophone ___{2} xylophone ."),
    "everything": Constraints(template="___{3}"),
    "any ending": Constraints(template="the ___{2}", endings=()),
    "bans": Constraints(template="the ___{2} dog ___{1} .", ban=("a", "dog London", "the dog")),
    "an opening mark": Constraints(template=". ___{2} dog ."),
}


def _is_opening(spelt: tuple[str, ...], layout: Layout, at: int, *, backward: bool) -> bool:
    return at == layout.opening if backward else text.opening(spelt[:at]) is None


def _exhaustive(network: LstmLM, constraints: Constraints, *, backward: bool) -> dict[tuple[str, ...], float]:
    """The log-probability of every sentence that may be written, as the model reads it."""
    layout, found = Layout.of(constraints), {}
    choices = [
        constraints.endings if layout.locks[at] == -2 else _WORDS if word is None else (word,)
        for at, word in enumerate(layout.words)
    ]
    for words in itertools.product(*choices):
        spelt, allowed = list(words), constraints.has_no_banned_phrase(words)
        for at, word in enumerate(words):
            opens = _is_opening(tuple(spelt[:at]) + words[at:], layout, at, backward=backward)
            if layout.words[at] is not None or layout.locks[at] == -2:
                capital = text.capitalise(word)
                spelt[at] = capital if opens and capital in _WORDS else word
                continue
            allowed &= word.lower() not in constraints.banned_words
            allowed &= not (at and layout.words[at - 1] is not None and word == "'t")
            allowed &= not opens or text.capitalise(word) == word or text.capitalise(word) not in _WORDS
        if allowed:
            ids = _VOCABULARY.ids(spelt)
            found[tuple(spelt)] = log_prob_of_ids(network, ids[::-1] if backward else ids)
    return found


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_a_full_beam_is_an_exhaustive_search(constraints: Constraints, backward: bool) -> None:
    network = make_lstm(len(_VOCABULARY), seed=3)
    everything = _exhaustive(network, constraints, backward=backward)
    beam = BlankBeam(half_reader(network, _VOCABULARY, backward=backward), _FULL)
    found = beam.fillings(Layout.of(constraints), constraints)
    assert {one.words for one in found} == set(everything)
    assert [one.log_prob for one in found] == pytest.approx(sorted(everything.values(), reverse=True), abs=1e-4)
    assert found[0].log_prob == pytest.approx(everything[found[0].words], abs=1e-4)


@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_the_forward_score_is_that_of_the_scorer(constraints: Constraints) -> None:
    """The capital at the beginning is lost when the sentence is stored, and found again when it is read."""
    network = make_lstm(len(_VOCABULARY), seed=4)
    beam, scorer = BlankBeam(half_reader(network, _VOCABULARY, backward=False), 7), reader(network, _VOCABULARY)
    layout = Layout.of(constraints)
    fillings, sentences = beam.fillings(layout, constraints), beam.find(layout, constraints)
    assert len(fillings) <= 7
    readings = scorer.read([one.words for one in sentences], [None] * len(sentences))
    assert [scorer.log_prob(one) for one in readings] == pytest.approx([one.log_prob for one in fillings], abs=1e-4)


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("constraints", _CASES.values(), ids=list(_CASES))
def test_given_words_and_lengths_are_kept(constraints: Constraints, backward: bool) -> None:
    layout = Layout.of(constraints)
    network = make_lstm(len(_VOCABULARY), seed=5)
    found = BlankBeam(half_reader(network, _VOCABULARY, backward=backward), 5).find(layout, constraints)
    proposable = np.arange(len(_VOCABULARY)) > 2
    random = RandomFilling(_VOCABULARY.words, proposable & _VOCABULARY.is_plain)
    found += [random.fill(layout, constraints, np.random.default_rng(seed)) for seed in range(20)]
    assert len(found) > 20
    for sentence in found:
        assert not constraints.unmet(sentence.words)
        assert len(sentence) == len(layout.words) == constraints.limit
        assert all(given in (None, word) for given, word in zip(layout.words, sentence.words, strict=True))


def test_a_wider_beam_finds_a_sentence_that_is_at_least_as_likely() -> None:
    network, constraints = make_lstm(len(_VOCABULARY), seed=6), _CASES["opening"]
    reading = half_reader(network, _VOCABULARY, backward=False)
    best = [BlankBeam(reading, width).fillings(Layout.of(constraints), constraints)[0].log_prob for width in (1, 9, 99)]
    assert best[2] >= max(best[:2]) - 1e-5


def test_no_way_around_a_banned_phrase() -> None:
    constraints = Constraints(template="the ___{1} dog .", ban=[f"{word} dog" for word in _WORDS if word != "."])
    barred = Constraints(template="the ___{1} dog .", ban=[*constraints.ban, ". dog"])
    reading = half_reader(make_lstm(len(_VOCABULARY), seed=6), _VOCABULARY, backward=False)
    assert [one.words[1] for one in BlankBeam(reading, 5).find(Layout.of(constraints), constraints)] == ["."]
    assert not BlankBeam(reading, 5).find(Layout.of(barred), barred)
