"""The comparison of CommonGen runs, resumes, and writes its table."""

from pathlib import Path

from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import InputError
from redraft.experiments.commongen import CommonGenRun, run_commongen
from redraft.models.pack import Pack

_LINES = (
    "dog ball\tA dog finds the ball.\tThe dogs like a ball.\n"
    "child see park\tA child sees the park.\n"
    "cook carry letter\tThe cook carries a letter.\tA cook is carrying letters.\n"
)


class _Listener:
    def __init__(self) -> None:
        self.done = 0

    def begin(self, units: int) -> None: ...

    def say(self, what: str) -> None: ...

    def advance(self, units: int) -> None:
        self.done += units

    def stopped(self) -> bool:
        return False


def test_a_table_of_both_arms(tiny_pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "commongen").mkdir()
    (tmp_path / "commongen" / "dev.tsv").write_text(_LINES)
    writer = redraft.load(str(tiny_pack.folder), "l-mcmc")
    run = CommonGenRun(tmp_path, tmp_path / "out", 3, 1, None, "News")
    listener = _Listener()
    path = run_commongen(run, writer, listener)
    assert path is not None
    shown = path.read_text()
    assert "seed 1, style News. `forms`" in shown
    assert "BLEU-4" in shown
    assert "CIDEr-D" in shown
    rows = [line for line in shown.splitlines() if line.startswith(("| forms", "| verbatim", "| first reference"))]
    assert len(rows) == 3
    assert "100.00" in rows[0]  # all concepts are covered
    assert run_commongen(run, writer, listener) == path  # nothing is written again
    assert listener.done == 12


def test_commongen_runs_by_itself(tmp_path: Path) -> None:
    found = CliRunner().invoke(cli, ["reproduce", "commongen", "table1", "--data", str(tmp_path)])
    assert isinstance(found.exception, InputError)
    found = CliRunner().invoke(cli, ["reproduce", "table1", "--style", "News", "--data", str(tmp_path)])
    assert str(found.exception) == "--style goes with commongen"
