"""The language of given words: parsing and printing agree, plain text keeps its meaning, errors say the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft import text
from redraft.errors import ConstraintError
from redraft.language import PARTS_OF_SPEECH, Choice, Phrase, Term, from_json, parse, split_line, write

_MARKS = 'aB1~|?"\\.'
_LETTERS = st.text(_MARKS, min_size=1, max_size=6) | st.text(
    st.characters(categories=["L", "N", "P", "S"], exclude_characters="_"), min_size=1, max_size=6
)
_PLAIN_TERMS = st.builds(Term, _LETTERS)
_LEMMAS = st.builds(Term, _LETTERS.filter(text.is_word), st.just(True), st.sampled_from([None, *PARTS_OF_SPEECH]))
_WORDS = st.builds(Term, _LETTERS.filter(text.is_word))
_OPTIONS = st.lists(_WORDS | _LEMMAS, min_size=1, max_size=3).map(tuple)


def _choices(num: int) -> st.SearchStrategy[Choice]:
    several = st.lists(_OPTIONS, min_size=num, max_size=3, unique=True).map(tuple)
    return st.builds(Choice, several, st.just(num == 1))


_SINGLE = st.builds(lambda term: Choice(((term,),)), _PLAIN_TERMS | _LEMMAS)
_PHRASES = st.lists(_SINGLE | _choices(1) | _choices(2), max_size=4).map(tuple)


@given(_PHRASES)
def test_parsing_what_is_printed_gives_the_same(phrase: Phrase) -> None:
    assert parse(write(phrase), "it") == phrase


@given(st.text(max_size=30) | st.text(_MARKS + " ", max_size=12))
def test_printing_what_is_parsed_gives_the_same_meaning(given_text: str) -> None:
    try:
        phrase = parse(given_text, "it")
    except ConstraintError:
        return
    assert parse(write(phrase), "it") == phrase


@given(st.text(st.characters(exclude_characters="~|?\\", exclude_categories=["C"]), max_size=30))
def test_text_without_marks_stands_for_itself(given_text: str) -> None:
    phrase = parse(given_text, "it")
    assert all(choice.is_plain for choice in phrase)
    assert " ".join(term.word for choice in phrase for term in choice.options[0]) == " ".join(given_text.split())


@pytest.mark.parametrize(
    "shown",
    [
        "Where are you ?",
        "what? why?!",
        "Home | News",
        "a ~ b",
        "~5 men",
        "5~10",
        "http://a.org/~1",
        'He said "old park" again',
        '"I know ," she said .',
        r"C:\dir\name",
        "? ?! | ||",
        '12" pizza',
    ],
)
def test_marks_elsewhere_stand_for_themselves(shown: str) -> None:
    assert [choice.options for choice in parse(shown, "it")] == [((Term(word),),) for word in shown.split()]


@pytest.mark.parametrize(
    ("shown", "choice"),
    [
        ("run~", Choice(((Term("run", True),),))),
        ("run~VERB", Choice(((Term("run", True, "VERB"),),))),
        ("run~verb", Choice(((Term("run", True, "VERB"),),))),
        ("car|auto", Choice(((Term("car"),), (Term("auto"),)))),
        ('car|"sports car"', Choice(((Term("car"),), (Term("sports"), Term("car"))))),
        ('"sports car"|car', Choice(((Term("sports"), Term("car")), (Term("car"),)))),
        ("?quickly", Choice(((Term("quickly"),),), is_optional=True)),
        ('?"old park"', Choice(((Term("old"), Term("park")),), is_optional=True)),
        ("?run~|walk~VERB", Choice(((Term("run", True),), (Term("walk", True, "VERB"),)), is_optional=True)),
        (r"run\~", Choice(((Term("run~"),),))),
        (r"a\|b", Choice(((Term("a|b"),),))),
        (r"\?what", Choice(((Term("?what"),),))),
        (r"a\\|b", Choice(((Term("a\\"),), (Term("b"),)))),
    ],
)
def test_marks(shown: str, choice: Choice) -> None:
    assert parse(shown, "it") == (choice,)


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ("car||bus", "'car||bus', character 5: an alternative is empty"),
        ("the car|", "character 9: an alternative is empty"),
        ('car|"sports car', "character 5: the quotation mark is not closed"),
        ('car|"sports car"s', "character 17: a space or | must follow"),
        ('car|" "', "character 5: there is nothing between"),
        ("car|?bus", "character 5: ? makes all alternatives optional"),
        ("run~PAST", "character 5: 'PAST' is no part of speech; choose one of VERB, NOUN, ADJ, ADV"),
        ('car|"a b|c"', "alternatives cannot stand within quotation marks"),
    ],
)
def test_errors_say_the_place(shown: str, message: str) -> None:
    with pytest.raises(ConstraintError) as error:
        parse(shown, "keyword 2")
    assert str(error.value).startswith("keyword 2 ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ('dog "old park" ball', ["dog", "old park", "ball"]),
        ('dog "old park"ball\n', ["dog", "old park", "ball"]),
        ('car|"sports car"|bus dog', ['car|"sports car"|bus', "dog"]),
        ('"sports car"|bus dog', ['"sports car"|bus', "dog"]),
        ('?"old park" run~', ['?"old park"', "run~"]),
        (r'"say \"hi\"" x', [r"say \"hi\"", "x"]),
        (r"a\"b c", [r"a\"b", "c"]),
        ('12" pizza', ['12"', "pizza"]),
        ("  ", []),
    ],
)
def test_lines(line: str, items: list[str]) -> None:
    assert split_line(line) == items


@pytest.mark.parametrize("line", ['dog "old park', 'dog car|"old park', 'dog ?"old'])
def test_a_quotation_mark_that_is_not_closed(line: str) -> None:
    with pytest.raises(ConstraintError, match=r"character \d+: the quotation mark is not closed"):
        split_line(line)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("dog", "dog"),
        ({"any_of": ["car", "sports car", {"lemma": "run"}]}, 'car|"sports car"|run~'),
        ({"lemma": "run", "pos": "VERB"}, "run~VERB"),
        ({"optional": "quickly"}, "?quickly"),
        ({"optional": {"any_of": ["red", "green|blue"]}}, "?red|green|blue"),
        ({"optional": "old park"}, '?"old park"'),
        ({"any_of": ["a|b", "c~"]}, "a|b|c~"),
    ],
)
def test_json(value: object, shown: str) -> None:
    assert from_json(value, "keyword 1") == shown


@pytest.mark.parametrize(
    "value",
    [
        3,
        None,
        ["dog"],
        {},
        {"any": ["a"]},
        {"any_of": []},
        {"any_of": "ab"},
        {"any_of": ["?a"]},
        {"any_of": ["a b|c"]},
        {"any_of": [""]},
        {"lemma": "to run"},
        {"lemma": "run", "pos": "V"},
        {"lemma": 3},
        {"pos": "VERB"},
        {"optional": 3},
        {"optional": "a", "any_of": ["b"]},
    ],
)
def test_json_of_another_kind_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(ConstraintError) as error:
        from_json(value, "keyword 1")
    assert str(error.value).startswith("keyword 1")
    assert "\n" not in str(error.value)
