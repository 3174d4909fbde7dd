"""Options that the training commands share."""

import math
from typing import Any

import click


def _number(value: Any) -> float:
    """The number, or NaN if the value is not a finite number."""
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


class Count(click.ParamType[int]):
    """A whole number of at least 1; 25e6 is allowed."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = _number(value)
        if not number >= 1:
            self.fail(f"{value} is not a number of at least 1, such as 25e6.", param, ctx)
        return int(number)


class Positive(click.ParamType[float]):
    """A positive number."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = _number(value)
        if not number > 0:
            self.fail(f"{value} is not a number above 0.", param, ctx)
        return number


def _use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value:
        import torch

        torch.set_num_threads(value)


# Torch and NumPy accept larger seeds, but not once the numbers of steps and sentences are combined with them.
seed_option = click.option(
    "--seed", type=click.IntRange(0, (1 << 32) - 1), default=0, show_default=True, help="Random seed."
)

threads_option = click.option(
    "--threads",
    type=click.IntRange(1),
    callback=_use_threads,
    expose_value=False,
    help="CPU threads. Default: all cores.",
)
