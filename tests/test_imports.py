"""Imports go one way, and the paper's two steps meet only through what both may know."""

import ast
from pathlib import Path

import pytest

import redraft

_ROOT = Path(redraft.__file__).parent
_LAYERS = (
    ("errors", "extras", "version", "files", "interrupt", "checks", "numerics", "text", "stopwords", "edit"),
    ("language", "inflect", "parts", "phrases", "locked"),
    ("sentence", "stretches", "blanks", "corpus"),
    ("models",),
    ("predict", "revise", "target", "synthesis", "evaluation"),
    ("scoring", "sampler", "draft", "training"),
    ("recipes", "drafts", "sampling", "diagnostics", "writer", "records", "batch"),
    ("assemble", "chain_writer", "infill_writer", "baselines", "systems"),
    ("experiments", "server", "client"),
    ("app", "__main__"),
)
_LEVEL = {name: level for level, names in enumerate(_LAYERS) for name in names}
_MODULES = sorted(path for path in _ROOT.rglob("*.py") if path.parent != _ROOT or path.stem != "__init__")


def _part(dotted: str) -> str | None:
    names = dotted.split(".")
    return names[1] if names[0] == "redraft" and len(names) > 1 else None


def _imported(path: Path) -> set[str]:
    """Parts of redraft that a module imports, at the top or inside a function."""
    parts: set[str | None] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            parts |= {_part(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "redraft":
            parts |= {_part(f"redraft.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts.add(_part(node.module))
    return {part for part in parts if part in _LEVEL}


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(_ROOT).parts[0].removesuffix(".py")
    assert own in _LEVEL, f"{own} has no place in the layers"
    for part in _imported(path) - {own}:
        assert _LEVEL[part] <= _LEVEL[own], f"{own} imports {part}, which stands above it"
        assert {own, part} != {"predict", "revise"}, "predict and revise meet only through the sentence"
