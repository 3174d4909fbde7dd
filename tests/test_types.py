"""The path of a sampling step is typed without escapes: strict mypy, no ``Any`` and no ``cast``."""

import ast
from pathlib import Path

import pytest

import redraft

_ROOT = Path(redraft.__file__).parent
_PATH = [
    *(_ROOT / name for name in ("sampler.py", "sampling.py", "scoring.py", "target.py", "assemble.py", "edit.py")),
    *sorted((_ROOT / "revise").glob("*.py")),
    *(_ROOT / "predict" / name for name in ("legal.py", "prior.py", "learned.py", "stretch_prior.py")),
]
_ESCAPES = {"Any", "cast"}


def _names(path: Path) -> set[str]:
    """The names that a module uses or imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return imported | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", _PATH, ids=lambda path: str(path.relative_to(_ROOT)))
def test_the_path_of_a_step_has_no_escapes(path: Path) -> None:
    assert not _names(path) & _ESCAPES


def test_an_escape_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("from typing import Any\nx: Any = 1\n")
    assert "Any" in _names(module)
