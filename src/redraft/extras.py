"""Optional dependencies: a missing library is an error that says which extra to install."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from redraft.errors import RedraftError


class MissingExtraError(RedraftError, ImportError):
    """Raised when a library of an optional extra is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn a failed import into an error that says which extra to install.

    The extras are those of ``pyproject.toml``, for example ``with extra("eval"): import sacrebleu``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "redraft":
            raise
        raise _missing(error.name, name) from error


def require(name: str, *modules: str) -> None:
    """Refuse to start a long job that would fail at its end, because modules of an extra are not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise _missing(module, name)


def _missing(module: str, name: str) -> MissingExtraError:
    return MissingExtraError(f"{module} is not installed; run: pip install 'redraft[{name}]'")
