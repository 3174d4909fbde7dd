"""The paper's systems, as values. Only this file and the results know their nicknames."""

from dataclasses import dataclass, replace

from redraft.errors import InputError
from redraft.models.lstm_files import load_lstm
from redraft.models.pack import Pack, require
from redraft.predict.classifier import load_classifier
from redraft.predict.learned import Learned, LearnedPrior
from redraft.predict.prior import Prior, UniformPrior
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
    learned: Learned | None = None  # what the prior takes from the pack's classifier; None draws moves at random


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("l-mcmc", "LSTM models, replace and insert, positions drawn at random"),
        Recipe("l-mcmc-deletion", "the same with deletion: CGMH as the paper builds it", actions=PaperKernel.actions),
        Recipe("l-mcmc-c", "LSTM models guided by the classifier", learned=Learned.ALL),
        Recipe("l-mcmc-c-positions", "the same without the prior for actions", learned=Learned.POSITIONS),
        Recipe("l-mcmc-c-actions", "the same without the prior for positions", learned=Learned.ACTIONS),
    )
}
CLASSIFIER = "classifier"  # the part of a pack that a learned prior needs


def default(pack: Pack) -> str:
    """The best recipe that a pack has the models for."""
    return "l-mcmc-c" if CLASSIFIER in pack.parts else "l-mcmc"


def recipe(name: str, *, num_candidates: int | None = None, kernel: str | None = None) -> Recipe:
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
    return Sampler(target, candidates, _prior(recipe, pack), kernel, actions)


def _prior(recipe: Recipe, pack: Pack) -> Prior:
    if recipe.learned is None:
        return UniformPrior()
    require(pack, [CLASSIFIER])
    return LearnedPrior(load_classifier(pack.folder), recipe.learned)


def missing(recipe: Recipe, pack: Pack) -> list[str]:
    """The models that a recipe needs and a pack lacks."""
    needed = ["forward", *_PROPOSERS[recipe.generator], *([CLASSIFIER] if recipe.learned else [])]
    return [part for part in dict.fromkeys(needed) if part not in pack.parts]
