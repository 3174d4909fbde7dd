"""The laws of a scorer for causal models: cached = recomputed, batch = single, filled = whole, all = a plain loop."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.making import DOG, make_model, make_tokenizer, whole_score

from redraft import text
from redraft.errors import InputError
from redraft.models.base import Slot
from redraft.models.causal import llama as llama_module
from redraft.models.causal import reader as causal
from redraft.models.causal.files import load_causal
from redraft.models.causal.llama import Llama
from redraft.models.causal.network import TransformersNetwork
from redraft.models.causal.reader import CausalReader

_WORDS = [
    "the",
    "dog",
    "sees",
    "a",
    "doctor",
    "'s",
    ",",
    ".",
    '"',
    "'",
    "Obama",
    "(",
    ")",
    "isn",
    "'t",
    "naïve",
    "$",
    "3",
]
_sentences = st.lists(st.sampled_from(_WORDS), max_size=9).map(tuple)


@pytest.fixture(scope="module", params=["gpt2", "llama", "gemma", "own llama"])
def reader(request, tokenizer, tmp_path_factory):
    model = make_model(request.param.removeprefix("own "), len(tokenizer))
    if not request.param.startswith("own"):
        return CausalReader("tiny", TransformersNetwork(model), tokenizer)
    folder = tmp_path_factory.mktemp("llama")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    reader = load_causal(str(folder))
    assert isinstance(reader._network, Llama)
    reader._network.model = model  # for the plain loop
    return reader


def _plain_loop(reader, tokenizer, words, start="<s>.\n"):
    """One forward call of transformers over all tokens."""
    first = tokenizer.encode(start, add_special_tokens=False)
    rest = [*itertools.chain(*reader.line.tokens(words)), *tokenizer.encode("\n", add_special_tokens=False)]
    with torch.no_grad():
        log_probs = reader._network.model(input_ids=torch.tensor([[*first, *rest]])).logits[0].double().log_softmax(-1)
    return sum(float(log_probs[len(first) - 1 + at, token]) for at, token in enumerate(rest))


@given(_sentences)
@settings(max_examples=15)
def test_equals_a_plain_loop(reader, tokenizer, words):
    assert whole_score(reader, words) == pytest.approx(_plain_loop(reader, tokenizer, words), abs=1e-4)


@given(st.lists(_sentences, min_size=1, max_size=4), st.lists(_sentences, min_size=4, max_size=4))
@settings(max_examples=15)
def test_reading_on_from_an_old_reading_changes_nothing(reader, sentences, others):
    old = reader.read(others, [None] * 4)[: len(sentences)]
    for words, reading in zip(sentences, reader.read(sentences, old), strict=True):
        fresh = reader.read([words], [None])[0]
        assert reading.tokens == fresh.tokens
        assert reading.log_probs == pytest.approx(fresh.log_probs, abs=1e-4)
        assert torch.stack(reading.next_log_dists).allclose(torch.stack(fresh.next_log_dists), atol=1e-4)
        assert all(a.allclose(b, atol=1e-4) for a, b in zip(reading.cache, fresh.cache, strict=True))


@given(st.data())
@settings(max_examples=15)
def test_filled_slots_score_like_whole_sentences(reader, data):
    slots, fillings = [], []
    for _ in range(data.draw(st.integers(1, 3))):
        words = data.draw(_sentences)
        start = data.draw(st.integers(0, len(words)))
        slots.append(Slot(words, start, data.draw(st.integers(start, min(len(words), start + 2)))))
        fillings.append(data.draw(st.lists(st.lists(st.sampled_from(_WORDS), max_size=2).map(tuple), max_size=3)))
    readings = reader.read([slot.words for slot in slots], [None] * len(slots))
    for slot, filled, scores in zip(slots, fillings, reader.log_probs_filled(slots, fillings, readings), strict=True):
        assert scores == pytest.approx([whole_score(reader, slot.fill(words)) for words in filled], abs=1e-4)


def test_a_sentence_is_scored_once(reader, monkeypatch):
    slot, fillings = Slot(DOG, 1, 2), [("doctor",), ("house",)]
    (reading,) = reader.read([DOG], [None])
    (first,) = reader.log_probs_filled([slot], [fillings], [reading])
    monkeypatch.setattr(reader, "run", None)
    assert list(reader.log_probs_filled([slot], [fillings], [reading])[0]) == list(first)
    monkeypatch.setattr(causal, "_KEPT", 2)
    reader.memo.trim(0)
    for words in ("a", "b", "c"):
        reader.remember((words,), -1.0)
    assert [reader.memo.get((words,)) for words in "abc"] == [None, -1.0, -1.0]


@pytest.mark.parametrize("num", [None, 1])
def test_what_was_just_scored_is_not_read_again(reader, monkeypatch, num):
    slot, fillings = Slot(DOG, 1, 2), [("naïve",), ("house", "of")]
    (reading,) = reader.read([DOG], [None])
    reader.memo.trim(0)
    scoring = reader.scoring([slot], [fillings], [reading])
    while scoring.num_left[0].any():
        scoring.advance([range(2)], num)
    sentences = [slot.fill(words) for words in fillings]
    expected = [reader.read([words], [None])[0] for words in sentences]
    monkeypatch.setattr(reader, "run", None)
    for got, fresh in zip(reader.read(sentences, [reading, reading]), expected, strict=True):
        assert got.tokens == fresh.tokens
        assert got.log_probs == pytest.approx(fresh.log_probs, abs=1e-4)
        assert torch.stack(got.next_log_dists).allclose(torch.stack(fresh.next_log_dists), atol=1e-4)
        assert all(a.allclose(b, atol=1e-4) for a, b in zip(got.cache, fresh.cache, strict=True))
    with pytest.raises(TypeError):  # from elsewhere it has to be read
        reader.read(sentences[:1], [None])


def test_batches_do_not_matter(reader, monkeypatch):
    slots = [Slot(DOG, 1, 2), Slot(("a", *DOG * 3), 2, 2)]
    fillings = [[("doctor",), (), ("Obama", "'s")], [("naïve",), ("the",)]]
    readings = reader.read([slot.words for slot in slots], [None, None])
    together = reader.log_probs_filled(slots, fillings, readings)
    monkeypatch.setattr(causal, "_MAX_SCORES", 1)
    reader.memo.trim(0)
    for got, expected in zip(reader.log_probs_filled(slots, fillings, readings), together, strict=True):
        assert got == pytest.approx(expected, abs=1e-4)
    alone = reader.read([slots[1].words], [None])[0]
    assert alone.log_probs == pytest.approx(readings[1].log_probs, abs=1e-4)


@given(_sentences)
@settings(max_examples=30)
def test_tokens_spell_the_text(reader, tokenizer, words):
    assert "".join(reader.line.pieces(words)) == text.render(words)
    assert tokenizer.decode([t for word in reader.line.tokens(words) for t in word]) == text.render(words)


@given(_sentences, _sentences, _sentences)
@settings(max_examples=30)
def test_tokens_do_not_hang_on_what_follows(reader, before, left, right):
    before, count = (*before, "dog"), len(before) + 1
    assert reader.line.tokens(before + left)[:count] == reader.line.tokens(before + right)[:count]


@pytest.mark.parametrize("words", ['the dog isn \'t " old . "', '( " the dog " ) , $ 3 !', "Obama 's dog ( naïve ) ?"])
def test_tokens_are_those_of_the_text(reader, tokenizer, words):
    found = reader.line.tokens(tuple(words.split()))
    assert list(itertools.chain(*found)) == tokenizer.encode(text.render(words.split()), add_special_tokens=False)


def test_tokens_of_a_word_are_the_same_after_any_word(reader):
    places = [
        reader.line.tokens(words) for words in (("a", "dog", "sees"), ("the", "doctor", "sees"), ("$", "3", "sees"))
    ]
    assert len({tokens[2] for tokens in places}) == 1


def test_pieces_are_written_as_people_do(reader):
    words = ("the", "dog", "isn", "'t", '"', "old", '"', "(", "yet", ")", ".")
    assert reader.line.pieces(words) == ["The", " dog", " isn", "'t", ' "', "old", '"', " (", "yet", ")", "."]


def test_the_score_of_no_words_is_the_end(reader, tokenizer):
    assert whole_score(reader, ()) == pytest.approx(_plain_loop(reader, tokenizer, ()), abs=1e-4)


@pytest.mark.parametrize(
    ("context", "start", "first"),
    [
        ("The park:", "<s>The park:\n", "The"),
        ("The park:\n", "<s>The park:\n", "The"),
        ("He said ", "<s>He said", " The"),
    ],
)
def test_context_stands_before_the_sentence(llama, tokenizer, context, start, first):
    reader = CausalReader("tiny", llama, tokenizer, context=context)
    assert reader.line.pieces(DOG)[0] == first
    assert whole_score(reader, DOG) == pytest.approx(_plain_loop(reader, tokenizer, DOG, start), abs=1e-4)
    assert whole_score(reader, DOG) != pytest.approx(whole_score(CausalReader("tiny", llama, tokenizer), DOG), abs=1e-2)
    assert context in reader.name.encode().decode("unicode_escape")


def test_a_context_longer_than_the_window(tokenizer):
    model = TransformersNetwork(make_model("llama", len(tokenizer), window=32))
    with pytest.raises(InputError, match=r"the context has \d+ tokens, and tiny reads at most 32 .*; shorten it"):
        CausalReader("tiny", model, tokenizer, context="dog " * 40)
    with pytest.raises(InputError, match=r"reads at most 32 tokens, and \d+ are needed"):
        CausalReader("tiny", model, tokenizer).read([("dog",) * 40], [None])


def test_a_context_of_spaces_is_none(llama, tokenizer):
    reader, plain = (CausalReader("tiny", llama, tokenizer, context=context) for context in (" ", ""))
    assert reader.line.pieces(DOG) == plain.line.pieces(DOG)
    assert whole_score(reader, DOG) == whole_score(plain, DOG)


def test_a_long_context_is_read_in_parts(causal_folder, monkeypatch):
    whole, parts = [], []
    for found in (whole, parts):
        found.append(whole_score(load_causal(str(causal_folder), context="The old house near a park: "), DOG))
        monkeypatch.setattr(llama_module, "_PREFIX_BLOCK", 3)
    assert parts == pytest.approx(whole, abs=1e-4)


def test_a_filling_too_long_for_the_window_is_never_taken(tokenizer):
    reader = CausalReader("tiny", TransformersNetwork(make_model("llama", len(tokenizer), window=32)), tokenizer)
    slot = Slot(("the", "dog"), 1, 1)
    readings = reader.read([slot.words], [None])
    short, long = reader.log_probs_filled([slot], [[("a",), ("the",) * 40]], readings)[0]
    assert short == pytest.approx(whole_score(reader, ("the", "a", "dog")), abs=1e-4)
    assert long == -np.inf


def test_a_tokenizer_of_another_model(tokenizer, tmp_path):
    make_model("llama", len(tokenizer) - 40).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reader = load_causal(str(tmp_path))
    with pytest.raises(InputError, match=r"belongs to another model: it has a token \d+, and the model knows"):
        reader.read([("The", "doctor", "sees", "a", "house")], [None])
    with pytest.raises(InputError, match="belongs to another model"):
        load_causal(str(tmp_path), words=("doctor", "house", "sees"))


def test_proposes_the_next_word(llama, tokenizer):
    words = ["the", "The", "dog", "doctor", ",", "'s", "unheardof", "Zzz"]
    single = {w for w in words if len(tokenizer.encode(f" {w}")) == 1 or w in (",", "'s")}
    reader = CausalReader("tiny", llama, tokenizer, words=words)
    assert set(itertools.compress(words, reader.proposable)) == single
    assert {"the", "The", "doctor", ","} <= single
    slots = [Slot(DOG, 2, 3), Slot(DOG, 0, 1), Slot(("(", "a"), 1, 1)]
    readings = reader.read([slot.words for slot in slots], [None] * 3)
    dist = reader.log_dist(slots, readings)
    for slot, row in zip(slots, dist, strict=True):
        for word, found in zip(words, row, strict=True):
            if np.isfinite(found):
                read = reader.read([(*slot.before, word)], [None])[0]
                assert found == pytest.approx(read.log_probs[slot.start], abs=1e-4)
    assert dist[1][1] == -np.inf  # "The" opens a sentence as "the" does, and is proposed once
    assert dist[0][words.index(",")] > -np.inf


@pytest.mark.parametrize("before", [('"', "the", "dog", ","), ("(", "3", ")"), ("the", "dog"), ("a", ",", '"')])
def test_what_is_proposed_does_not_hang_on_what_stands_in_the_slot(llama, tokenizer, before):
    reader = CausalReader("tiny", llama, tokenizer, words=["the", "dog", "doctor", "a", ","])
    sentences = [(*before, *held, ".") for held in ((), ("the",), ('"',), (",",), (")",))]
    readings = reader.read(sentences, [None] * len(sentences))
    slots = [Slot(words, len(before), len(words) - 1) for words in sentences]
    dists = reader.log_dist(slots, readings)
    assert np.isfinite(dists).any()
    for row in dists:
        np.testing.assert_allclose(row, dists[0], atol=1e-4)


def test_no_end_at_all(llama):
    bare = make_tokenizer(pad_token="<s>")
    assert CausalReader("tiny", llama, bare).line.end == bare.encode("\n")[0]
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(InputError, match="neither a newline nor an end token"):
        CausalReader("tiny", llama, PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>"))
