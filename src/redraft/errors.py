"""The errors that redraft raises on purpose. The command line shows the message as one line and exits with status 2."""


class RedraftError(Exception):
    """Base class of all errors that redraft raises on purpose. The message says what is wrong and what to do.

    Examples:
        >>> try:
        ...     redraft.Constraints(["home"], ban=["home"])
        ... except redraft.RedraftError as error:
        ...     print(error)
        'home' is banned and required at the same time
    """


class ConstraintError(RedraftError, ValueError):
    """Raised when no sentence can meet the constraints, or when a constraint has the wrong type.

    Examples:
        >>> try:
        ...     redraft.Constraints(["dog", "ball"], max_words=2)
        ... except redraft.ConstraintError as error:
        ...     print(error)
        what is given needs 3 places with punctuation, more than the maximum of 2
    """


class InputError(RedraftError, ValueError):
    """Raised when an option, an input file, or a line of an input file is invalid.

    Examples:
        >>> try:
        ...     redraft.Settings(steps=-1)
        ... except redraft.InputError as error:
        ...     print(error)
        steps must be at least 0, not -1
    """


class PackError(RedraftError):
    """Raised when a pack is missing or damaged, or was made for another version of redraft.

    Examples:
        >>> try:
        ...     redraft.load("my-pack")
        ... except redraft.PackError as error:
        ...     print(error)
        there is no pack 'my-pack'; give a folder with a pack.json, or one of: english
    """


class CorpusError(RedraftError):
    """Raised when training text is missing, too short, or not readable as text.

    Examples:
        >>> from pathlib import Path
        >>> from redraft.training.word_data import prepare_words
        >>> try:
        ...     prepare_words(Path("my-corpus"))
        ... except redraft.CorpusError as error:
        ...     print(error)
        my-corpus is not a folder; give a folder with .txt or .txt.xz files, one sentence per line
    """


class OutputError(RedraftError):
    """Raised when a result cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> from redraft.batch import results
        >>> try:
        ...     with results(Path("my-results/drafts.jsonl")):
        ...         pass
        ... except redraft.OutputError as error:
        ...     print(error)
        cannot write to my-results/drafts.jsonl: No such file or directory
    """


class ServerError(RedraftError):
    """Raised when a server cannot be reached, refuses a request, or fails.

    Examples:
        >>> try:
        ...     redraft.connect("http://127.0.0.1:9").generate("dog")
        ... except redraft.ServerError as error:
        ...     print(error)
        cannot reach http://127.0.0.1:9: Connection refused
    """


def reason(error: BaseException) -> str:
    """The message of another library's error, shortened to fit into a line."""
    return " ".join(str(error).split())[:160] or type(error).__name__
