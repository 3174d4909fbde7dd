"""Samples from the target, for generate --samples and diagnose."""

from collections.abc import Mapping
from typing import NamedTuple

from redraft.app.live import LiveLine
from redraft.app.options import Options
from redraft.chain_writer import ChainWriter
from redraft.errors import InputError
from redraft.interrupt import stop_on_interrupt
from redraft.records import constraints_of
from redraft.sampling import Samples, sample
from redraft.sentence import Constraints


class Drawn(NamedTuple):
    """Samples, their constraints, and the name of their target."""

    samples: Samples
    constraints: Constraints
    target: str


def draw(given: Mapping[str, object], options: Options, *, num: int, burn_in: int, thin: int) -> Drawn:
    """Draw samples and show the step. An interrupt returns the samples drawn so far."""
    constraints = constraints_of({**options.defaults(), **given})
    writer = options.writer(many_steps=True)
    if not isinstance(writer, ChainWriter):
        raise InputError("the infiller has no chains to draw from; choose another --recipe for samples")
    sampler = writer.sampler
    with stop_on_interrupt() as stopped, LiveLine(burn_in + num * thin) as line:

        def observe(step: int) -> bool:
            line.count(step)
            return not stopped()

        samples = sample(
            sampler,
            constraints,
            num=num,
            burn_in=burn_in,
            thin=thin,
            chains=options.chains,
            seed=options.seed,
            observe=observe,
        )
    return Drawn(samples, constraints, sampler.target.name)
