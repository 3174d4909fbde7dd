"""The systems that the experiments compare, and whether each is available.

A system is a recipe of the same name, or has a function that opens it, or is derived from the test set itself (the
human references, the bare templates). Systems whose models are not at hand have rows in the tables, marked as
unavailable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redraft import recipes, systems
from redraft.batch import Input
from redraft.errors import InputError, PackError
from redraft.evaluation.outputs import SystemOutput, output_of
from redraft.experiments import paper_values as paper
from redraft.models.pack import MANIFEST, Pack, open_pack
from redraft.models.pull import SOURCES, is_pulled
from redraft.writer import Shaping, Writer

UNAVAILABLE = "unavailable"
HUMAN, TEMPLATE = "human", "template"


@dataclass(frozen=True)
class ComparedSystem:
    """A system that fills rows of tables.

    name            for ``--systems`` and in file names
    recipe          its recipe, if not of the same name
    ablation        what its pack has after the name of the run's pack: an ablation of ``redraft train ablations``
    most_keywords   maximum number of keywords that it accepts
    open            opens a system that is not a recipe
    derive          makes its outputs from the inputs of a test set; such a system is never run
    is_judged       whether the judge scores its outputs
    passes          passes over the blanks, instead of steps; it runs on infilling sets only
    until_settled   whether its chains end once the classifier would copy every word
    """

    name: str
    recipe: str | None = None
    ablation: str | None = None
    most_keywords: int | None = None
    open: Callable[[Pack], Writer] | None = None
    derive: Callable[[Sequence[Input]], list[SystemOutput]] | None = None
    is_judged: bool = True
    passes: int | None = None
    until_settled: bool = False


def _references(inputs: Sequence[Input]) -> list[SystemOutput]:
    """The human references, as outputs."""
    return [output_of({"id": i.id, "text": i.given["reference"], "input": i.given}, "the set") for i in inputs]


def _templates(inputs: Sequence[Input]) -> list[SystemOutput]:
    """The unfilled templates, as outputs. A blank counts as a word, which comes closest to the paper's row."""
    return [output_of({"id": i.id, "text": i.given["template"], "input": i.given}, "the set") for i in inputs]


SYSTEMS = {
    system.name: system
    for system in (
        ComparedSystem("sep-bf", most_keywords=1),
        ComparedSystem("asyn-bf", most_keywords=1),
        ComparedSystem("gbs-plain"),
        ComparedSystem("gbs"),
        ComparedSystem("cgmh"),
        ComparedSystem("l-mcmc-deletion"),
        ComparedSystem("l-mcmc"),
        ComparedSystem("l-mcmc-c"),
        ComparedSystem("x-mcmc"),
        ComparedSystem("x-mcmc-c"),
        ComparedSystem("l-mcmc-c-positions"),
        ComparedSystem("l-mcmc-c-actions"),
        ComparedSystem("l-mcmc-c-third", "l-mcmc-c", ablation="third"),
        ComparedSystem("l-mcmc-c-third-masked", "l-mcmc-c", ablation="third-masked"),
        ComparedSystem("l-mcmc-c-third-random", "l-mcmc-c", ablation="third-random"),
        ComparedSystem("flm"),
        ComparedSystem("blm"),
        ComparedSystem("fb-lm"),
        ComparedSystem("bayesian-mcmc"),
        ComparedSystem("tigs-random"),
        ComparedSystem("tigs-flm"),
        # The paper's 20 iterations as passes over the blanks; l-mcmc and l-mcmc-c take as many steps as with keywords.
        ComparedSystem("l-mcmc-passes", "l-mcmc", passes=paper.PASSES),
        ComparedSystem("l-mcmc-c-passes", "l-mcmc-c", passes=paper.PASSES),
        ComparedSystem("l-mcmc-c-settled", "l-mcmc-c", passes=paper.PASSES, until_settled=True),
        ComparedSystem("smollm2-mcmc"),  # not in the paper: a causal model is the target
        ComparedSystem("smollm2-mcmc-c"),
        ComparedSystem("infiller"),
        ComparedSystem(HUMAN, derive=_references),
        ComparedSystem(TEMPLATE, derive=_templates, is_judged=False),
    )
}


def steps_of(system: ComparedSystem) -> int:
    """The number of steps of a system when the paper's chains take 200."""
    recipe = recipes.RECIPES.get(system.recipe or system.name)
    return paper.STEPS if recipe is None else recipe.steps


def choose(names: tuple[str, ...]) -> tuple[str, ...]:
    """The given names once they are known to be systems; all systems if none are given."""
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise InputError(f"there is no system {unknown[0]!r}; choose some of: {', '.join(SYSTEMS)}")
    return names or tuple(SYSTEMS)


def absence(system: ComparedSystem, pack: Pack) -> str | None:
    """Why a system is unavailable with a pack; None if it is available."""
    if system.open is not None or system.derive is not None:
        return None
    recipe = recipes.RECIPES.get(system.recipe or system.name)
    if recipe is None:
        return UNAVAILABLE
    if recipe.target in SOURCES and not is_pulled(recipe.target):
        return f"{UNAVAILABLE}: {recipe.target} was not pulled"
    try:
        own = _pack_of(system, pack)
    except PackError as error:
        return f"{UNAVAILABLE}: {str(error).partition(';')[0]}"
    missing = systems.system(recipe.name).missing(own)
    return f"{UNAVAILABLE}: pack {own.name} has no {' and no '.join(missing)}" if missing else None


def open_system(system: ComparedSystem, pack: Pack) -> Writer:
    """Load the models of a system."""
    if system.open is not None:
        return system.open(pack)
    return systems.system(system.recipe or system.name).open(_pack_of(system, pack), Shaping())


def _pack_of(system: ComparedSystem, pack: Pack) -> Pack:
    if system.ablation is None:
        return pack
    folder = pack.folder.resolve()
    beside = folder.with_name(f"{folder.name}-{system.ablation}")
    return open_pack(str(beside) if (beside / MANIFEST).is_file() else beside.name)
