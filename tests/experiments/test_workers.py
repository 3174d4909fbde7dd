"""Several processes write what one writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from redraft.errors import OutputError
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.reproduce import reproduce
from tests.experiments.conftest import Quiet, texts_of


def test_processes_write_what_one_writes(run: ReproduceConfig, tmp_path: Path) -> None:
    one = replace(run, systems=("l-mcmc", "gbs-plain"))
    two = replace(one, out=tmp_path / "two", workers=2)
    assert reproduce(two, ["table3"], Quiet(stop_after=0)) is None
    first, second = Quiet(), Quiet()
    reproduce(one, ["table3"], first)
    done = reproduce(two, ["table3"], second)
    assert done is not None
    assert texts_of(one.out) == texts_of(two.out)
    assert (first.units, second.units) == (first.total, first.total)
    assert sorted(second.said) == sorted(first.said)
    path = two.outputs("l-mcmc", "paper-keywords")
    path.write_text(path.read_text().replace("candidates:50", "candidates:7"))
    with pytest.raises(OutputError, match="results of other settings"):
        reproduce(two, ["table3"], Quiet())
