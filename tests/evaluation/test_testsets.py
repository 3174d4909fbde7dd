import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from redraft import corpus
from redraft.app.cli import cli
from redraft.errors import InputError, OutputError
from redraft.evaluation.testsets import (
    _mask,
    content_words,
    held_out_lines,
    infill_set,
    keyword_set,
    read_sentences,
    template,
    write_sets,
)
from redraft.sentence import BLANK, Constraints, Template
from redraft.stopwords import is_content
from redraft.text import tokenise

SOURCE = """\
The old doctor 's nurse went to the new market on Friday , and the doctor said nothing .
"Markets fell," the Treasury spokesman said, "by 2.5 percent in January."
Everybody is aware of consequences .
Prices of homes rose again while the bank 's shares fell in London .
A funeral service for Mrs. Llewellyn will take place on Saturday .
He won 't talk .
Everybody is aware of consequences .

"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.txt"
    path.write_text(SOURCE)
    return path


def test_sentences_are_read_once_and_without_empty_lines(source):
    found = read_sentences(source)
    assert len(found) == 6
    assert found[1][:4] == ('"', "Markets", "fell", ",")


def test_content_words_are_distinct_and_in_order():
    words = tuple(SOURCE.split("\n")[0].split())
    assert content_words(words) == ["old", "doctor", "nurse", "went", "new", "market", "Friday"]


@pytest.mark.parametrize(
    ("word", "content"),
    [
        ("doctor", True),
        ("well-known", True),
        ("The", False),
        ("'s", False),
        ("2.5", False),
        (",", False),
        ("a.m.", False),
    ],
)
def test_is_content(word, content):
    assert is_content(word) is content


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_references_meet_their_keywords(source, k):
    made = keyword_set(read_sentences(source), k, 4, seed=0)
    assert made.name == f"keywords-k{k}"
    assert [one["id"] for one in made.inputs] == [f"k{k}-{i}" for i in range(1, 5)]
    for one in made.inputs:
        assert len({word.lower() for word in one["keywords"]}) == k
        constraints = Constraints(tuple(one["keywords"]), endings=(), max_words=100)
        assert constraints.met_by(tokenise(one["reference"]))


@pytest.mark.parametrize("strategy", ["random", "middle"])
@pytest.mark.parametrize("ratio", [25, 50, 75])
def test_references_meet_their_templates(source, strategy, ratio):
    made = infill_set(read_sentences(source), strategy, ratio, 6, seed=0)
    for one in made.inputs:
        words = tokenise(one["reference"])
        parts = Template.parse(one["template"]).parts
        assert Constraints(template=one["template"], endings=(), max_words=100).met_by(words)
        assert len(words) - sum(len(part.words) for part in parts) == max(1, len(words) * ratio // 100)
        if strategy == "middle":
            assert one["template"].count(BLANK) == 1


def test_masked_neighbours_are_one_blank():
    assert template(tuple("He said , at dawn .".split()), frozenset([1, 2, 4])) == "He ___ at ___ ."


def test_the_middle_is_the_middle():
    assert _mask(8, "middle", 50, None) == {2, 3, 4, 5}
    assert _mask(5, "middle", 25, None) == {2}


@given(st.integers(4, 60), st.sampled_from(["random", "middle"]), st.integers(1, 99), st.integers(0, 99))
def test_masks_leave_something_and_take_something(length, strategy, ratio, seed):
    import numpy as np

    masked = _mask(length, strategy, ratio, np.random.default_rng(seed))
    assert 0 < len(masked) < length
    assert masked <= set(range(length))
    assert abs(len(masked) - length * ratio / 100) <= 1


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.integers(1, 99), st.integers(0, 9))
def test_any_source_gives_inputs_that_are_read_back(lines, ratio, seed):
    sentences = [tuple(tokenise(line)) for line in lines]
    for num in range(len(lines), 0, -1):
        try:
            made = infill_set(sentences, "random", ratio, num, seed)
        except InputError:
            continue
        for one in made.inputs:
            constraints = Constraints(template=one["template"], endings=(), max_words=1000)
            assert constraints.locked_words


def test_a_set_depends_on_its_seed_alone(source):
    sentences = read_sentences(source)
    assert keyword_set(sentences, 2, 3, seed=0) == keyword_set(sentences, 2, 3, seed=0)
    assert keyword_set(sentences, 2, 3, seed=0) != keyword_set(sentences, 2, 3, seed=1)
    shorter, longer = infill_set(sentences, "random", 50, 2, seed=0), infill_set(sentences, "random", 50, 5, seed=0)
    assert longer.inputs[:2] == shorter.inputs


def test_sentences_that_redraft_cannot_take_are_passed_over(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("Fill the ___ in here please .\nControl \x07 is no word at all .\nA plain old sentence .\n")
    assert len(infill_set(read_sentences(path), "middle", 50, 1, seed=0).inputs) == 1
    with pytest.raises(InputError, match="only 1 sentences"):
        infill_set(read_sentences(path), "middle", 25, 2, seed=0)


def test_too_few_sentences(source):
    with pytest.raises(InputError, match="only 4 sentences with at least 5 content words; use --num 4"):
        keyword_set(read_sentences(source), 5, 6, seed=0)
    with pytest.raises(InputError, match="no sentence with at least 20 content words"):
        keyword_set(read_sentences(source), 20, 6, seed=0)


def test_empty_source(tmp_path):
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(InputError, match="is empty"):
        read_sentences(tmp_path / "empty")


def test_written_as_a_folder_or_as_one_file(source, tmp_path):
    sets = [keyword_set(read_sentences(source), k, 3, seed=0) for k in (1, 2)]
    files = write_sets(sets, tmp_path / "sets")
    assert [path.name for path in files] == ["keywords-k1.jsonl", "keywords-k2.jsonl"]
    (whole,) = write_sets(sets, tmp_path / "all.jsonl")
    assert whole.read_text() == "".join(path.read_text() for path in files)
    assert [json.loads(line) for line in whole.read_text().splitlines()] == [*sets[0].inputs, *sets[1].inputs]
    with pytest.raises(OutputError, match="cannot write"):
        write_sets(sets, source)


def test_held_out_lines_of_some_files(tmp_path: Path) -> None:
    texts = {name: [f"{name} tells of number {i} ." for i in range(3000)] for name in ("one.txt", "two.txt")}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join([*lines, lines[0], *lines]))
    for names in ([], ["two.txt"]):
        expected = [line for name in names or texts for line in texts[name] if corpus.is_held_out(line)]
        assert held_out_lines(tmp_path, names) == expected
        assert expected
    with pytest.raises(InputError, match=r"has no three.txt; choose some of: one.txt, two.txt"):
        held_out_lines(tmp_path, ["three.txt"])
    arguments = [
        "testset",
        "held-out",
        "--corpus",
        str(tmp_path),
        "--file",
        "one.txt",
        "--out",
        str(tmp_path / "out" / "x"),
    ]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "x").read_text().splitlines() == held_out_lines(tmp_path, ["one.txt"])
    (tmp_path / "one.txt").write_text("a line .")
    with pytest.raises(InputError, match=r"has no held-out line in one.txt"):
        held_out_lines(tmp_path, ["one.txt"])
