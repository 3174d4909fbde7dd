"""What is imported is declared: in the dependencies, or in the extra that the import names."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SOURCES = sorted((ROOT / "src" / "redraft").rglob("*.py"))
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_PACKAGE_OF = {"sklearn": "scikit-learn", "prometheus_client": "prometheus-client"}  # where the module has another name


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", one)[0] for one in requirements}


_CORE = _names(_PROJECT["dependencies"])
_EXTRAS = {name: _names(listed) for name, listed in _PROJECT["optional-dependencies"].items()}


def _packages(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        modules = {alias.name.partition(".")[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        modules = {node.module.partition(".")[0]}
    else:
        return set()
    return {_PACKAGE_OF.get(one, one) for one in modules if one not in sys.stdlib_module_names and one != "redraft"}


def _extra(node: ast.AST) -> str | None:
    """The extra that a block ``with extra("name"):`` names."""
    if not isinstance(node, ast.With):
        return None
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "extra":
            (name,) = call.args
            return str(ast.literal_eval(name))
    return None


def _undeclared(node: ast.AST, allowed: set[str]) -> set[str]:
    """Packages that are imported below a node and neither declared nor guarded by an earlier or enclosing block."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return set()
    allowed = allowed | _EXTRAS.get(_extra(node) or "", set())
    missing = _packages(node) - allowed
    for child in ast.iter_child_nodes(node):
        missing |= _undeclared(child, allowed)
        allowed = allowed | _EXTRAS.get(_extra(child) or "", set())  # what is imported once is there
    return missing


@pytest.mark.parametrize("path", _SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_are_declared(path: Path) -> None:
    missing = _undeclared(ast.parse(path.read_text(encoding="utf-8")), _CORE)
    assert not missing, f"{path.name} imports {sorted(missing)}, which no dependency or extra declares"


def test_a_missing_declaration_is_found() -> None:
    assert _undeclared(ast.parse("def f():\n    import pyarrow\n"), _CORE) == {"pyarrow"}
    assert not _undeclared(ast.parse('def f():\n    with extra("train"):\n        import pyarrow\n'), _CORE)
    assert _undeclared(ast.parse('with extra("eval"):\n    import pyarrow\n'), _CORE) == {"pyarrow"}


def test_every_dependency_has_a_lower_bound_and_a_pin() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]) for line in pins}
    listed = [
        *_PROJECT["dependencies"],
        *(one for several in _PROJECT["optional-dependencies"].values() for one in several),
    ]
    for requirement in listed:
        name = re.split(r"[\[<>=]", requirement)[0]
        if name != "redraft":
            assert ">=" in requirement, f"{requirement} has no lower bound"
            assert re.sub(r"[-_.]+", "-", name.lower()) in pinned, f"{name} is not pinned in constraints.txt"
