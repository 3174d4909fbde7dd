"""Every public name has an example in its docstring, and the examples run.

The default writer without SmolLM2 runs them. An example that needs SmolLM2, which has to be pulled, is only parsed.
"""

import doctest
import inspect
from collections.abc import Iterator

import pytest

import redraft

_PULLED = "smollm2"
_NAMES = [name for name in redraft.__all__ if name != "__version__"]


def _methods(owner: type) -> Iterator[str]:
    """The public methods that a class of redraft defines itself."""
    for name, member in vars(owner).items():
        if not name.startswith("_") and inspect.isfunction(getattr(member, "__func__", member)):
            yield f"{owner.__name__}.{name}"


def _public() -> list[str]:
    """The public names and the methods of the public classes, such as "Writer.generate"."""
    classes = [one for one in (getattr(redraft, name) for name in _NAMES) if inspect.isclass(one)]
    return [*_NAMES, *(method for one in classes for method in _methods(one))]


def _docstring(name: str) -> str:
    found: object = redraft
    for part in name.split("."):
        found = getattr(found, part)
    return inspect.getdoc(found) or ""


def _examples(name: str, globs: dict[str, object]) -> doctest.DocTest:
    test = doctest.DocTestParser().get_doctest(_docstring(name), globs, f"redraft.{name}", None, None)
    for example in test.examples:
        if _PULLED in example.source:
            example.options[doctest.SKIP] = True
    return test


@pytest.fixture(scope="module")
def writer() -> redraft.Writer:
    return redraft.load(recipe="l-mcmc-c")


@pytest.mark.parametrize("name", _public())
def test_a_public_name_has_an_example(name: str) -> None:
    assert _examples(name, {}).examples, f"the docstring of redraft.{name} shows no call"


@pytest.mark.slow
@pytest.mark.parametrize("name", _public())
def test_the_examples_run(name: str, writer: redraft.Writer) -> None:
    shown: list[str] = []
    test = _examples(name, {"redraft": redraft, "writer": writer})
    doctest.DocTestRunner().run(test, out=shown.append)
    assert not shown, "".join(shown)


@pytest.mark.slow
def test_the_example_of_the_package_runs() -> None:
    test = doctest.DocTestParser().get_doctest(redraft.__doc__ or "", {}, "redraft", None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_wrong_example_fails(writer: redraft.Writer) -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(test, out=lambda _: None).failed == 1


def test_methods_are_found() -> None:
    assert {"Writer.generate", "Draft.to_dict", "Constraints.met_by", "Order.of"} <= set(_public())
