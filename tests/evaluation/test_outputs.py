import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import InputError
from redraft.evaluation.outputs import TraceStep, in_order_of, own_references, read_outputs, read_references
from redraft.sentence import Action

STEP = {"action": "replace", "accepted": True, "old": "a", "new": "b"}


def lines(path, *records):
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records))
    return path


def read(tmp_path, *records):
    return read_outputs(lines(tmp_path / "out.jsonl", *records))


def test_a_full_line(tmp_path):
    record = {"id": 7, "text": "Don't.", "words": ["Don", "'t", "."], "nll": 1.5, "steps": 2, "seconds": 0.5}
    record["signature"] = "redraft:0.1.0|target:tiny/forward|chains:1"
    record |= {"trace": [STEP], "input": {"keywords": ["Don"], "reference": "Don't go."}}
    (output,) = read(tmp_path, record, "")
    assert (output.id, output.words, output.steps, output.seconds) == ("7", ("Don", "'t", "."), 2, 0.5)
    assert (output.nll, output.target) == (1.5, "tiny/forward")
    assert output.reference == ("Don", "'t", "go", ".")
    assert output.trace == (TraceStep(Action.REPLACE, True),)


def test_the_same_word_again_is_not_accepted(tmp_path):
    (output,) = read(tmp_path, {"id": 1, "text": "a", "trace": [{**STEP, "new": "a"}]})
    assert output.trace == (TraceStep(Action.REPLACE, False),)


def test_unicode_line_separators_do_not_split_a_line(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"id": 1, "text": "a\u2028b\x85c"}\n', encoding="utf-8")
    assert read_outputs(path)[0].words == ("a", "b", "c")


BAD = [
    ("", "is empty"),
    ("\n\n", "is empty"),
    ("{", "line 1 is not a JSON object"),
    ("[" * 100_000, "line 1 is not a JSON object"),
    ("[1]", "not a JSON object but a list"),
    ('{"id": 1}', 'line 1 has no "text"'),
    ('{"id": 1, "text": 3}', 'has no "text"'),
    ('{"text": "a"}', 'line 1 has no "id"'),
    ('{"id": null, "text": "a"}', "line 1: an id must be a text or a whole number, not None"),
    ('{"id": true, "text": "a"}', "line 1: an id must be a text or a whole number, not True"),
    ('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}', "id '1' occurs twice"),
    ('{"id": 1, "text": "\\ud800"}', "line 1 is not a JSON object"),
    ('{"id": 1, "text": "a", "input": []}', "input must be an object"),
    ('{"id": 1, "text": "a", "seconds": NaN}', "seconds must be a number"),
    ('{"id": 1, "text": "a", "seconds": -1}', "seconds must be a number"),
    ('{"id": 1, "text": "a", "steps": 1' + "0" * 400 + "}", "steps must be a number"),
    ('{"id": 1, "text": "a", "trace": {}}', "trace must be a list"),
    ('{"id": 1, "text": "a", "trace": [{"action": "jump", "accepted": true}]}', "step 1 of its trace needs an action"),
    ('{"id": 1, "text": "a", "trace": [{"action": "insert"}]}', "step 1 of its trace needs an action"),
    ('{"id": 1, "text": "a", "reference": " "}', "line 1 has no reference"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=range(len(BAD)))
def test_bad_outputs(tmp_path, content, message):
    path = tmp_path / "out.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_outputs(path)
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        read_outputs(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match=r"cannot read .*directory"):
        read_outputs(tmp_path)
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        read_outputs(tmp_path / "latin")


@given(
    st.text() | st.dictionaries(st.sampled_from(["id", "text", "input", "trace", "steps"]), st.text()).map(json.dumps)
)
def test_any_content_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(InputError):
        assert read_outputs(path)


def test_references_by_id_in_any_order(tmp_path):
    path = lines(tmp_path / "refs", {"id": 2, "reference": "Two."}, {"id": "1", "reference": "One.", "k": 3})
    assert read_references(path, ["1", "2"]) == [("One.",), ("Two.",)]


def test_plain_references_by_place(tmp_path):
    assert read_references(lines(tmp_path / "refs", "One .", "Two."), ["x", "y"]) == [("One .",), ("Two.",)]


def test_several_references(tmp_path):
    path = lines(tmp_path / "refs", {"id": 1, "references": ["One.", "Uno."]}, {"id": 2, "reference": "Two."})
    assert read_references(path, ["1", "2"]) == [("One.", "Uno."), ("Two.",)]
    (output,) = read(tmp_path, {"id": 1, "text": "a", "input": {"keywords": ["a"], "references": ["A b.", "C."]}})
    assert (output.references, output.reference) == (("A b.", "C."), ("A", "b", "."))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "is empty"),
        (["One."], "has 1 references for 2 outputs"),
        (["One.", "Two.", "Three."], "has 3 references for 2 outputs"),
        (["One.", ""], "line 2 has no reference"),
        ([{"id": 1, "reference": "One."}], "lacks id '2'"),
        ([{"id": i, "reference": "One."} for i in (1, 2, 3)], "has id '3' that the outputs lack"),
        ([{"id": i, "reference": "One."} for i in (1, 2, 3, 4)], r"has 2 ids \(first: '3'\)"),
        ([{"id": i, "reference": "One."} for i in (1, 2, 2)], "id '2' occurs twice"),
        ([{"id": 1, "reference": "One."}, {"id": 2}], "line 2 has no reference"),
        ([{"id": 1, "reference": "One."}, {"id": 2, "references": "Two."}], "line 2: references must be a list"),
        ([{"id": 1, "reference": "One."}, {"id": 2, "references": []}], "line 2: references must be a list"),
        ([{"id": 1, "reference": "One."}, {"id": 2, "references": ["Two.", 3]}], "line 2 has no reference"),
    ],
)
def test_bad_references(tmp_path, records, message):
    with pytest.raises(InputError, match=message):
        read_references(lines(tmp_path / "refs", *records), ["1", "2"])


def test_own_references(tmp_path):
    with_one, without = {"id": 1, "text": "a", "reference": "One."}, {"id": 2, "text": "b"}
    assert own_references(read(tmp_path, with_one)) == [("One.",)]
    assert own_references(read(tmp_path, without)) is None
    with pytest.raises(InputError, match=r"1 of 2 outputs have no reference \(first: id '2'\)"):
        own_references(read(tmp_path, with_one, without))


def test_other_system_is_put_into_order(tmp_path):
    ours = read(tmp_path, *({"id": i, "text": "a"} for i in (1, 2)))
    theirs = read(tmp_path, *({"id": i, "text": f"b{i}"} for i in (2, 1)))
    assert [one.text for one in in_order_of(ours, theirs, tmp_path)] == ["b1", "b2"]
    with pytest.raises(InputError, match="lacks id '2'"):
        in_order_of(ours, theirs[1:], tmp_path)
    with pytest.raises(InputError, match="has id '2' that the outputs lack"):
        in_order_of(ours[:1], theirs, tmp_path)


def test_outputs_for_other_inputs_are_not_compared(tmp_path):
    one, two = (read(tmp_path, {"id": 1, "text": "A dog .", "input": {"keywords": [word]}}) for word in ("dog", "cat"))
    with pytest.raises(InputError, match="id '1' for another input"):
        in_order_of(one, two, tmp_path / "two")
    assert in_order_of(one, one, tmp_path / "one") == one
