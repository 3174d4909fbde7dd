"""Results of many inputs: none has the sentence of another where that is asked for, whatever the batch."""

import io
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redraft import batch
from redraft.batch import Input
from redraft.drafts import Draft, Settings
from redraft.sentence import Constraints


class _Writer:
    """Has the same few sentences for all inputs, which begin with the number of words of the input."""

    def __init__(self, texts: Sequence[Sequence[str]], unmet: str):
        self._texts, self._unmet = texts, unmet

    def write_many(
        self, inputs: Sequence[Constraints], settings: Settings, *, numbers: Sequence[int], observe: Any
    ) -> list[list[Draft]]:
        chosen = ([*dict.fromkeys(self._texts[number])][: settings.num_drafts] for number in numbers)
        return [[_draft(one, one != self._unmet) for one in several] for several in chosen]


def _draft(text: str, is_met: bool) -> Draft:
    return Draft(text, tuple(text.split()), 1.0, 0, 0.0, is_met, "seed:1")


def _written(
    writer: Any, num_inputs: int, settings: Settings, size: int, kept: int = 0
) -> tuple[list[dict[str, Any]], list[int]]:
    """Results and the inputs without any, by two runs, of which the first ends after ``kept`` inputs."""
    inputs = [Input(i, i, {}, Constraints(["dog"])) for i in range(num_inputs)]
    file, lacking = io.StringIO(), []
    for some in (inputs[:kept], inputs[kept:]):
        lines = [json.loads(line) for line in file.getvalue().splitlines()]
        taken = {text for line in lines for text in batch.texts_of(line)}
        batch.work(writer, settings, some, file, batch=size, taken=taken, lacks=lambda one: lacking.append(one.number))
    return [json.loads(line) for line in file.getvalue().splitlines()], lacking


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=5),
    st.integers(1, 2),
    st.integers(1, 5),
    st.integers(0, 5),
)
def test_no_sentence_twice(texts: list[list[str]], num: int, size: int, kept: int) -> None:
    writer, settings = _Writer(texts, unmet="f"), Settings(num=num, spares=3)
    lines, lacking = _written(writer, len(texts), settings, size, kept)
    assert (lines, lacking) == _written(writer, len(texts), settings, len(texts))
    shown = [text for line in lines for text in (line["text"], *(one["text"] for one in line.get("others", ())))]
    assert len(shown) == len(set(shown))
    assert sorted([*(line["id"] for line in lines), *lacking]) == list(range(len(texts)))
    for number in lacking:
        before = {text for line in lines if line["id"] < number for text in batch.texts_of(line)}
        met = [one for place, one in enumerate(dict.fromkeys(texts[number])) if place < num or one != "f"]
        assert set(met[: num + 3]) <= before
    for line in lines:  # the first one that is left
        before = {text for other in lines if other["id"] < line["id"] for text in batch.texts_of(other)}
        left = [one for one in dict.fromkeys(texts[line["id"]]) if one not in before]
        assert line["text"] == next(one for one in left if one != "f" or texts[line["id"]].index("f") < num)


def test_sentences_may_be_the_same_by_default() -> None:
    inputs = [Input(i, i, {}, Constraints(["dog"])) for i in range(3)]
    file = io.StringIO()
    batch.work(_Writer(["ab"] * 3, ""), Settings(spares=1), inputs, file)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["text"] for line in lines] == ["a", "a", "a"]
    assert "others" not in lines[0]
