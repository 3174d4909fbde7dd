"""redraft reproduce and redraft report as a person calls them."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redraft.app.cli import cli
from redraft.models.pack import Pack


@pytest.fixture
def call(data: Path, tiny_pack: Pack, tmp_path: Path):
    def run(*arguments: str) -> Result:
        shared = ["--data", str(data), "--num", "2", "--steps", "2", "--pack", str(tiny_pack.folder)]
        return CliRunner().invoke(cli, ["reproduce", *arguments, *shared, "--out", str(tmp_path / "out")])

    return run


def test_from_tables_to_a_page(call, tmp_path: Path) -> None:
    done = call("table9", "table7")
    assert done.exit_code == 0, done.output
    assert "unavailable: pack tiny has no classifier: l-mcmc-c, " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 results in ")
    assert "l-mcmc on paper-templates: 3 of 3 inputs" in done.stderr
    shown = CliRunner().invoke(cli, ["report", str(tmp_path / "out")])
    assert shown.stdout == f"wrote {tmp_path / 'out' / 'report.html'}\n"
    other = tmp_path / "else" / "page.html"
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "out"), "--out", str(other)]).exit_code == 0
    assert other.read_text().startswith("<!doctype html>")


def test_a_terminal_gets_a_bar(data: Path, tiny_pack: Pack, tmp_path: Path) -> None:
    """On a real terminal: one bar that names what is being done and comes to its end."""
    command = ["reproduce", "table9", "--data", str(data), "--steps", "2", "--pack", str(tiny_pack.folder)]
    code = "from redraft.app.cli import main; main()"
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command, "--out", str(tmp_path / "out")], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen = _read_all(ours)
    assert process.wait() == 0, screen
    assert "making the pages" in screen
    assert "100%" in screen


def _read_all(terminal: int) -> str:
    shown = b""
    with contextlib.suppress(OSError):  # what a terminal gives when its other end is closed
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    return shown.decode(errors="replace")


def test_fewer_inputs_on_the_command_line(call, tmp_path: Path) -> None:
    done = call("table6", "--systems", "l-mcmc", "--fewer", "l-mcmc=1")
    assert done.exit_code == 0, done.output
    assert "l-mcmc on keywords-k1: 1 of 1 inputs" in done.stderr
    for given in ("l-mcmc", "=3", "l-mcmc=x"):
        wrong = call("table6", "--fewer", given)
        assert "--fewer takes NAME=N" in str(wrong.exception)
