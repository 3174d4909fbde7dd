"""The paper's systems, as values. Only this file and the results know their nicknames."""

from dataclasses import dataclass, replace

from redraft.errors import InputError
from redraft.models.lstm_files import load_lstm
from redraft.models.pack import Pack
from redraft.predict.prior import UniformPrior
from redraft.revise.candidates import CandidateGenerator, Generator
from redraft.revise.kernels import ExactKernel, Kernel, KernelName, PaperKernel
from redraft.sampler import Sampler
from redraft.sentence import Action
from redraft.target import SoftScore, Target

_PROPOSERS = {
    Generator.FORWARD: ("forward",),
    Generator.BACKWARD: ("backward",),
    Generator.BOTH: ("forward", "backward"),
}


@dataclass(frozen=True)
class Recipe:
    """Which models propose and decide, and which actions are taken."""

    name: str
    summary: str
    actions: frozenset[Action] = frozenset({Action.REPLACE, Action.INSERT})
    generator: Generator = Generator.BOTH
    num_candidates: int = 50
    kernel: KernelName = KernelName.PAPER


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("l-mcmc", "LSTM models, replace and insert, positions drawn at random"),
        Recipe("l-mcmc-deletion", "the same with deletion: CGMH as the paper builds it", actions=PaperKernel.actions),
    )
}
DEFAULT = "l-mcmc"


def recipe(name: str = DEFAULT, *, num_candidates: int | None = None, kernel: str | None = None) -> Recipe:
    """A recipe by name, with another number of candidates or another kernel if one is given."""
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; choose one of: {', '.join(RECIPES)}")
    chosen = RECIPES[name]
    if num_candidates is not None:
        if num_candidates < 1:
            raise InputError(f"{num_candidates} candidates are too few; take at least 1")
        chosen = replace(chosen, num_candidates=num_candidates)
    if kernel is not None:
        if kernel not in [known.value for known in KernelName]:
            raise InputError(f"there is no kernel {kernel!r}; choose paper or exact")
        chosen = replace(chosen, kernel=KernelName(kernel))
    return chosen


def build(recipe: Recipe, pack: Pack, *, power: float = 1.0, soft: tuple[SoftScore, ...] = ()) -> Sampler:
    """The sampler of a recipe, with the models of a pack."""
    models = {part: load_lstm(pack, part) for part in dict.fromkeys(("forward", *_PROPOSERS[recipe.generator]))}
    proposers = [models[part] for part in _PROPOSERS[recipe.generator]]
    candidates = CandidateGenerator(proposers, recipe.num_candidates)
    target = Target(models["forward"], power, soft)
    # A sampler needs every action and its reverse; a search takes those of its recipe.
    kernel: Kernel = ExactKernel() if recipe.kernel is KernelName.EXACT else PaperKernel()
    actions = recipe.actions if recipe.kernel is KernelName.PAPER else kernel.actions
    return Sampler(target, candidates, UniformPrior(), kernel, actions)
