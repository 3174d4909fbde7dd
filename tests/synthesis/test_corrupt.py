from collections.abc import Sequence

import numpy as np
import pytest

from redraft.models.base import Slot
from redraft.models.pack import Pack
from redraft.models.vocabulary import SPECIALS, Vocabulary
from redraft.synthesis.corrupt import Corruptor, draws, method_of, plain
from redraft.synthesis.labels import Label
from redraft.synthesis.masked_lstm import PackMaskedLm
from redraft.synthesis.recipes import MIXED, PAPER
from redraft.synthesis.words import NUM_LIKELY, LikelyWords, Method, RandomWords

_VOCABULARY = Vocabulary([*SPECIALS, "the", "old", "man", "sees", "a", "house", ".", "The", "Paris", "paris", "A"])
_SENTENCE = "The old man sees a house .".split()


class _Alphabet:
    """Finds the letters a to z likely, in this order."""

    @property
    def card(self) -> dict[str, str]:
        return {"kind": "alphabet"}

    def likeliest(self, slots: Sequence[Slot], num: int) -> list[list[str]]:
        return [[chr(ord("a") + i) for i in range(num)] for _ in slots]


def test_the_opening_word_is_kept_in_its_plain_form() -> None:
    assert plain(_SENTENCE, _VOCABULARY)[0] == "the"
    assert plain(['"', "The", "man"], _VOCABULARY) == ('"', "the", "man")
    assert plain(["Paris", "sees"], _VOCABULARY) == ("Paris", "sees")  # more frequent than "paris"
    assert plain(["Zanzibar", "sees"], _VOCABULARY) == ("Zanzibar", "sees")  # unknown


def test_draws_belong_to_the_sentence_not_to_the_block() -> None:
    together = draws(7, 0, 0, 10, 6)
    assert np.array_equal(together[4:7], draws(7, 0, 4, 3, 6))
    assert not np.array_equal(together, draws(7, 1, 0, 10, 6))
    assert not np.array_equal(together, draws(8, 0, 0, 10, 6))


def test_one_in_six_is_random_where_both_methods_are_used() -> None:
    both = [method_of(i, tuple(Method)) for i in range(600)]
    assert both.count(Method.RANDOM) == 100
    assert method_of(0, [Method.MASKED_LM]) is Method.MASKED_LM


def test_each_instance_carries_the_damage_of_its_recipe() -> None:
    corruptor = Corruptor(3, PAPER, {Method.RANDOM: RandomWords(_VOCABULARY)}, _VOCABULARY)
    for instance in corruptor.instances(0, 0, [_SENTENCE] * 200):
        words, labels = instance.labelled
        assert len(labels) == len(words) + 2
        assert labels[0] == Label.COPY
        action = instance.recipe.split("-")[0]
        if action != "insert":
            assert labels.count(Label[action.upper()]) == 1
        if instance.recipe == f"{action}-whole" and action != "insert":
            assert labels.count(Label.INSERT) == 0
            right = [w for w, label in zip(words, labels[1:], strict=False) if label == Label.COPY]
            assert len(right) == len(_SENTENCE) - (action == "replace")


def test_mixed_instances_have_faults_of_every_kind_which_the_labels_tell() -> None:
    corruptor = Corruptor(3, MIXED[1:], {Method.MASKED_LM: LikelyWords(_Alphabet())}, _VOCABULARY)
    sentence = [f"w{i}" for i in range(30)]  # nothing that the alphabet could be taken for
    seen = set()
    for instance in corruptor.instances(0, 0, [sentence] * 100):
        words, labels = instance.labelled
        last = -1
        for word, label in zip([*words, "w30"], labels[1:], strict=True):
            seen.add(label)
            if label in (Label.REPLACE, Label.DELETE):
                assert len(word) == 1
                last += label == Label.REPLACE
            else:
                assert int(word[1:]) == last + 1 + (label == Label.INSERT)
                last = int(word[1:])
    assert seen == set(Label)


def test_blocks_change_nothing() -> None:
    corruptor = Corruptor(3, PAPER, {Method.RANDOM: RandomWords(_VOCABULARY)}, _VOCABULARY)
    sentences = [_SENTENCE, _SENTENCE[1:], [*_SENTENCE, "The"]] * 300
    assert corruptor.instances(0, 0, sentences)[600:] == corruptor.instances(0, 100, sentences[100:])


def test_a_likely_word_is_never_the_original() -> None:
    source = LikelyWords(_Alphabet())
    slots = [Slot(("x", "c", "y"), 1, 2)] * NUM_LIKELY
    words = source.words(slots, [i / NUM_LIKELY for i in range(NUM_LIKELY)])
    assert words == [*"abdd", *"efghijklmnopqrst"]  # rank three would be the original: the next rank is used
    last = Slot(("x", "t", "y"), 1, 2)
    assert source.words([last], [0.999]) == ["u"]
    assert source.words([Slot(("x", "t"), 1, 1)], [0.999]) == ["t"]  # nothing to be equal to in a gap


def test_a_random_word_is_never_the_original_nor_a_special_symbol() -> None:
    source = RandomWords(_VOCABULARY)
    slots = [Slot(("the", "house"), 1, 2)] * 1000
    words = source.words(slots, [i / 1000 for i in range(1000)])
    assert set(words) == set(_VOCABULARY.words) - set(SPECIALS) - {"house"}


def test_the_masked_lm_looks_at_both_sides(tiny_pack: Pack) -> None:
    model = PackMaskedLm(str(tiny_pack.folder))()
    words = ("the", "dog", "sees", "the", "ball", "near", "the", "river", ".")
    other = ("my", "friend", "likes", "an", "apple", "at", "home", ".")
    slots = [Slot(words, 6, 7), Slot(other, 3, 4), Slot(words, 3, 3)]
    found = model.likeliest(slots, 5)
    assert "the" in found[0][:2]
    assert found[1][0] in ("an", "a", "the")
    assert all(len(likely) == 5 and not set(likely) & set(SPECIALS) for likely in found)
    assert model.likeliest(slots[1:2], 5) == found[1:2]
    assert tiny_pack.fingerprint in model.card["name"]


def test_directions_must_share_their_words() -> None:
    from redraft.models.lstm.network import LstmConfig, LstmLM
    from redraft.models.lstm.reader import LstmReader
    from redraft.synthesis.masked_lstm import LstmMaskedLm

    def reader(size: int) -> LstmReader:
        vocabulary = Vocabulary([*SPECIALS, *map(str, range(size))])
        return LstmReader("x", LstmLM(LstmConfig.small(len(vocabulary))), vocabulary)

    with pytest.raises(ValueError, match="share"):
        LstmMaskedLm("x", reader(10), reader(11))
