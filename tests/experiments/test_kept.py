"""Kept outputs: small, the same each time, and enough to compute the tables again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app.cli import cli
from redraft.chain_writer import ChainWriter
from redraft.errors import InputError
from redraft.experiments.config import ReproduceConfig
from redraft.experiments.kept import KEPT, unpack
from redraft.experiments.reproduce import reproduce
from tests.experiments.conftest import Quiet, texts_of


@pytest.fixture
def done(run: ReproduceConfig) -> ReproduceConfig:
    assert reproduce(run, ["table6", "table9"], Quiet()) is not None
    return run


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted((folder / KEPT).rglob("*.xz"))}


def test_the_tables_are_made_from_kept_outputs(
    done: ReproduceConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = replace(done, out=tmp_path / "copy")
    copy.out.mkdir()
    shutil.copy(done.out / "run.json", copy.out)
    shutil.copytree(done.out / KEPT, copy.out / KEPT)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(ChainWriter, "write_many", fail)
    again = reproduce(copy, ["table6", "table9"], Quiet())
    assert again is not None
    assert texts_of(copy.out) == texts_of(done.out)
    for name in ("table6", "table9"):
        for kind in ("json", "csv", "md"):
            assert (copy.out / f"{name}.{kind}").read_bytes() == (done.out / f"{name}.{kind}").read_bytes()
    assert _bytes(copy.out) == _bytes(done.out)


def test_no_trace_is_kept_but_text_and_signature(done: ReproduceConfig, tmp_path: Path) -> None:
    unpack(done.out / KEPT, tmp_path / "plain")
    for path in done.out.glob("outputs/*/*.jsonl"):
        whole = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [json.loads(line) for line in (tmp_path / "plain" / path.relative_to(done.out)).read_text().splitlines()]
        assert all("trace" in one for one in whole)
        for one, other in zip(whole, kept, strict=True):
            assert next(iter(other)) == "id"
            assert {key: one[key] for key in other} == other
            assert {"text", "signature", "input", "earlier", "steps"} <= other.keys()
            assert not {"trace", "start", "words", "seconds"} & other.keys()


def test_more_inputs_are_kept_as_well(done: ReproduceConfig) -> None:
    before = _bytes(done.out)
    reproduce(replace(done, num=3), ["table6"], Quiet())
    after = _bytes(done.out)
    assert after.keys() == before.keys()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"kept/{system}/keywords-k{k}.jsonl.xz" for system in ("inputs", "l-mcmc") for k in (1, 2, 3, 4)}
    reproduce(replace(done, num=1), ["table6"], Quiet())
    assert _bytes(done.out) == after


def test_unpacking_on_the_command_line(done: ReproduceConfig, tmp_path: Path) -> None:
    arguments = ["outputs", str(done.out / KEPT), "--out", str(tmp_path / "plain")]
    shown = CliRunner().invoke(cli, arguments)
    assert shown.stdout == f"wrote 5 files to {tmp_path / 'plain' / 'outputs'}\n"
    file = tmp_path / "plain" / "outputs" / "l-mcmc" / "keywords-k1.jsonl"
    measured = CliRunner().invoke(cli, ["evaluate", str(file)])
    assert measured.exit_code == 0, measured.output
    assert "coverage" in measured.stdout
    file.write_text("mine")
    assert CliRunner().invoke(cli, arguments).stdout.startswith("wrote 0 files")
    assert file.read_text() == "mine"


def test_damaged_files_are_refused(done: ReproduceConfig, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no outputs that redraft reproduce has kept; give its folder kept"):
        unpack(done.out, tmp_path / "plain")
    path = done.out / KEPT / "l-mcmc" / "keywords-k1.jsonl.xz"
    content = path.read_bytes()
    for damaged in (b"", b"text", content[:-9]):
        path.write_bytes(damaged)
        if damaged:
            with pytest.raises(InputError, match="does not hold outputs that redraft reproduce has kept"):
                unpack(done.out / KEPT, tmp_path / "plain")
    path.write_bytes(content)
    shutil.copy(
        done.out / KEPT / "inputs" / "keywords-k2.jsonl.xz", done.out / KEPT / "inputs" / "keywords-k1.jsonl.xz"
    )
    with pytest.raises(InputError, match="has the output of an input that is not kept"):
        unpack(done.out / KEPT, tmp_path / "plain")
