import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft import text
from redraft.errors import ConstraintError
from redraft.predict.legal import ROW, legal_table
from redraft.sentence import FREE, Action, Constraints, Edit, Order, Sentence, num_words

_WORD = st.sampled_from("person home problems U.S. can't naïve fine-tuning 2,900 a the Obama 'tis".split())
_PHRASE = st.lists(_WORD, min_size=1, max_size=3).map(" ".join)


@st.composite
def constraints(draw: st.DrawFn) -> Constraints:
    if draw(st.booleans()):
        return Constraints(keywords=tuple(draw(st.lists(_PHRASE, min_size=1, max_size=4))))
    parts = draw(st.lists(_PHRASE | st.just("___"), min_size=0, max_size=6))
    at = draw(st.integers(0, len(parts)))
    return Constraints(template=" ".join([*parts[:at], "___", *parts[at:]]))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Constraints, list[Sentence]]:
    """Constraints and the sentences along a chain of legal edits with arbitrary words."""
    given_constraints = draw(constraints())
    sentences = [given_constraints.start()]
    for _ in range(draw(st.integers(0, 12))):
        legal = np.argwhere(legal_table(sentences[-1], given_constraints, frozenset(Action)))
        if not len(legal):
            break
        row, position = legal[draw(st.integers(0, len(legal) - 1))]
        action = list(Action)[row]
        ending = action is not Action.INSERT and sentences[-1].locks[position] == -2
        word = draw(st.sampled_from(given_constraints.endings) if ending else _WORD)
        edit = Edit(action, int(position), word if action in (Action.REPLACE, Action.INSERT) else None)
        sentences.append(sentences[-1].apply(edit))
    return given_constraints, sentences


@given(histories())
def test_no_edit_touches_a_locked_word_or_a_closed_gap(history: tuple[Constraints, list[Sentence]]) -> None:
    given_constraints, sentences = history
    locked = given_constraints.locked_words  # keywords keep their order: only free words are swapped
    for sentence in sentences:
        assert len(sentence.locks) == len(sentence) == len(sentence.open_gaps) - 1
        assert tuple(w for w, lock in zip(sentence.words, sentence.locks, strict=True) if lock >= 0) == locked
        spans = [i for i in range(len(sentence) - 1) if sentence.locks[i] == sentence.locks[i + 1] >= 0]
        assert not any(sentence.open_gaps[i + 1] for i in spans)  # a phrase stays together
        free = [i for i, lock in enumerate(sentence.locks) if lock == FREE]
        assert all(sentence.open_gaps[i] and sentence.open_gaps[i + 1] for i in free)
        assert len(sentence) <= given_constraints.limit


def _empty(given_constraints: Constraints, sentence: Sentence) -> list[str]:
    """What is unmet while the blank of a template is empty."""
    return ["words in every blank"] if given_constraints.template and sentence.num_empty_gaps else []


@given(histories())
def test_every_sentence_on_the_way_meets_the_constraints(history: tuple[Constraints, list[Sentence]]) -> None:
    given_constraints, sentences = history
    for sentence in sentences:
        assert given_constraints.unmet(sentence.words) == _empty(given_constraints, sentence)


@given(histories())
def test_the_text_shows_the_given_words(history: tuple[Constraints, list[Sentence]]) -> None:
    given_constraints, sentences = history
    shown = text.tokenise(sentences[-1].text)
    assert given_constraints.unmet(shown) == _empty(given_constraints, sentences[-1])


def test_edits_outside_the_law_are_refused() -> None:
    sentence = Constraints(keywords=("new york", "home")).start()
    for edit in (Edit(Action.REPLACE, 0, "x"), Edit(Action.DELETE, 2), Edit(Action.INSERT, 1, "x")):
        with pytest.raises(ValueError, match=r"locked|closed"):
            sentence.apply(edit)
    with pytest.raises(ValueError, match="takes a word"):
        Edit(Action.INSERT, 0)


def test_the_start_of_a_template() -> None:
    sentence = Constraints(template="The doctor said ___ the newspaper reported .").start()
    assert sentence.words == ("The", "doctor", "said", "the", "newspaper", "reported", ".")
    assert [i for i, is_open in enumerate(sentence.open_gaps) if is_open] == [3]


