"""The laws of a model of sentences, for XLNets: cached equals uncached, a batch equals its members."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.making import whole_score
from tests.xlnets import SENTENCES, WORDS, readers

from redraft import text
from redraft.models.base import Slot
from redraft.models.pieces import SentencePieces
from redraft.models.vocabulary import SPECIALS
from redraft.models.xlnet import reader as xlnet_reader
from redraft.models.xlnet import scoring as xlnet_scoring
from redraft.models.xlnet.files import save_xlnet
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import XlnetLM
from redraft.models.xlnet.reader import XlnetReader
from redraft.models.xlnet.words import PieceWords
from redraft.synthesis.masked_xlnet import FolderMaskedXlnet


def test_only_whole_words_are_proposed(pieces: Path) -> None:
    words = PieceWords(SentencePieces(pieces))
    listed = words.vocabulary.words[len(SPECIALS) :]
    assert {"dog", "the", "The"} <= set(listed)
    assert all(len(words.split(word)) == 1 and text.tokenise(word) == [word] for word in listed)
    assert "fine-tuning" not in listed
    assert len(words.split("fine-tuning")) > 2
    assert not words.proposable[: len(SPECIALS)].any()
    assert words.proposable[len(SPECIALS) :].all()


class _NaturalPieces:
    """As xlnet-base-cased: punctuation has a piece only without the mark that begins a word."""

    names = ("<unk>", "<s>", "</s>", "<pad>", "▁", ",", "▁dog", "ing", "▁(", "s", "'")

    def encode(self, word: str) -> list[int]:
        found = {",": [4, 5], "dog": [6], "ing": [4, 7], "(": [8], "'s": [4, 10, 9], "☃": [4, 0]}
        return found.get(word, [4, 0])

    def id_to_piece(self, piece: int) -> str:
        return self.names[piece]

    def unk_id(self) -> int:
        return 0

    def is_control(self, piece: int) -> bool:
        return 0 < piece < 4

    def is_unknown(self, piece: int) -> bool:
        return piece == 0

    def is_unused(self, piece: int) -> bool:
        return False


def test_punctuation_is_read_as_natural_text_has_it(pieces: Path) -> None:
    splitter = SentencePieces(pieces)
    splitter._model, splitter.size, splitter._bare = _NaturalPieces(), 11, 4
    assert splitter.split(",") == (5,)
    assert splitter.split("'s") == (10, 9)
    assert splitter.split("ing") == (4, 7)  # a word of its own, not the end of the word before it
    assert splitter.split("☃") == (4, 0)
    assert splitter.whole_words() == [(",", 5), ("dog", 6), ("(", 8)]


@settings(max_examples=25)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.lists(SENTENCES, min_size=4, max_size=4))
def test_reading_on_from_an_old_reading_changes_nothing(forward, backward, sentences, others) -> None:  # type: ignore[no-untyped-def]
    for reader in (forward, backward):
        old = reader.read(others[: len(sentences)], [None] * len(sentences))
        resumed = reader.read(sentences, old)
        fresh = reader.read(sentences, [None] * len(sentences))
        for a, b in zip(resumed, fresh, strict=True):
            assert (a.ids, a.firsts) == (b.ids, b.firsts)
            for x, y in ((a.log_probs, b.log_probs), (a.hidden, b.hidden), (a.key, b.key), (a.value, b.value)):
                assert x.allclose(y, atol=1e-4)


@settings(max_examples=25)
@given(st.data())
def test_filled_slots_score_like_whole_sentences(forward, data) -> None:  # type: ignore[no-untyped-def]
    sentences = data.draw(st.lists(SENTENCES, min_size=1, max_size=3))
    slots, fills = [], []
    for words in sentences:
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(start + 1, len(words))))))
        fills.append(data.draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=2).map(tuple), max_size=4)))
    scores = forward.log_probs_filled(slots, fills, forward.read(sentences, [None] * len(sentences)))
    for slot, words, score in zip(slots, fills, scores, strict=True):
        assert np.allclose(score, [whole_score(forward, slot.fill(word)) for word in words], atol=1e-4)


@settings(max_examples=25)
@given(SENTENCES)
def test_a_sentence_scores_as_the_sum_of_its_conditionals(forward, words) -> None:  # type: ignore[no-untyped-def]
    """Word by word, for words of one piece. The first word is scored with its capital."""
    reading = forward.read([words], [None])[0]
    shown = text.surface(words)
    total = float(reading.log_probs[-1])
    for i, word in enumerate(words):
        dist = forward.log_dist([Slot(words[:i], i, i)], forward.read([words[:i]], [None]))[0]
        of_word = float(reading.log_probs[reading.firsts[i] : reading.firsts[i + 1]].sum())
        if shown[i] in forward.vocabulary and forward.vocabulary.is_plain[forward.vocabulary.id(word)]:
            assert of_word == pytest.approx(float(dist[forward.vocabulary.id(word)]), abs=1e-3)
        total += of_word
    assert forward.log_prob(reading) == pytest.approx(total, abs=1e-6)


def test_the_sum_over_pieces_is_one(network: XlnetLM, forward: XlnetReader, pieces: Path) -> None:
    """The score of a word of several pieces is the product of its pieces' conditionals, by transformers' definition."""
    splitter = SentencePieces(pieces)
    words = ("the", "fine-tuning", "sees", "a", "dog", ".")
    shown = text.surface(words)
    ids = torch.tensor([[splitter.begin, *(i for word in shown for i in splitter.split(word)), splitter.end]])
    with torch.inference_mode():
        log_probs = network(network.transformer.causal(ids[:, :-1])[0]).log_softmax(-1)
    expected = log_probs.gather(2, ids[:, 1:, None]).sum().item()
    assert whole_score(forward, words) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=15)
@given(st.lists(SENTENCES, min_size=2, max_size=5), st.integers(0, 7))
def test_a_batch_gives_what_each_gives_alone(three, sentences, place) -> None:  # type: ignore[no-untyped-def]
    slots = [Slot(words, min(place, len(words)), min(place + 1, len(words))) for words in sentences]
    for reader in three:
        together = reader.read(sentences, [None] * len(sentences))
        dists = reader.log_dist(slots, together)
        for words, slot, reading, dist in zip(sentences, slots, together, dists, strict=True):
            alone = reader.read([words], [None])
            assert np.allclose(dist, reader.log_dist([slot], alone)[0], atol=1e-4)
            if reading is not None:
                assert reading.log_probs.allclose(alone[0].log_probs, atol=1e-4)


def test_distributions_over_words_are_no_more_than_one(three) -> None:  # type: ignore[no-untyped-def]
    slots = [Slot((), 0, 0), Slot(("the", "dog"), 0, 0), Slot(("the", "fine-tuning"), 1, 2), Slot(("the", "dog"), 2, 2)]
    for reader in three:
        dist = reader.log_dist(slots, reader.read([slot.words for slot in slots], [None] * len(slots)))
        assert np.exp(dist.astype(np.float64)).sum(1).max() < 1 + 1e-5
        assert np.isneginf(dist[:, : len(SPECIALS)]).all()


def test_a_masked_slot_is_seen_from_both_sides(masked: XlnetMaskedReader) -> None:
    def dist(slot: Slot) -> np.ndarray:
        return masked.log_dist([slot], [None])[0]

    whole = ("the", "dog", "sees", "a", "man", ".")
    here = dist(Slot(whole, 1, 2))
    other_word = ("the", "house", *whole[2:])
    assert np.array_equal(here, dist(Slot(other_word, 1, 2)))  # not from what stands in it
    assert np.array_equal(here, dist(Slot(("the", *whole[2:]), 1, 1)))  # a gap is a slot like any other
    assert not np.allclose(here, dist(Slot((*whole[:5], "!"), 1, 2)))
    assert not np.allclose(here, dist(Slot(("a", *whole[1:]), 1, 2)))


def test_the_opening_word_is_read_with_its_capital(forward: XlnetReader, backward: XlnetReader, pieces: Path) -> None:
    split = SentencePieces(pieces).split
    assert forward.read([("the", "dog")], [None])[0].ids == (*split("The"), *split("dog"))
    assert backward.read([("the", "dog")], [None])[0].ids == (*split("dog"), *split("the"))


def test_the_masked_model_for_synthetic_data(network: XlnetLM, pieces: Path, tmp_path: Path) -> None:
    save_xlnet(tmp_path, network, pieces)
    model = FolderMaskedXlnet(str(tmp_path))()
    slots = [Slot(("the", "dog", "sees", "."), 1, 2), Slot(("a", "man"), 0, 0), Slot(("the", "dog"), 2, 2)]
    found = model.likeliest(slots, 5)
    assert [len(words) for words in found] == [5, 5, 5]
    assert found[1:2] == model.likeliest(slots[1:2], 5)
    assert not {word for words in found for word in words} & set(SPECIALS)
    assert model.card["kind"] == "masked XLNet"
    assert model.card["name"].startswith(f"{tmp_path.name}@")


def test_threads_change_nothing(network: XlnetLM, pieces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates of several slots, in calls so small that every thread has several."""
    monkeypatch.setattr(xlnet_reader, "_CALL_PIECES", 30)
    monkeypatch.setattr(xlnet_scoring, "_PARTS", 3)
    sentences = [tuple(WORDS[at : at + 5]) for at in range(6)]
    slots = [Slot(words, at % 4, at % 4 + at % 2) for at, words in enumerate(sentences)]
    fillings = [[(word,) for word in WORDS]] * len(slots)
    before, found = torch.get_num_threads(), []
    try:
        for num in (1, 2):
            torch.set_num_threads(num)
            reader = readers("tiny", network, SentencePieces(pieces))[0]
            scores = reader.log_probs_filled(slots, fillings, reader.read(sentences, [None] * len(slots)))
            found.append(np.concatenate(scores))
    finally:
        torch.set_num_threads(before)
    assert found[1] == pytest.approx(found[0], abs=1e-4)


