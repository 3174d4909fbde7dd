"""Drafts, how long to work on them, and what everything that writes them has in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from redraft.errors import InputError
from redraft.revise.rewrite import Rewrite
from redraft.sampler import Revision
from redraft.sentence import Constraints, Order, Sentence


@dataclass(frozen=True)
class Settings:
    """How long to work. Steps are the recipe's if none are given; a seed is drawn, and named in the signature.

    ``time_limit`` is in seconds for each input: several that are written together have the sum of theirs.
    ``checkpoints`` are steps after which the best draft so far is kept as well; they change no draw.
    """

    steps: int | None = None
    chains: int = 1
    num: int = 1
    seed: int | None = None
    time_limit: float | None = None
    checkpoints: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("chains", 1), ("num", 1)):
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"{name} must be at least {least}, not {value}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"the time limit must be more than 0 seconds, not {self.time_limit}")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"the seed must not be negative, not {self.seed}")

    @property
    def num_chains(self) -> int:
        """At least one for every draft that is asked for."""
        return max(self.chains, self.num)


@dataclass(frozen=True)
class Earlier:
    """The best draft of a chain after fewer steps."""

    steps: int
    text: str
    nll: float


@dataclass(frozen=True)
class Particle:
    """A sentence that the infiller wrote: NLL per word given the constraints, and its share of all weight."""

    text: str
    nll: float
    weight: float


@dataclass(frozen=True)
class Draft:
    """A finished sentence. ``nll`` is per word under the target, ``steps`` are those of its chain.

    ``trace`` tells the chain's revisions from its ``start`` on. Of the infiller, ``particles`` are what else it wrote
    and ``rewrites`` the stretches that were written anew.
    """

    text: str
    words: tuple[str, ...]
    nll: float
    steps: int
    seconds: float
    constraints_met: bool
    signature: str
    trace: tuple[Revision, ...] = field(default=(), repr=False)
    start: Sentence | None = field(default=None, repr=False)
    earlier: tuple[Earlier, ...] = field(default=(), repr=False)
    particles: tuple[Particle, ...] = field(default=(), repr=False)
    rewrites: tuple[Rewrite, ...] = field(default=(), repr=False)


Observer = Callable[[int, Sentence, float], bool]  # step, best draft so far, its nll; false ends the work


class Author(ABC):
    """Turns constraints into drafts. A system implements ``write_many`` and ``_signature``."""

    @abstractmethod
    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for each input, best first; ``observe`` is asked now and then whether to go on.

        An input's draws depend on the seed and on its number (by default its place), not on its neighbours.
        """

    @abstractmethod
    def _signature(self, settings: Settings, seed: int) -> str:
        """What says how to get a draft again."""

    def complete(self, settings: Settings) -> Settings:
        """Settings with the system's own values where none are given."""
        return settings

    def generate(
        self,
        *keywords: str,
        order: str = "given",
        ban: Sequence[str] = (),
        min_words: int | None = None,
        max_words: int | None = None,
        settings: Settings | None = None,
    ) -> Draft:
        """A sentence with the given words or phrases in it."""
        constraints = Constraints(keywords, None, Order.named(order), _several(ban), min_words, max_words)
        return self.write(constraints, settings)[0]

    def infill(
        self, template: str, *, ban: Sequence[str] = (), max_words: int | None = None, settings: Settings | None = None
    ) -> Draft:
        """The template with its blanks (``___``) filled."""
        return self.write(Constraints(template=template, banned=_several(ban), max_words=max_words), settings)[0]

    def write(
        self, constraints: Constraints, settings: Settings | None = None, observe: Observer | None = None
    ) -> list[Draft]:
        """``settings.num`` different drafts for one input, best first."""
        return self.write_many([constraints], settings, observe=observe)[0]

    def matches_signature(self, signature: str, settings: Settings) -> bool:
        """Whether a draft with this signature comes from the same models and settings; any seed where none is set."""
        settings = self.complete(settings)
        seed = signature.rpartition("seed:")[2]
        return (
            seed.isdigit() and settings.seed in (None, int(seed)) and signature == self._signature(settings, int(seed))
        )


def _several(words: Sequence[str]) -> tuple[str, ...]:
    """A lone text is one word, not its letters."""
    return (words,) if isinstance(words, str) else tuple(words)
