"""The network, and the laws that hold for a model of sentences: cached = uncached, batch = single."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.models.base import Slot
from redraft.models.lstm.files import load_lstm
from redraft.models.lstm.network import AdaptiveSoftmax, LstmConfig
from redraft.models.lstm.reader import LstmReader
from redraft.models.pack import Pack
from redraft.models.vocabulary import UNKNOWN

_WORDS = ["the", "dog", "sees", "a", "ball", "doctor", "house", ",", ".", '"', "Obama", "(", "young", "not"]
_sentences = st.lists(st.sampled_from(_WORDS), min_size=0, max_size=9).map(tuple)


@pytest.fixture(scope="module")
def forward(tiny_pack: Pack) -> LstmReader:
    return load_lstm(tiny_pack, "forward")


@pytest.fixture(scope="module")
def backward(tiny_pack: Pack) -> LstmReader:
    return load_lstm(tiny_pack, "backward")


def _plain_log_prob(reader: LstmReader, words: tuple[str, ...]) -> float:
    return reader.log_prob(reader.read([words], [None])[0])


def _softmax() -> AdaptiveSoftmax:
    torch.manual_seed(0)
    return AdaptiveSoftmax(LstmConfig(23, size=8, cutoffs=(5, 11), tail_sizes=(4, 2)))


def test_adaptive_softmax_is_normalised_and_consistent() -> None:
    softmax, hidden = _softmax(), torch.randn(23, 8)
    every = softmax.log_prob(hidden)
    assert every.exp().sum(1).allclose(torch.ones(23))
    targets = torch.arange(23)
    assert softmax.log_prob_of(hidden, targets).allclose(every.gather(1, targets[:, None]).squeeze(1), atol=1e-6)
    assert softmax.loss(hidden, targets).item() == pytest.approx(-every.diagonal().sum().item(), abs=1e-4)


def test_the_loss_has_the_gradient_of_the_plain_one() -> None:
    softmax, targets = _softmax(), torch.tensor([0, 3, 7, 12, 22, 4])
    hidden = torch.randn(6, 8, requires_grad=True)
    parameters = [hidden, *softmax.parameters()]
    ours = torch.autograd.grad(softmax.loss(hidden, targets) * 0.3, parameters)
    plain = torch.autograd.grad(-softmax.log_prob(hidden).gather(1, targets[:, None]).sum() * 0.3, parameters)
    for a, b in zip(ours, plain, strict=True):
        assert a.allclose(b, atol=1e-5)


@given(st.lists(_sentences, min_size=1, max_size=4), st.lists(_sentences, min_size=4, max_size=4))
def test_reading_on_from_an_old_reading_changes_nothing(forward, backward, sentences, others) -> None:  # type: ignore[no-untyped-def]
    for reader in (forward, backward):
        old = reader.read(others[: len(sentences)], [None] * len(sentences))
        resumed = reader.read(sentences, old)
        fresh = reader.read(sentences, [None] * len(sentences))
        for a, b in zip(resumed, fresh, strict=True):
            assert a.ids == b.ids
            assert a.log_probs.allclose(b.log_probs, atol=1e-4)
            assert all(x.allclose(y, atol=1e-5) for x, y in zip(a.state, b.state, strict=True))


@given(st.data())
def test_filled_slots_score_like_whole_sentences(forward, data) -> None:  # type: ignore[no-untyped-def]
    sentences = data.draw(st.lists(_sentences, min_size=1, max_size=3))
    slots, fills = [], []
    for words in sentences:
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(start + 1, len(words))))))
        fills.append(
            data.draw(st.lists(st.lists(st.sampled_from(_WORDS), max_size=2).map(tuple), min_size=1, max_size=4))
        )
    scores = forward.log_probs_filled(slots, fills, forward.read(sentences, [None] * len(sentences)))
    for slot, words, score in zip(slots, fills, scores, strict=True):
        plain = [_plain_log_prob(forward, slot.fill(word)) for word in words]
        assert np.allclose(score, plain, atol=1e-4)


@given(_sentences)
def test_a_sentence_scores_as_the_sum_of_its_conditionals(forward, words) -> None:  # type: ignore[no-untyped-def]
    total = 0.0
    for i, word in enumerate(words):
        reading = forward.read([words[:i]], [None])
        dist = forward.log_dist([Slot(words[:i], i, i)], reading)[0]
        if not forward.vocabulary.is_plain[forward.vocabulary.id(word)]:
            return  # a capitalised form is proposed as its small form
        total += float(dist[forward.vocabulary.id(word)])
    reading = forward.read([words], [None])[0]
    assert float(reading.log_probs[:-1].sum()) == pytest.approx(total, abs=1e-3)


def test_a_distribution_over_plain_words_is_no_more_than_one(forward: LstmReader, backward: LstmReader) -> None:
    slots = [Slot((), 0, 0), Slot(("the", "dog"), 0, 0), Slot(("the", "dog"), 1, 2)]
    for reader in (forward, backward):
        dist = reader.log_dist(slots, reader.read([slot.words for slot in slots], [None] * 3))
        assert np.exp(dist.astype(np.float64)).sum(1).max() < 1 + 1e-5
        assert np.exp(dist[2].astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)


def test_the_opening_word_is_read_with_its_capital(forward: LstmReader) -> None:
    assert forward.vocabulary.words[forward.read([("the", "dog")], [None])[0].ids[0]] == "The"
    assert forward.read([("zebra", "dog")], [None])[0].ids[0] == UNKNOWN


def test_the_model_has_learnt_something(forward: LstmReader) -> None:
    good = _plain_log_prob(forward, tuple("the old man sees a red house .".split()))
    bad = _plain_log_prob(forward, tuple("house the a sees man red old .".split()))
    assert good > bad + 5


@settings(max_examples=20)
@given(st.lists(_sentences, min_size=2, max_size=5))
def test_a_batch_gives_what_each_gives_alone(forward, backward, sentences) -> None:  # type: ignore[no-untyped-def]
    for reader in (forward, backward):
        together = reader.read(sentences, [None] * len(sentences))
        for words, reading in zip(sentences, together, strict=True):
            alone = reader.read([words], [None])[0]
            assert reading.log_probs.allclose(alone.log_probs, atol=1e-5)
            assert reading.state[0].allclose(alone.state[0], atol=1e-5)