@settings(max_examples=15)
@given(st.lists(SENTENCES, min_size=1, max_size=3))
def test_bfloat16_reads_nearly_the_same(three, rounded, sentences) -> None:  # type: ignore[no-untyped-def]
    """The weights are ten times as large as trained ones, and so are the rounding errors."""
    slots = [Slot(words, len(words) // 2, len(words) // 2) for words in sentences]
    nothing = [None] * len(sentences)
    exact, near = (reader.read(sentences, nothing) for reader in (three[0], rounded[0]))
    for a, b in zip(exact, near, strict=True):
        assert b.log_probs.dtype == torch.float64
        assert (a.log_probs - b.log_probs).abs().mean() < 0.3
        assert not torch.equal(a.log_probs, b.log_probs)  # it does compute in the other precision
    for whole, low in zip(three, rounded, strict=True):
        dist = low.log_dist(slots, low.read(sentences, nothing))
        assert dist.dtype == np.float32
        assert np.isfinite(dist).any(1).all()
        expected = whole.log_dist(slots, whole.read(sentences, nothing))
        assert np.abs(np.exp(dist) - np.exp(expected)).max() < 0.25
    fillings = [[("dog",), ("fine-tuning", "house")]] * len(sentences)
    whole, low = (
        reader.log_probs_filled(slots, fillings, read) for reader, read in ((three[0], exact), (rounded[0], near))
    )
    for a, b in zip(whole, low, strict=True):
        assert b == pytest.approx(a, abs=0.3 * 10)  # ten predictions or so
