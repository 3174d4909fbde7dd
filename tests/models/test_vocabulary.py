from collections import Counter

from redraft.models.vocabulary import UNKNOWN, Vocabulary


def test_words_by_frequency_then_alphabet() -> None:
    vocabulary = Vocabulary.from_counts(Counter({"b": 2, "a": 2, "c": 9, "d": 1}), 3)
    assert vocabulary.words[3:] == ("c", "a", "b")
    assert vocabulary.ids(["a", "d"]) == [4, UNKNOWN]


def test_the_form_that_opens_a_sentence() -> None:
    vocabulary = Vocabulary.from_counts(Counter({"the": 9, "The": 5, "Obama": 4, "May": 3, "may": 2, "x": 1}), 10)
    opens = {word: vocabulary.words[i] for word, i in zip(vocabulary.words, vocabulary.opening_ids, strict=True)}
    assert opens["the"] == "The"
    assert opens["may"] == "May"
    assert opens["x"] == "x"  # "X" is not listed
    plain = dict(zip(vocabulary.words, vocabulary.is_plain, strict=True))
    assert not plain["The"]
    assert plain["the"]
    assert plain["Obama"]
    assert plain["May"]  # more frequent than "may"
