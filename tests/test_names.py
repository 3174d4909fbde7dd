"""One name per type: no two modules of redraft define a public class or type alias of the same name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import redraft

_ROOT = Path(redraft.__file__).parent


def _is_type_name(name: str) -> bool:
    """Whether a name is public and in CamelCase, as those of classes and type aliases are."""
    return name[:1].isupper() and any(letter.islower() for letter in name)


def _defined(path: Path) -> Iterator[str]:
    """Names of the classes and type aliases that a module defines at its top level, also under ``if``."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node in [
        inner for outer in body for inner in ([*outer.body, *outer.orelse] if isinstance(outer, ast.If) else [outer])
    ]:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _is_type_variable(value: ast.expr) -> bool:
    """Whether an assigned value is ``TypeVar(...)``: type variables may share their names."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def _collisions() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_ROOT.rglob("*.py")):
        for name in {name for name in _defined(path) if _is_type_name(name)}:
            places[name].append(path.relative_to(_ROOT).as_posix())
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_each_type_has_a_name_of_its_own() -> None:
    found = _collisions()
    assert not found, f"rename all but one of each: {found}"


def test_what_counts_as_a_type(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "class Row: ...\nPairs = list\nMost: int = 3\nMANY = 4\n_Hidden = int\nif True:\n    class Inner: ...\n"
    )
    assert {name for name in _defined(module) if _is_type_name(name)} == {"Row", "Pairs", "Most", "Inner"}