def test_a_template_that_closes_with_a_blank_gets_an_ending() -> None:
    sentence = Constraints(template="___ I like ___").start()
    assert sentence.words == ("I", "like", ".")
    assert sentence.open_gaps == (True, False, True, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to write about"),
        ({"keywords": ("",)}, "empty"),
        ({"keywords": ("  ",)}, "empty"),
        ({"keywords": ("?!",)}, "only punctuation"),
        ({"keywords": ("a\x00b",)}, "U\\+0000"),
        ({"keywords": ("\u200b",)}, "the invisible character U\\+200B"),
        ({"keywords": ("dog\ufeff",)}, "the invisible character U\\+FEFF"),
        ({"keywords": ("a", "\u200d\u0301")}, "keyword 2 .* is only punctuation"),
        ({"template": "a \u00ad ___"}, "the invisible character U\\+00AD"),
        ({"keywords": ("caf\udcc3",)}, "keyword 1 is not UTF-8 text .*set LC_ALL=C.UTF-8"),
        ({"keywords": ("word",) * 10_000}, "10,000 given words are too many"),
        ({"keywords": ("home",), "ban": ("HOME",)}, "banned and required"),
        ({"keywords": ("new york",), "ban": ("York",)}, "banned and required"),
        ({"keywords": ("a", "b", "c"), "max_words": 3}, "more than the maximum of 3"),
        ({"keywords": ("a",), "min_words": 9, "max_words": 5}, "minimum of 9 words does not fit"),
        ({"keywords": ("a",), "min_words": 10, "max_words": 10}, "minimum of 10 words does not fit"),
        ({"keywords": ("a", "it 's"), "min_words": 9, "max_words": 10}, "minimum of 9 words does not fit"),
        ({"keywords": ("a",), "ban": (" ",)}, "a banned word is empty"),
        ({"keywords": ("a",), "endings": ("the end",)}, "not one word or punctuation mark"),
        ({"keywords": ("a",), "endings": ("",)}, "not one word or punctuation mark"),
        ({"keywords": ("a" * 300,)}, "300 letters"),
        ({"keywords": ("a",), "ban": (".", "?", "!")}, "every ending of"),
        ({"template": "no blank here ."}, "no blank"),
        ({"template": "a ___", "keywords": ("b",)}, "not both"),
        ({"keywords": ("a ___ b",)}, "as a template"),
        ({"keywords": "dog"}, "keywords must be a list or a tuple of strings"),
        ({"keywords": ("dog",), "ban": "very"}, "banned words must be a list or a tuple of strings"),
    ],
)
def test_what_cannot_be_met_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Constraints(**arguments)  # type: ignore[arg-type]


def test_joiners_inside_a_word_are_kept() -> None:
    emoji, persian = "\U0001f469\u200d\U0001f467", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert Constraints((emoji, persian)).locked_words == (emoji, persian)


def test_met_by_looks_at_whole_words_order_and_bans() -> None:
    given_constraints = Constraints(keywords=("person", "home"), ban=("sad", "very bad"))
    met = given_constraints.met_by
    assert met("Person at home .".split())  # the opening capital is no difference
    assert not met("The personal home .".split())
    assert not met("A Person at home .".split())
    assert not met("A home for a person .".split())
    assert not met("A Sad person at home .".split())
    assert not met("A very bad person at home .".split())
    assert not met("A person at home".split())
    anyway = Constraints(keywords=("person", "home", "home"), order=Order.ANY)
    assert anyway.met_by("A home and a home for a person .".split())
    assert not anyway.met_by("A home for a person .".split())


@pytest.mark.parametrize(
    ("template", "words", "is_met"),
    [
        ("the dog ___ here .", "The dog is here .", True),
        ("the dog ___ here .", "The dog here .", False),
        ("___ dog here .", "dog here .", False),
        ("the dog ___", "The dog .", False),
        ("the dog ___", "The dog barks .", True),
        ("the ___ dog ___ dog .", "The dog dog dog .", False),
        ("the ___ dog ___ dog .", "The dog dog dog dog .", True),
        ("the dog ___{1}", "The dog .", True),
        ("the ___", "The U.S.", True),
    ],
)
def test_an_empty_blank_is_unmet(template: str, words: str, is_met: bool) -> None:
    unmet = Constraints(template=template).unmet(words.split())
    assert unmet == ([] if is_met else ["words in every blank"])


