"""Words in several forms: which realisations a part has, what meets it, and what is refused."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app.cli import cli
from redraft.app.lines import parse_lines
from redraft.blanks import knows_lengths
from redraft.errors import ConstraintError, RedraftError
from redraft.evaluation.coverage import coverage, found_spans
from redraft.inflect import forms
from redraft.parts import Part
from redraft.records import constraints_of
from redraft.sentence import Constraints


@pytest.mark.parametrize(
    ("shown", "realisations"),
    [
        ("run~VERB", ["run", "ran", "running", "runs"]),
        ("run~NOUN", ["run", "runs"]),
        ("big~", ["big", "bigger", "biggest"]),
        ("car|bus", ["car", "bus"]),
        ('car|"sports car"', ["car", "sports car"]),
        ("car|auto|car", ["car", "auto"]),
        ("go~VERB away", ["go away", "went away", "gone away", "going away", "goes away"]),
        ("a ?very big|large dog", ["a very big dog", "a very large dog", "a big dog", "a large dog"]),
        ("wug~NOUN", ["wug", "wugs"]),  # by rule
        (r"AT\|T", ["AT | T"]),
        ("U.S.", ["U.S."]),
    ],
)
def test_realisations(shown: str, realisations: list[str]) -> None:
    part = Part.of(shown, "it")
    assert sorted(" ".join(one) for one in part.realisations) == sorted(realisations)
    assert " ".join(part.words) == realisations[0]
    assert not part.is_optional


def test_an_optional_part() -> None:
    assert Part.of("?red|green", "it").is_optional
    assert Part.of("?red ?car", "it").realisations == (("red", "car"), ("red",), ("car",))
    with pytest.raises(ConstraintError, match="every keyword is optional"):
        Constraints(["?red"])


def test_irregular_forms() -> None:
    wanted = {"be": "am are is was were being been", "mouse": "mice", "good": "better best", "lie": "lay lying lied"}
    for lemma, irregular in wanted.items():
        assert set(irregular.split()) <= set(forms(lemma, None, "it"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keywords": ["dog", "xyzzyx~"]}, "keyword 2 'xyzzyx~': no forms of 'xyzzyx' are known"),
        ({"keywords": ["ran~"]}, "'ran' is a form of another word; write run~"),
        ({"keywords": ["big~VERB"]}, "'big' has no form as VERB; leave VERB out"),
        ({"keywords": ["car|bus"], "ban": ["bus"]}, "'bus' is banned and required"),
        ({"keywords": ["big~"], "ban": ["big", "bigger", "biggest"]}, "banned and required"),
        ({"keywords": ['"a b c"|"d e f"'], "max_words": 3}, "more than the maximum of 3"),
        ({"keywords": ["car|!"]}, "only punctuation"),
        ({"template": "a ?quickly|slowly ___ ?red ___"}, "'\\?red' stands alone"),
        ({"template": "a ___{2,4 b"}, "character 6 of the template: the number of words of a blank is"),
        ({"template": "a ___{4,2} b"}, "as in ___\\{3\\} or ___\\{2,4\\}"),
        ({"template": "a ___{1,2,3} b"}, "as in ___\\{3\\} or ___\\{2,4\\}"),
        ({"template": "a car| ___"}, "the template, in 'a car\\|', character 7: an alternative is empty"),
        ({"keywords": [" ".join(["a|b"] * 12)]}, "4,096 ways"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConstraintError, match=message) as error:
        Constraints(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_banned_form_is_left_out() -> None:
    given = Constraints(["run~VERB"], ban=["ran"])
    assert ("ran",) not in given.parts[0].realisations
    assert given.met_by("A dog runs .".split())
    assert not given.met_by("A dog ran .".split())


@pytest.mark.parametrize(
    ("arguments", "sentence", "met"),
    [
        ({"keywords": ["run~", "car|bus"]}, "He ran to the bus .", True),
        ({"keywords": ["run~", "car|bus"]}, "The bus ran .", False),
        ({"keywords": ["run~", "car|bus"], "order": "any"}, "The bus ran .", True),
        ({"keywords": ["run~", "run"], "order": "any"}, "To run , he ran .", True),
        ({"keywords": ["run~", "run"], "order": "any"}, "He ran and runs .", False),
        ({"keywords": ["run~", "run~"], "order": "any"}, "He ran .", False),
        ({"keywords": ["a|b", "b|c"], "order": "any"}, "So b a .", True),
        ({"keywords": ["run~", "?quickly"]}, "He ran .", True),
        ({"keywords": ["run~ away"]}, "They ran away .", True),
        ({"keywords": ["run~ away"]}, "They ran far away .", False),
        ({"keywords": ["run~"]}, "Running helps .", True),
        ({"template": "The car|bus ___ ."}, "The bus is late .", True),
        ({"template": "The car|bus ___ ."}, "The train is late .", False),
        ({"template": "The ?old bus ___ ."}, "The old bus is late .", True),
        ({"template": "The bus ___{2,3} ."}, "The bus is late .", True),
        ({"template": "The bus ___{2,3} ."}, "The bus is very late again .", False),
        ({"template": "The bus ___{2,3} ."}, "The bus waits .", False),
        ({"template": "The bus ___{2,3} .", "max_words": 9}, "The bus is late .", True),
    ],
)
def test_what_meets_them(arguments: dict[str, object], sentence: str, met: bool) -> None:
    given = Constraints(**arguments)  # type: ignore[arg-type]
    assert given.met_by(sentence.split()) is met


def test_numbers_of_words() -> None:
    given = Constraints(template="a ___{2,4} b ___")
    assert given.fixes_lengths
    assert not knows_lengths(given)
    assert knows_lengths(Constraints(template="a ___{2,2} b"))
    assert Constraints(template="a ___{2,4} b .").limit == 7


def test_coverage_knows_the_forms() -> None:
    given = Constraints(["run~", "car|bus", "?quickly"])
    assert found_spans("He ran .".split(), given) == [True, False]
    by_name = {one.name: one.value for one in coverage(["He ran to the bus .".split()], [given])}
    assert set(by_name.values()) == {100.0}


def test_json() -> None:
    given = {"keywords": [{"lemma": "run", "pos": "VERB"}, {"any_of": ["car", "sports car"]}, {"optional": "red"}]}
    assert constraints_of(given) == Constraints(["run~VERB", 'car|"sports car"', "?red"])
    assert Constraints(given["keywords"]) == constraints_of(given)


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ['run~ car|"sports car" ?red', '["dog","cat"]', 'dog "old park', '"old park" dog', "The bus ___{2,4} ."]
    inputs, num_bad = parse_lines(lines, {})
    assert [one.given for one in inputs] == [
        {"keywords": ["run~", 'car|"sports car"', "?red"]},
        {"keywords": ["old park", "dog"]},
        {"template": "The bus ___{2,4} ."},
    ]
    assert num_bad == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("redraft: line 2: an array is no input")
    assert told[1].startswith("redraft: line 3: the line 'dog \"old park', character 5: the quotation mark is not")


@pytest.mark.parametrize("word", ["xyzzyx~", "car|", "run~PAST", 'car|"a b'])
def test_the_command_line_says_what_is_wrong(word: str) -> None:
    found = CliRunner().invoke(cli, ["generate", word, "--seed", "1"])
    assert isinstance(found.exception, RedraftError)
    assert str(found.exception).startswith("keyword 1 ")


def test_a_list_of_words() -> None:
    given = Constraints(["park"], allow=["the", "dog", "run~", "park"])
    assert given.met_by("The dog 's running , park !".split())
    assert given.unmet("The cat ran , park .".split()) == ["only allowed words"]
    assert constraints_of({"keywords": ["the"], "allow": ["the"]}).allow == ("the",)


def test_given_words_must_be_listed() -> None:
    allow = ["the", "Park", "run", "old"]
    assert Constraints(["run~", "park|garden"], allow=allow).parts[0].realisations == (("run",),)
    assert Constraints(template="The old park 's ___ .", allow=allow).listed_words == {"the", "park", "run", "old"}
    wrong = {("dog", "old cat", "dog"): "dog, cat", ("?see~", "park"): "?see~", ("dog|cat",): "dog|cat"}
    for keywords, named in wrong.items():
        with pytest.raises(ConstraintError, match=re.escape(f"allowed words: {named}; add them")):
            Constraints(keywords, allow=allow)
    with pytest.raises(ConstraintError, match="allowed words: puppy; add"):
        Constraints(template="the puppy ___ .", allow=allow)


def test_a_file_of_words(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    arguments = [
        "generate",
        "dog",
        "--allow",
        str(path),
        "--recipe",
        "l-mcmc",
        "--steps",
        "15",
        "--seed",
        "1",
        "--json",
    ]
    for content, why in ((None, "cannot read"), ("\n", "has no words"), ('"dog', "not closed")):
        if content is not None:
            path.write_text(content)
        assert why in str(CliRunner().invoke(cli, arguments).exception)
    path.write_text("the a see~\nin park\n")
    refused = CliRunner().invoke(cli, arguments)
    assert str(refused.exception) == "given but not on the list of allowed words: dog; add them to the list"
    path.write_text("the a see~\nin park dog\n")
    (draft,) = json.loads(CliRunner().invoke(cli, arguments).stdout)["drafts"]
    assert {word.lower() for word in draft["words"]} <= set(
        "dog the a see sees saw seen seeing in park . ? ! ,".split()
    )
    refused = CliRunner().invoke(cli, [*arguments[:4], "--recipe", "gbs"])
    assert "cannot keep to a list of words" in str(refused.exception)


def test_results_name_the_list_of_words(tmp_path: Path) -> None:
    inputs, allow, out = (tmp_path / name for name in ("words.txt", "known.txt", "out.jsonl"))
    inputs.write_text('dog\n{"keywords": ["park"], "allow": ["park", "a", "the"]}\n')
    allow.write_text("the a see~ dog in\n")
    arguments = ["generate", "--input", str(inputs), "--output", str(out), "--allow", str(allow)]
    arguments += ["--recipe", "l-mcmc", "--steps", "5", "--seed", "1"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    first, second = (json.loads(line)["input"]["allow"] for line in out.read_text().splitlines())
    assert (first["file"], len(first["sha256"])) == ("known.txt", 64)
    assert second == ["park", "a", "the"]
    assert "nothing to do" in CliRunner().invoke(cli, arguments).stderr
    figures = json.loads(CliRunner().invoke(cli, ["evaluate", str(out), "--json"]).stdout)["figures"]
    assert {"name": "coverage", "value": 100.0}.items() <= next(
        one for one in figures if one["name"] == "coverage"
    ).items()
    allow.write_text("the a see~ dog in on\n")
    assert "another input" in str(CliRunner().invoke(cli, arguments).exception)
