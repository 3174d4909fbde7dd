"""redraft reproduce and redraft report as a person calls them."""

import os
import pty
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
    assert "not there yet: pack tiny has no classifier: l-mcmc-c, " in done.stdout
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
    shown: list[bytes] = []

    def keep(descriptor: int) -> bytes:
        shown.append(os.read(descriptor, 4096))
        return shown[-1]

    status = pty.spawn([sys.executable, "-c", code, *command, "--out", str(tmp_path / "out")], keep)
    assert os.waitstatus_to_exitcode(status) == 0
    screen = b"".join(shown).decode()
    assert "making the pages" in screen
    assert "100%" in screen