def test_what_cannot_be_written_as_given_is_told() -> None:
    assert Constraints(("US$5", "C++", "can 't", "a can't")).respelled == [("US$5", "US $5")]
    assert Constraints(template="in the city , P!nk ___ .").respelled == [("P!nk", "P! nk")]


def test_any_order_starts_anywhere() -> None:
    given_constraints = Constraints(keywords=("a", "b c", "d"), order=Order.ANY)
    starts = {given_constraints.start(np.random.default_rng(i)).words for i in range(40)}
    assert len(starts) == 6
    assert all("b c" in " ".join(words) for words in starts)


def test_words_are_counted_as_people_do() -> None:
    assert num_words("The doctor 's view , he said .".split()) == 5
    given_constraints = Constraints(keywords=("view",))
    assert given_constraints.shortfall(given_constraints.start()) == 6


def test_a_blank_wants_a_word() -> None:
    given_constraints = Constraints(template="___ a ___ b ___")
    sentence = given_constraints.start()
    assert given_constraints.shortfall(sentence) == 3
    assert given_constraints.shortfall(sentence.apply(Edit(Action.INSERT, 1, "x"))) == 2


def test_swaps() -> None:
    free = Constraints(keywords=("new york", "home", "b"), order=Order.ANY).start()
    swapped = free.apply(Edit(Action.INSERT, 2, "x")).apply(Edit(Action.SWAP, 0))
    assert swapped.words == ("home", "x", "new", "york", "b", ".")
    assert swapped.open_gaps == (True, True, True, False, True, True, False)
    assert swapped.apply(Edit(Action.SWAP, 0)) == free.apply(Edit(Action.INSERT, 2, "x"))
    two = free.apply(Edit(Action.INSERT, 0, "x")).apply(Edit(Action.INSERT, 0, "y"))
    assert two.apply(Edit(Action.SWAP, 0)).words[:2] == ("x", "y")
    with pytest.raises(ValueError, match="nothing can be swapped"):
        two.apply(Edit(Action.SWAP, 3))  # inside a phrase
    assert [two.can_swap(i) for i in range(7)] == [True, False, True, False, True, False, False]


def test_a_banned_ending_is_not_used() -> None:
    assert Constraints(keywords=("a",), ban=(".",)).start().words == ("a", "?")


def test_insertion_ends_at_the_limit() -> None:
    given_constraints = Constraints(keywords=("a", "b"), max_words=3)
    assert not legal_table(given_constraints.start(), given_constraints, frozenset(Action))[ROW[Action.INSERT]].any()


def test_nothing_is_deleted_while_there_are_too_few_words() -> None:
    given_constraints = Constraints(keywords=("a", "b"), min_words=4)
    short = given_constraints.start().apply(Edit(Action.INSERT, 0, "x"))
    long = short.apply(Edit(Action.INSERT, 0, "y"))
    rows = [legal_table(one, given_constraints, frozenset(Action))[ROW[Action.DELETE]] for one in (short, long)]
    assert [row.sum() for row in rows] == [0, 2]


def test_no_move_makes_another_word_of_a_locked_one() -> None:
    given_constraints = Constraints(keywords=("can",))
    sentence = given_constraints.start()
    for position, word in enumerate(("the", "isn", "'t", "full")):
        sentence = sentence.apply(Edit(Action.INSERT, position + (word != "the"), word))
    assert sentence.words == ("the", "can", "isn", "'t", "full", ".")
    table = legal_table(sentence, given_constraints, frozenset(Action))
    assert table[ROW[Action.DELETE]].tolist() == [True, False, False, True, True, False, False]
    assert table[ROW[Action.SWAP]].tolist() == [False, False, False, True, False, False, False]
    assert table[ROW[Action.REPLACE], 2]


def test_a_longer_minimum_makes_room_for_itself() -> None:
    assert Constraints(("a",), min_words=40).limit == 50
    assert Constraints(("a",), min_words=9, max_words=10).limit == 10
    assert Constraints(("a",), min_words=10, max_words=10, endings=()).limit == 10


def test_bans_do_not_matter_to_an_ending_that_is_given() -> None:
    assert Constraints(template="___ the dog", ban=(".", "?", "!")).start().words == ("the", "dog")
