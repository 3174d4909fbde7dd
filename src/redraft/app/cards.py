"""Cards: word lists for learners in CSV, and the same lists with a sentence for each row.

The header names the columns. The column ``word`` has a word or a phrase in each row, or ``words`` has several. All
columns are copied to the output, which has a column ``sentence`` beside them.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from redraft.app.lines import Record, given_of_text
from redraft.errors import InputError, OutputError
from redraft.files import replacing

_WORD, _WORDS, _SENTENCE = "word", "words", "sentence"


def is_csv(name: str | None) -> bool:
    """Whether a file is in CSV, by its name."""
    return name is not None and Path(name).suffix.lower() == ".csv"


@dataclass(frozen=True)
class Cards:
    """The header of a file and its rows, each with the number of the line that it begins on."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    given: int  # the column with the words

    def records(self) -> list[Record]:
        """The inputs of the rows."""
        place = f", column {self.columns[self.given]!r}"
        return [Record(number, place * self._is_whole(row), partial(self._read, row)) for number, row in self.rows]

    def _is_whole(self, row: tuple[str, ...]) -> bool:
        return len(row) == len(self.columns)

    def _read(self, row: tuple[str, ...]) -> dict[str, Any]:
        if not self._is_whole(row):
            raise InputError(f"the row has {len(row)} cells, but the header has {len(self.columns)} columns")
        cell = row[self.given]
        return {"keywords": [cell]} if _name(self.columns[self.given]) == _WORD else given_of_text(cell)

    def write(self, path: Path, texts: Mapping[int, list[str]], num: int) -> None:
        """Write the rows with their sentences, ``num`` columns of them. ``texts`` are by the number of the line."""
        with replacing(path) as partly, partly.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*self.columns, *sentence_columns(num)])
            for number, row in self.rows:
                if self._is_whole(row):
                    found = texts.get(number, [])
                    writer.writerow([*row, *found, *[""] * (num - len(found))])


def sentence_columns(num: int) -> list[str]:
    """The names of the columns of sentences: "sentence", "sentence 2" ..."""
    return [_SENTENCE, *(f"{_SENTENCE} {number}" for number in range(2, num + 1))]


def read_cards(path: Path, num: int) -> Cards:
    """Read a file whose rows will get ``num`` sentences each."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(_rows(path, csv.reader(file, strict=True)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    if not rows:
        raise InputError(f"{path} is empty; give a header line with the column {_WORD} or {_WORDS}")
    (number, columns), *others = rows
    given = _given_column(f"{path}, line {number}", columns, num)
    return Cards(columns, tuple(others), given)


def _rows(path: Path, reader: Any) -> Iterable[tuple[int, tuple[str, ...]]]:
    """The rows that are not blank, with the lines that they begin on."""
    number = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield number, tuple(row)
            number = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, the row from line {number} is not CSV: {error}") from error


def _given_column(where: str, columns: tuple[str, ...], num: int) -> int:
    """The number of the column with the words."""
    names = [_name(column) for column in columns]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise InputError(f"{where}: the column {twice!r} is there twice; rename one")
    if used := next((name for name in sentence_columns(num) if name in names), None):
        raise InputError(f"{where}: the column {used!r} is where sentences are written; rename or remove it")
    found = [i for i, name in enumerate(names) if name in (_WORD, _WORDS)]
    if len(found) != 1:
        shown = ", ".join(map(repr, columns))
        raise InputError(
            f"{where}: the header needs one column {_WORD!r} (a word or a phrase) or {_WORDS!r} (several), and commas "
            f"between columns; it has {shown}"
        )
    return found[0]


def _name(column: str) -> str:
    return column.strip().lower()


def journal_of(path: Path) -> Path:
    """The file with the full results beside a CSV, from which an interrupted run resumes."""
    journal = path.with_name(f"{path.name}.jsonl")
    if path.exists() and not journal.exists():
        raise OutputError(f"{path} exists, but not {journal} with its results; choose another file")
    return journal
