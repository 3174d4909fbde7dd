"""The systems that the paper compares, and which of them are here.

To add one, give it a recipe of the same name, or a way to open it. Its rows are in the tables already and say that it
is not there yet.
"""

from collections.abc import Callable
from dataclasses import dataclass

from redraft import recipes
from redraft.drafts import Author
from redraft.errors import InputError, PackError
from redraft.experiments import paper
from redraft.models.pack import Pack, open_pack
from redraft.models.pull import SOURCES, is_pulled
from redraft.writer import open_author

NOT_YET = "not there yet"


@dataclass(frozen=True)
class ComparedSystem:
    """A name for ``--systems``, the recipe that it is unless it has a way to be opened, the most keywords it takes.

    ``pack`` names another pack than the run's: the ablations of the synthetic data differ in the classifier alone.
    """

    name: str
    recipe: str | None = None
    pack: str | None = None
    most_keywords: int | None = None
    open: Callable[[Pack], Author] | None = None


SYSTEMS = {
    system.name: system
    for system in (
        ComparedSystem("sep-bf", most_keywords=1),
        ComparedSystem("asyn-bf", most_keywords=1),
        ComparedSystem("gbs"),
        ComparedSystem("l-mcmc-deletion"),
        ComparedSystem("l-mcmc"),
        ComparedSystem("l-mcmc-c"),
        ComparedSystem("x-mcmc"),
        ComparedSystem("x-mcmc-c"),
        ComparedSystem("l-mcmc-c-positions"),
        ComparedSystem("l-mcmc-c-actions"),
        ComparedSystem("l-mcmc-c-third", "l-mcmc-c", pack="english-third"),
        ComparedSystem("l-mcmc-c-third-masked", "l-mcmc-c", pack="english-third-masked"),
        ComparedSystem("l-mcmc-c-third-random", "l-mcmc-c", pack="english-third-random"),
        ComparedSystem("flm"),
        ComparedSystem("blm"),
        ComparedSystem("fb-lm"),
        ComparedSystem("bayesian-mcmc"),
        ComparedSystem("tigs-random"),
        ComparedSystem("tigs-flm"),
        ComparedSystem("smollm2-mcmc"),  # beyond the paper: a causal model decides
        ComparedSystem("smollm2-mcmc-c"),
        ComparedSystem("infiller"),
    )
}


def steps_of(system: ComparedSystem) -> int:
    """The steps of a system where the paper's chains take 200."""
    recipe = recipes.RECIPES.get(system.recipe or system.name)
    return paper.STEPS if recipe is None else recipe.steps


def choose(names: tuple[str, ...]) -> tuple[str, ...]:
    """The systems of some names, all where none is given."""
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise InputError(f"there is no system {unknown[0]!r}; choose some of: {', '.join(SYSTEMS)}")
    return names or tuple(SYSTEMS)


def absence(system: ComparedSystem, pack: Pack) -> str | None:
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
    missing = recipes.missing(recipe, own)
    return f"{NOT_YET}: pack {own.name} has no {' and no '.join(missing)}" if missing else None


def open_system(system: ComparedSystem, pack: Pack) -> Author:
    """A system, ready to write."""
    if system.open is not None:
        return system.open(pack)
    return open_author(_pack_of(system, pack), recipes.recipe(system.recipe or system.name))


def _pack_of(system: ComparedSystem, pack: Pack) -> Pack:
    return pack if system.pack is None else open_pack(system.pack)
