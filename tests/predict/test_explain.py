from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app.explain import explain
from redraft.errors import InputError
from redraft.predict.classifier import Classifier
from redraft.predict.heat_map import prior_table
from redraft.predict.xlnet import XlnetTokenClassifier
from redraft.training.classifier_files import save_classifier


@pytest.fixture
def folder(network: XlnetTokenClassifier, pieces: Path, tmp_path: Path) -> Path:
    save_classifier(network, tmp_path / "classifier", pieces)
    return tmp_path / "classifier"


def test_words_down_and_actions_across(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    arguments = ["person home problems", "--classifier", str(folder), "--out", str(picture)]
    result = CliRunner().invoke(explain, arguments, env={"COLUMNS": "40"})
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()[:5]
    assert head.split() == ["replace", "insert", "delete"]
    assert [row.split()[0] for row in rows] == ["person", "home", "problems", "</s>"]
    assert all(0 <= float(figure) <= 1 for row in rows for figure in row.split()[1:])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_keywords_are_not_touched(classifier: Classifier) -> None:
    table = prior_table(classifier, ("the", "dog", "sees"), frozenset(["dog"]))
    assert table[:, 1].nonzero()[0].tolist() == [1]  # only insert before it
    assert table[:, 3].nonzero()[0].tolist() == [1]
    assert (table[:, 0] > 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["  "], "draft is empty"),
        (["a dog", "--keyword", "cat"], "'cat' is not a word of the draft"),
        (["a dog", "--out", "map.jpg"], "must end in .png"),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(explain, arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
