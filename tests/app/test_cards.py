"""Cards in CSV: what is read from them, what is refused, what is written, and that a run resumes."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from redraft.app.cards import read_cards
from redraft.app.cli import cli
from redraft.app.lines import Defaults, parse_records
from redraft.errors import InputError, OutputError, RedraftError
from redraft.models.pack import Pack

_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@pytest.fixture
def run(tiny_pack: Pack, tmp_path: Path) -> Any:
    def call(*arguments: str, out: str = "out.csv") -> Result:
        files = ["--input", str(tmp_path / "cards.csv"), "--output", str(tmp_path / out), "--seed", "1"]
        return CliRunner().invoke(
            cli, ["generate", *files, "--steps", "8", "--pack", str(tiny_pack.folder), *arguments]
        )

    return call


def _read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@given(
    st.lists(st.lists(_CELLS, min_size=3, max_size=3), max_size=4),
    st.sampled_from([("\n", csv.QUOTE_ALL), ("\r", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]),
    st.sampled_from(["", "\ufeff"]),
)
def test_rows_are_carried_through(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], style: tuple[str, Any], mark: str
) -> None:
    folder, shown = tmp_path_factory.mktemp("cards"), io.StringIO()
    csv.writer(shown, lineterminator=style[0], quoting=style[1]).writerows([["Word ", "level", ""], *rows])
    (folder / "in.csv").write_text(mark + shown.getvalue(), encoding="utf-8", newline="")
    cards = read_cards(folder / "in.csv", 2)
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    assert [list(row) for _, row in cards.rows] == kept
    cards.write(folder / "out.csv", {number: ['A "b",\nc.'] for number, _ in cards.rows}, 2)
    assert _read(folder / "out.csv") == [
        ["Word ", "level", "", "sentence", "sentence 2"],
        *([*row, 'A "b",\nc.', ""] for row in kept),
    ]


def test_a_column_of_words_or_of_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cards.csv"

    def keywords(content: str) -> list[Any]:
        path.write_text(content, newline="")
        inputs, num_bad = parse_records(read_cards(path, 1).records(), Defaults({}, {}))
        return [*((item.number, item.given) for item in inputs), *[None] * num_bad]

    words = 'words,level\r\n"run~ ""old park""",A1\r\n"dog\r\nball",\r\n\r\nThe ___ dog .,\r\n'
    assert keywords(words) == [
        (2, {"keywords": ["run~", "old park"]}),
        (3, {"keywords": ["dog", "ball"]}),
        (6, {"template": "The ___ dog ."}),
    ]
    assert keywords("note,word\nx,give~ up\n,,\n,cat|dog\n") == [
        (2, {"keywords": ["give~ up"]}),
        (4, {"keywords": ["cat|dog"]}),
    ]
    assert keywords("word,note\ncar||bus,\ndog,a,b\n,x\n\u3000,y\ncat\n") == [None] * 5
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("redraft: line 2, column 'word': keyword 1 'car||bus', character 5: ")
    assert told[1] == "redraft: line 3: the row has 3 cells, but the header has 2 columns"
    assert told[2].startswith("redraft: line 4, column 'word': keyword 1 is empty")
    assert told[3].startswith("redraft: line 5, column 'word': keyword 1 is empty")
    assert told[4].startswith("redraft: line 6: the row has 1 cells")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is empty; give a header line"),
        ("\ufeff\r\n , \r\n", "is empty; give a header line"),
        ("term,level\ndog,A1\n", "line 1: the header needs one column 'word'"),
        ("word;level\ndog;A1\n", "commas between columns; it has 'word;level'"),
        ("word,words\ndog,cat\n", "line 1: the header needs one column"),
        ("word,note, Note\ndog,,\n", "line 1: the column 'note' is there twice"),
        ("\nword,word\n", "line 2: the column 'word' is there twice"),
        ("word,Sentence\ndog,\n", "line 1: the column 'sentence' is where sentences are written"),
        ('word,note\ndog,x\n"cat,y\nball,z\n', "the row from line 3 is not CSV: unexpected end of data"),
        ('word\ndog\n"cat"s\n', "the row from line 3 is not CSV"),
    ],
)
def test_what_is_no_list_of_cards(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "cards.csv").write_text(content, encoding="utf-8", newline="")
    with pytest.raises(InputError) as told:
        read_cards(tmp_path / "cards.csv", 1)
    assert why in str(told.value)
    assert "\n" not in str(told.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_bytes(b"word\ncaf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_cards(tmp_path / "cards.csv", 1)


def test_cards_get_sentences(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text('word,level,known words\ndog,A1,"a, the"\n?!,,\ncat,A1\nsea,B2,\n')
    found = run("--num", "2")
    assert found.exit_code == 2
    assert "line 3, column 'word': keyword 1 '?!'" in found.stderr
    header, dog, bad, sea = _read(tmp_path / "out.csv")
    assert header == ["word", "level", "known words", "sentence", "sentence 2"]
    assert dog[:3] == ["dog", "A1", "a, the"]
    assert bad == ["?!", "", "", "", ""]
    assert "dog" in dog[3].lower()
    assert "sea" in sea[4].lower()
    assert run("--num", "2", out="same.jsonl").exit_code == 2
    assert [json.loads(line)["text"] for line in (tmp_path / "same.jsonl").read_text().splitlines()] == [dog[3], sea[3]]


def test_an_interrupted_run_resumes(run: Any, tmp_path: Path) -> None:
    source, out, journal = (tmp_path / name for name in ("cards.csv", "out.csv", "out.csv.jsonl"))
    source.write_text("word\ndog\nsea\npark\n")
    assert run("--batch", "1").exit_code == 0
    whole, lines = out.read_text(), journal.read_text().splitlines(keepends=True)
    out.unlink()
    journal.write_text(lines[0] + lines[1][:40])  # killed while writing the second line, before the CSV
    assert run("--batch", "2").exit_code == 0
    assert out.read_text() == whole
    source.write_text("word,note\ndog,x\nsea,y\npark,z\n")  # other columns may change
    found = run()
    assert "nothing to do" in found.stderr
    assert [row[1] for row in _read(out)] == ["note", "x", "y", "z"]
    source.write_text("word\ndog\nball\npark\n")
    refused = run()
    assert isinstance(refused.exception, OutputError)
    assert "out.csv.jsonl holds the result of another input for id 3" in str(refused.exception)


def test_a_file_of_others_is_not_touched(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("word\ndog\n")
    (tmp_path / "out.csv").write_text("mine")
    for out in ("out.csv", "cards.csv"):
        assert "with its results; choose another file" in str(run(out=out).exception)
    assert (tmp_path / "out.csv").read_text() == "mine"
    (tmp_path / "words.txt").write_text("dog\n")
    arguments = ["generate", "--input", str(tmp_path / "words.txt"), "--output", str(tmp_path / "new.csv")]
    refused = CliRunner().invoke(cli, arguments).exception
    assert isinstance(refused, RedraftError)
    assert "an --input in CSV" in str(refused)
