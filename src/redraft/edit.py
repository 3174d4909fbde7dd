"""Actions and edits: the single revision that predicting and revising agree on."""

import enum
from dataclasses import dataclass


class Action(enum.Enum):
    """How a draft may be revised. The rows of every prior table are in this order."""

    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"
    SWAP = "swap"  # beyond the paper: neighbouring free words, or keywords whose order is free
    VARY = "vary"  # beyond the paper: another realisation of a given part; the last row, only where there are several


@dataclass(frozen=True, slots=True)
class Edit:
    """One revision: REPLACE the word at ``position``, INSERT before it, DELETE it, or SWAP it with the next one.

    VARY replaces the given part that starts there; ``word`` has the words of the other realisation.
    """

    action: Action
    position: int
    word: str | None = None

    def __post_init__(self) -> None:
        takes_word = self.action in (Action.REPLACE, Action.INSERT, Action.VARY)
        if (self.word is not None) != takes_word:
            raise ValueError(f"{self.action} takes {'a' if takes_word else 'no'} word")
