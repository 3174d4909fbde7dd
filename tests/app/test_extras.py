"""A library of an extra that is not installed: one line that says what to install."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from redraft.app.cli import cli, main
from redraft.errors import RedraftError
from redraft.extras import MissingExtraError, extra, require


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    message = r"sacrebleu is not installed; run: pip install 'redraft\[eval\]'"
    with pytest.raises(MissingExtraError, match=message), extra("eval"):
        import sacrebleu  # noqa: F401
    assert issubclass(MissingExtraError, RedraftError)
    assert issubclass(MissingExtraError, ImportError)


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"redraft\.nothing"), extra("eval"):
        import redraft.nothing  # type: ignore[import-not-found]  # noqa: F401


def test_what_is_required_is_checked_without_an_import() -> None:
    require("eval", "json", "arviz")
    with pytest.raises(MissingExtraError, match=r"no_such_library is not installed; .*redraft\[train\]"):
        require("train", "json", "no_such_library")


def test_a_command_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    outputs = tmp_path / "out.jsonl"
    outputs.write_text('{"id": 1, "text": "A dog.", "input": {"keywords": ["dog"]}}\n')
    assert isinstance(CliRunner().invoke(cli, ["evaluate", str(outputs)]).exception, MissingExtraError)
    monkeypatch.setattr(sys, "argv", ["redraft", "evaluate", str(outputs)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "redraft: lemminflect is not installed; run: pip install 'redraft[eval]'"
    ]
