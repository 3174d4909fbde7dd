"""The paper's systems, as values. Only this file and the results know their nicknames."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from redraft.errors import InputError
from redraft.models.lstm_files import load_lstm
from redraft.models.pack import Pack
from redraft.models.xlnet import Order
from redraft.models.xlnet_pack import load_readers
from redraft.predict.classifier import CLASSIFIER, pack_classifier
from redraft.predict.learned import Learned, LearnedPrior
from redraft.predict.prior import Prior, UniformPrior
from redraft.revise.candidates import CandidateGenerator, Generator
from redraft.revise.kernels import ExactKernel, Kernel, KernelName, PaperKernel
from redraft.sampler import Sampler
from redraft.sentence import Action
from redraft.target import SoftScore, Target

_PROPOSERS = {
    Generator.FORWARD: (Order.FORWARD,),
    Generator.BACKWARD: (Order.BACKWARD,),
    Generator.BOTH: (Order.FORWARD, Order.BACKWARD),
    Generator.MASKED: (Order.MASKED,),
}


class Family(enum.Enum):
    """Whose language models propose and decide. The classifier may be of any other kind: they meet in words."""

    LSTM = "LSTM"
    XLNET = "XLNet"


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
    family: Family = Family.LSTM


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("l-mcmc", "LSTM models, replace and insert, positions drawn at random"),
        Recipe("l-mcmc-deletion", "the same with deletion: CGMH as the paper builds it", actions=PaperKernel.actions),
        Recipe("l-mcmc-c", "LSTM models guided by the classifier", learned=Learned.ALL),
        Recipe("l-mcmc-c-positions", "the same without the prior for actions", learned=Learned.POSITIONS),
        Recipe("l-mcmc-c-actions", "the same without the prior for positions", learned=Learned.ACTIONS),
        Recipe("x-mcmc", "XLNet models, replace and insert, positions drawn at random", family=Family.XLNET),
        Recipe("x-mcmc-c", "XLNet models guided by the classifier", learned=Learned.ALL, family=Family.XLNET),
    )
}


def default(pack: Pack) -> str:
    """The best recipe that a pack has the models for."""
    family = "l-mcmc" if "forward" in pack.parts else "x-mcmc"
    return f"{family}-c" if CLASSIFIER in pack.parts else family


def recipe(
    name: str, *, num_candidates: int | None = None, kernel: str | None = None, generator: str | None = None
) -> Recipe:
    """A recipe by name, with another number of candidates, another kernel or generator if one is given."""
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
    if generator is not None:
        if generator not in [known.value for known in Generator]:
            raise InputError(f"there is no generator {generator!r}; choose forward, backward, both or masked")
        chosen = replace(chosen, generator=Generator(generator))
    return chosen


def build(recipe: Recipe, pack: Pack, *, power: float = 1.0, soft: tuple[SoftScore, ...] = ()) -> Sampler:
    """The sampler of a recipe, with the models of a pack."""
    models = _language_models(recipe, pack)
    candidates = CandidateGenerator([models[order] for order in _PROPOSERS[recipe.generator]], recipe.num_candidates)
    target = Target(models[Order.FORWARD], power, soft)
    # A sampler needs every action and its reverse; a search takes those of its recipe.
    kernel: Kernel = ExactKernel() if recipe.kernel is KernelName.EXACT else PaperKernel()
    actions = recipe.actions if recipe.kernel is KernelName.PAPER else kernel.actions
    return Sampler(target, candidates, _prior(recipe, pack), kernel, actions)


def _language_models(recipe: Recipe, pack: Pack) -> Mapping[Order, Any]:
    """The scorer, which reads forward, and what else proposes."""
    orders = dict.fromkeys((Order.FORWARD, *_PROPOSERS[recipe.generator]))
    if recipe.family is Family.XLNET:
        return load_readers(pack, orders)
    if Order.MASKED in orders:
        raise InputError(f"an LSTM sees one side of a slot: recipe {recipe.name} has no masked generator; try x-mcmc")
    return {order: load_lstm(pack, order.value) for order in orders}


def _prior(recipe: Recipe, pack: Pack) -> Prior:
    return UniformPrior() if recipe.learned is None else LearnedPrior(pack_classifier(pack), recipe.learned)
