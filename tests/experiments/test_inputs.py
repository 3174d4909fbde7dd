"""Test sets of other sentences, and systems that take fewer inputs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from redraft import text
from redraft.errors import OutputError
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.reproduce import reproduce
from redraft.experiments.systems import HUMAN
from tests.experiments.conftest import Quiet, texts_of


def test_slow_systems_take_fewer_inputs(run: ReproduceConfig, tmp_path: Path) -> None:
    fewer = replace(run, num=3, systems=("l-mcmc", "cgmh"), fewer=(("cgmh", 2),))
    watch = Quiet()
    done = reproduce(fewer, ["table6", "table3"], watch)
    assert done is not None
    assert watch.units == watch.total
    assert [len(some) for some in texts_of(run.out).values()] == [2, 2, 2, 2, 6, 3, 3, 3, 3, 6]  # all that are printed
    by_name = {one.name: one for one in done.results}
    cells = {row.system: row.cells for row in by_name["table6"].grids[0].rows}
    assert [cell.num_inputs for cell in cells["cgmh"]] == [2] * 4
    assert [cell.num_inputs for cell in cells["l-mcmc"]] == [cell.num_inputs for cell in cells[HUMAN]] == [3] * 4
    assert "(n = 2)" in (run.out / "table6.md").read_text()
    before = texts_of(run.out)
    reproduce(replace(fewer, fewer=()), ["table6"], Quiet())  # the others are added
    for path, texts in before.items():
        assert texts_of(run.out)[path][: len(texts)] == texts
    assert {len(some) for path, some in texts_of(run.out).items() if "keywords-k" in path} == {3}


def test_other_test_sentences(run: ReproduceConfig, tmp_path: Path) -> None:
    lines = (run.data / "one-billion-word" / "test.txt").read_text().splitlines()
    (tmp_path / "mine.txt").write_text("\n".join(lines[30:]))
    other = replace(run, data=tmp_path, test=tmp_path / "mine.txt", out=tmp_path / "other", systems=("gbs-plain",))
    assert reproduce(other, ["table6"], Quiet()) is not None
    written = [line for path in other.out.glob("outputs/*/*") for line in path.read_text().splitlines()]
    references = {json.loads(line)["input"]["reference"] for line in written}
    assert references
    for page in ("README.md", "table6.md"):
        assert "from mine.txt" in (other.out / page).read_text()
    assert references <= {text.detokenise(text.tokenise(line)) for line in lines[30:]}
    with pytest.raises(OutputError, match=r"holds a run with other settings \(test"):
        reproduce(replace(other, data=run.data, test=None), ["table6"], Quiet())
