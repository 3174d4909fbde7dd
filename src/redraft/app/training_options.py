"""Options that the training commands share."""

import math
from typing import Any

import click


class Count(click.ParamType[int]):
    """A whole number of at least 1, also written as 25e6."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 1):
            self.fail(f"{value} is not a number of at least 1, such as 25e6.", param, ctx)
        return int(number)


def _use_threads(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value:
        import torch

        torch.set_num_threads(value)


threads_option = click.option(
    "--threads",
    type=click.IntRange(1),
    callback=_use_threads,
    expose_value=False,
    help="Cores to use; all by default.",
)
