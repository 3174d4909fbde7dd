"""The documentation is true: its Python runs, its commands exist, its links lead somewhere."""

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from redraft.app.cli import cli
from tests.docs.pages import PAGES, ROOT, anchors, blocks, links

_DOCS, _SOURCES = ROOT / "docs", ROOT / "src" / "redraft"
_RUN = [_DOCS / "tutorial.md", _DOCS / "constraints.md", *sorted((_DOCS / "how-to").glob("*.md"))]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", _RUN, ids=_name)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = [block for block in blocks(page) if block.language == "python"]
    assert found, "a page without code tests nothing"
    for block in found:
        code = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the page
        exec(compile(code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks_compile(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.code, str(page))


def _commands(page: Path) -> list[list[str]]:
    """The redraft command lines of a page, without prompts, pipes and comments."""
    found = []
    for block in blocks(page):
        if block.language:
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ").removeprefix(".venv/bin/")
            if line.startswith("redraft "):
                words = shlex.split(line, comments=True)
                stop = next((i for i, word in enumerate(words) if word in ("|", ";", "&&")), len(words))
                found.append(words[1:stop])
    return found


def _parse(arguments: list[str]) -> None:
    """Parse a command line without running it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="redraft")
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.make_context(command.name, arguments)


# cli.md is generated from the commands themselves.
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "cli.md"], ids=_name)
def test_commands_parse(page: Path) -> None:
    for arguments in _commands(page):
        if "--help" not in arguments:
            _parse(arguments)


def test_a_wrong_command_does_not_parse() -> None:
    with pytest.raises(click.ClickException, match="--sed"):
        _parse(["generate", "dog", "--sed", "1"])


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{_name(page)} links to {link}, which does not exist"
        if anchor:
            assert anchor in anchors(target), f"{_name(page)} links to {link}, which has no such heading"


# Pages about the code. Results and decisions may name files as they were at the time.
_CODE = [_DOCS / "walk.md", _DOCS / "paper-to-code.md", _DOCS / "kernels.md", *sorted((_DOCS / "how-to").glob("*.md"))]


@pytest.mark.parametrize("page", _CODE, ids=_name)
def test_named_files_exist(page: Path) -> None:
    named = set(
        re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py|(?:tests|benchmarks)(?:/[a-z_]+)*)`", page.read_text(encoding="utf-8"))
    )
    missing = [one for one in sorted(named) if not any((root / one).exists() for root in (ROOT, _SOURCES))]
    assert not missing, f"{_name(page)} names files that do not exist: {', '.join(missing)}"
