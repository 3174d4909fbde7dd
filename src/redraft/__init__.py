"""redraft writes sentences that must contain given words, and fills blanks of any length.

>>> import redraft
>>> writer = redraft.load()
>>> writer.generate("dog", "ball", seed=1).text
>>> writer.infill("The mayor said ___ in the city .", min_words=8)
>>> writer.write(redraft.Constraints(["dog", "ball"], order="any"), redraft.Settings(num=3))
"""

import importlib
from typing import TYPE_CHECKING

from redraft import version

if TYPE_CHECKING:
    from redraft.drafts import Draft, Settings
    from redraft.errors import ConstraintError, CorpusError, InputError, OutputError, PackError, RedraftError
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
    "OutputError": "errors",
}
__all__ = [
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
    "Settings",
    "SoftScore",
    "Writer",
    "__version__",
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
