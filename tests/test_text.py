import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft import text

# Texts that are rich in what tokenising is about.
_tricky = st.text(alphabet=st.sampled_from(list("aBs tUS.,'\"-:()$%!?1ï’ʼ—_é&/\t\n")), max_size=40)


@given(st.text(max_size=60) | _tricky)
def test_tokenise_loses_only_white_space(given_text: str) -> None:
    assert "".join(text.tokenise(given_text)) == "".join(given_text.split())


@given(st.text(max_size=60) | _tricky)
def test_words_survive_detokenising(given_text: str) -> None:
    words = text.tokenise(given_text)
    assert text.tokenise(text.detokenise(words)) == words


@pytest.mark.parametrize(
    ("natural", "words"),
    [
        ("The doctor's view, he said.", "The doctor 's view , he said ."),
        ("They can't, won't and didn't.", "They can 't , won 't and didn 't ."),  # One-Billion-Word's way
        ("U.S. troops left at 5 p.m. on Monday.", "U.S. troops left at 5 p.m. on Monday ."),
        ("Mr. Smith paid $2,900 (or 5%).", "Mr. Smith paid $ 2,900 ( or 5 % ) ."),
        ('He said, "We are here."', 'He said , " We are here . "'),
        ("J. K. Rowling's fine-tuning of O'Neill", "J. K. Rowling 's fine-tuning of O'Neill"),
        ("The workers' rights were naïve.", "The workers ' rights were naïve ."),
        ("It ended 2-1 at 12:15... then", "It ended 2-1 at 12:15 ... then"),
        ("The boys' dog was 'fine'.", "The boys ' dog was ' fine ' ."),
        ("'The dog' is 'the cat'.", "' The dog ' is ' the cat ' ."),
        ("The boys' and girls' toys", "The boys ' and girls ' toys"),
        ("No one -- not even I.", "No one -- not even I ."),
        ("C++, C# and .NET at -5 by @user", "C++ , C# and .NET at -5 by @user"),
        ("He paid $5 on http://a.b/c?", "He paid $ 5 on http://a.b/c ?"),
    ],
)
def test_as_people_write(natural: str, words: str) -> None:
    assert text.tokenise(natural) == words.split()
    assert text.detokenise(words.split()) == natural


def test_run_on_text_is_split() -> None:
    assert text.tokenise("he said,then left") == ["he", "said", ",", "then", "left"]


def test_the_opening_word_is_capitalised() -> None:
    assert text.render(["person", "of", "note", "."]) == "Person of note."
    assert text.render(['"', "we", "are", "."]) == '"We are.'
    assert text.surface(["ßa", "b"]) == ["ßa", "b"]  # its capital would be two letters
    assert text.render([]) == ""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("ask the Dr. .", "Ask the Dr."),
        ("I work at Yahoo ! .", "I work at Yahoo!"),
        ("well ... .", "Well..."),
        ("ask the Dr. ?", "Ask the Dr.?"),
        (".", "."),
    ],
)
def test_no_full_stop_follows_another_mark(words: str, shown: str) -> None:
    assert text.render(words.split()) == shown


@given(st.lists(st.sampled_from(["the", "dog", "'s", ",", '"', "(", ")", "'t", "can", "1,000", "."]), max_size=10))
def test_spans_are_the_words(words: list[str]) -> None:
    shown = text.detokenise(words)
    assert [shown[start:end] for start, end in text.spans(words)] == words
