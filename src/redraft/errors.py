"""Every error that is the person's to mend. The command line prints its one line and exits with status 2."""


class RedraftError(Exception):
    """Base of all errors that redraft raises on purpose. The message says what is wrong and what to do."""


class ConstraintError(RedraftError, ValueError):
    """The constraints cannot be met by any sentence."""


class InputError(RedraftError, ValueError):
    """An input file, a line of it, or an option is not what it should be."""


class PackError(RedraftError):
    """A pack is missing, damaged, or made for another version."""


class CorpusError(RedraftError):
    """Training text is missing or is not text."""


class OutputError(RedraftError):
    """A result cannot be written."""


def reason(error: BaseException) -> str:
    """What another library says went wrong, in part of a line."""
    return " ".join(str(error).split())[:160] or type(error).__name__
