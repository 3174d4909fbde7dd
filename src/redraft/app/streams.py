"""Standard output that loses no result: letters that its encoding lacks, and a device that is full."""

import codecs
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from redraft.errors import OutputError

_ESCAPES = "redraft-escapes"


def escape_unknown_letters() -> None:
    """Print a letter that the encoding of standard output lacks as JSON writes it: U+00E9 is a backslash and u00e9."""
    codecs.register_error(_ESCAPES, _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPES)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


@contextmanager
def kept(texts: Sequence[str]) -> Iterator[None]:
    """Print texts inside the block. If standard output cannot be written to, they are on standard error."""
    try:
        yield
    except BrokenPipeError:  # whoever reads has enough
        raise
    except OSError as error:
        for text in texts:
            click.echo(text, err=True)
        raise OutputError(f"cannot write to standard output ({error.strerror}); the result is printed above") from error
