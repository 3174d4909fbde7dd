"""redraft writes sentences that must contain given words, and fills blanks of any length."""

from typing import TYPE_CHECKING, Any

from redraft import version

if TYPE_CHECKING:
    from redraft.drafts import Draft, Settings
    from redraft.sentence import Constraints
    from redraft.writer import Writer, load

__version__ = version.VERSION
__all__ = ["Constraints", "Draft", "Settings", "Writer", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line must not wait for torch to print its help.
    if name == "Constraints":
        from redraft import sentence

        return sentence.Constraints
    if name in __all__:
        from redraft import writer

        return getattr(writer, name)
    raise AttributeError(f"module 'redraft' has no attribute {name!r}")
