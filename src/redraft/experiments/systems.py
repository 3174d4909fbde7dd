"""The systems that the paper compares, and which of them are here.

To add one, give it a recipe of the same name, or a way to open it. Its rows are in the tables already and say that it
is not there yet.
"""

from collections.abc import Callable
from dataclasses import dataclass

from redraft import recipes, systems
from redraft.errors import InputError, PackError
from redraft.experiments import paper
from redraft.models.pack import Pack, open_pack
from redraft.models.pull import SOURCES, is_pulled
from redraft.writer import Shaping, Writer

NOT_YET = "not there yet"


@dataclass(frozen=True)
class System:
    """A name for ``--systems``, the recipe that it is unless it has a way to be opened, the most keywords it takes.

    ``pack`` names another pack than the run's: the ablations of the synthetic data differ in the classifier alone.
    """

    name: str
    recipe: str | None = None
    pack: str | None = None
    most_keywords: int | None = None
    open: Callable[[Pack], Writer] | None = None


SYSTEMS = {
    system.name: system
    for system in (
        System("sep-bf", most_keywords=1),
        System("asyn-bf", most_keywords=1),
        System("gbs"),
        System("l-mcmc-deletion"),
        System("l-mcmc"),
        System("l-mcmc-c"),
        System("x-mcmc"),
        System("x-mcmc-c"),
        System("l-mcmc-c-positions"),
        System("l-mcmc-c-actions"),
        System("l-mcmc-c-third", "l-mcmc-c", pack="english-third"),
        System("l-mcmc-c-third-masked", "l-mcmc-c", pack="english-third-masked"),
        System("l-mcmc-c-third-random", "l-mcmc-c", pack="english-third-random"),
        System("flm"),
        System("blm"),
        System("fb-lm"),
        System("bayesian-mcmc"),
        System("tigs-random"),
        System("tigs-flm"),
        System("smollm2-mcmc"),  # beyond the paper: a causal model decides
        System("smollm2-mcmc-c"),
        System("infiller"),
    )
}


def steps_of(system: System) -> int:
    """The steps of a system where the paper's chains take 200."""
    recipe = recipes.RECIPES.get(system.recipe or system.name)
    return paper.STEPS if recipe is None else recipe.steps


def choose(names: tuple[str, ...]) -> tuple[str, ...]:
    """The systems of some names, all where none is given."""
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise InputError(f"there is no system {unknown[0]!r}; choose some of: {', '.join(SYSTEMS)}")
    return names or tuple(SYSTEMS)


def absence(system: System, pack: Pack) -> str | None:
    """Why a system cannot be run with a pack; None where it can."""
    if system.open is not None:
        return None
    recipe = recipes.RECIPES.get(system.recipe or system.name)
    if recipe is None:
        return NOT_YET
    if recipe.target in SOURCES and not is_pulled(recipe.target):
        return f"{NOT_YET}: {recipe.target} was not pulled"
    try:
        own = _pack_of(system, pack)
    except PackError as error:
        return f"{NOT_YET}: {str(error).partition(';')[0]}"
    missing = systems.system(recipe.name).missing(own)
    return f"{NOT_YET}: pack {own.name} has no {' and no '.join(missing)}" if missing else None


def open_system(system: System, pack: Pack) -> Writer:
    """A system, ready to write."""
    if system.open is not None:
        return system.open(pack)
    return systems.system(system.recipe or system.name).open(_pack_of(system, pack), Shaping())


def _pack_of(system: System, pack: Pack) -> Pack:
    return pack if system.pack is None else open_pack(system.pack)
