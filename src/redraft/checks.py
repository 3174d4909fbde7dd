"""Checks of the user's values. Each error names the value and says what is allowed."""

import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard

from redraft.errors import InputError, RedraftError


def check_count(
    name: str, value: object, least: int, error: type[RedraftError] = InputError, *, most: int | None = None
) -> None:
    """Refuse anything but a whole number of at least ``least``, and with ``most`` one that is larger."""
    if not _is_whole(value):
        raise error(f"{name} must be a whole number of at least {least}, not {value!r}")
    if value < least:
        raise error(f"{name} must be at least {least}, not {value}")
    if most is not None and value > most:
        raise error(f"{name} must be at most {most:,}, not {value:,}")


def check_seed(seed: object) -> None:
    """Refuse anything but a whole number that is not negative."""
    if not _is_whole(seed):
        raise InputError(f"the seed must be a whole number, not {seed!r}")
    if seed < 0:
        raise InputError(f"the seed must not be negative, not {seed}")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_id(value: object) -> None:
    """Refuse an id that is neither a text nor a whole number."""
    if not isinstance(value, str) and not _is_whole(value):
        raise InputError(f"an id must be a text or a whole number, not {value!r}")


def check_positive(name: str, value: object, *, most: float = sys.float_info.max) -> None:
    """Refuse anything but a number above 0. Infinity is allowed only if ``most`` is infinite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= most:
        raise InputError(f"{name} must be a number above 0, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {value!r}")


def check_text(name: str, value: object, error: type[RedraftError] = InputError) -> None:
    """Refuse anything but a string."""
    if not isinstance(value, str):
        raise error(f"{name} must be a string, not {value!r}")


def texts(name: str, values: object, error: type[RedraftError] = InputError) -> tuple[str, ...]:
    """Convert several strings to a tuple. A single string is refused, or each of its letters would count as one."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise error(f"{name} must be a list or a tuple of strings, not {values!r}")
    found = tuple(values)
    for value in found:
        check_text(f"each of the {name}", value, error)
    return found


def counts(name: str, values: object, least: int, error: type[RedraftError] = InputError) -> tuple[int, ...]:
    """Several whole numbers of at least ``least`` as a tuple."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise error(f"{name} are several numbers; give them as a list or a tuple, not as {values!r}")
    found = tuple(values)
    for value in found:
        check_count(f"each of the {name}", value, least, error)
    return found
