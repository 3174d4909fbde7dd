"""Inputs made of CommonGen's concepts."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app.cli import cli
from redraft.app.lines import parse_lines
from redraft.errors import InputError
from redraft.evaluation.commongen import commongen_set, keyword

_LINES = "field stand look\tThe player stood in the field looking at the batter.\tThe coach stands there.\n"
_LINES += "catch_V dog_N frisbee_N\tA dog catches a frisbee.\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "dev.tsv"
    path.write_text(_LINES)
    return path


def test_concepts_in_any_form_and_order(source: Path) -> None:
    made = commongen_set(source)
    assert made.inputs[0] == {
        "id": "commongen-1",
        "keywords": ["field~", "stand~", "look~"],
        "order": "any",
        "references": ["The player stood in the field looking at the batter.", "The coach stands there."],
    }
    assert made.inputs[1]["keywords"] == ["catch~VERB", "dog~NOUN", "frisbee~NOUN"]
    assert len(commongen_set(source, 1).inputs) == 1


def test_verbatim(source: Path) -> None:
    first = commongen_set(source, verbatim=True).inputs[0]
    assert first["keywords"] == ["field", "stand", "look"]
    assert "order" not in first


def test_a_concept_that_no_dictionary_knows_is_a_noun() -> None:
    assert keyword("frisbee", None) == "frisbee~NOUN"
    assert keyword("frisbee", "VERB") == "frisbee~VERB"
    assert keyword("quick", "NOUN") == "quick~NOUN"
    assert keyword("big", "VERB") == "big~"


def test_the_command_writes_inputs_that_can_be_read(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets.jsonl"
    run = CliRunner().invoke(cli, ["testset", "commongen", "--source", str(source), "--out", str(out)])
    assert run.exit_code == 0, run.output
    inputs, num_bad = parse_lines(out.read_text().splitlines(), {})
    assert (len(inputs), num_bad) == (2, 0)
    assert inputs[0].constraints.met_by("The coach stands and looks over fields .".split())


@pytest.mark.parametrize("content", ["", "field stand\n", "\tA sentence.\n"])
def test_a_file_of_another_kind_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text(content)
    with pytest.raises(InputError, match="tab"):
        commongen_set(path)
