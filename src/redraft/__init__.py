"""redraft writes sentences that must contain given words, and fills blanks of any length.

Examples:
    >>> import redraft
    >>> writer = redraft.load()
    >>> draft = writer.generate("dog", "ball", steps=5, seed=1)
    >>> draft.constraints_met
    True
    >>> writer.infill("The mayor said ___ .", steps=5, seed=1).text.startswith("The mayor said")
    True
"""

import importlib
from typing import TYPE_CHECKING

from redraft import version

if TYPE_CHECKING:
    from redraft.client import Client, connect
    from redraft.drafts import Draft, Settings
    from redraft.errors import (
        ConstraintError,
        CorpusError,
        InputError,
        OutputError,
        PackError,
        RedraftError,
        ServerError,
    )
    from redraft.sampling import Samples
    from redraft.sentence import Constraints, Order
    from redraft.systems import load
    from redraft.target import SoftScore, penalise_repetition, prefer, prefer_length
    from redraft.writer import Writer

__version__ = version.VERSION
# Each public name and the module that it is in. It is imported on first use: the command line must not wait for torch.
_HOMES = {
    "Constraints": "sentence",
    "Order": "sentence",
    "Draft": "drafts",
    "Settings": "drafts",
    "Writer": "writer",
    "load": "systems",
    "Client": "client",
    "connect": "client",
    "Samples": "sampling",
    "SoftScore": "target",
    "prefer": "target",
    "prefer_length": "target",
    "penalise_repetition": "target",
    "RedraftError": "errors",
    "ConstraintError": "errors",
    "InputError": "errors",
    "PackError": "errors",
    "CorpusError": "errors",
    "ServerError": "errors",
    "OutputError": "errors",
}
__all__ = [
    "Client",
    "ConstraintError",
    "Constraints",
    "CorpusError",
    "Draft",
    "InputError",
    "Order",
    "OutputError",
    "PackError",
    "RedraftError",
    "Samples",
    "ServerError",
    "Settings",
    "SoftScore",
    "Writer",
    "__version__",
    "connect",
    "load",
    "penalise_repetition",
    "prefer",
    "prefer_length",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'redraft' has no attribute {name!r}")
    return getattr(importlib.import_module(f"redraft.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
