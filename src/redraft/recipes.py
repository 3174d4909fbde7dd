"""The paper's systems, as values. Only this file and the results know their nicknames."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from redraft.drafting import GridBeam, Language
from redraft.errors import InputError
from redraft.models.base import Scorer
from redraft.models.causal.files import load_causal
from redraft.models.causal.infiller import INFILLER
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import Pack
from redraft.models.pull import is_pulled
from redraft.models.xlnet.network import ReadingOrder
from redraft.models.xlnet.pack import load_readers, part_for
from redraft.predict.classifier import CLASSIFIER, pack_classifier
from redraft.predict.learned import Learned, LearnedPrior
from redraft.predict.prior import Prior, UniformPrior
from redraft.revise.candidates import CandidateGenerator, CandidateSource, CheaplyScored, Generator, Merged
from redraft.revise.kernels import ExactKernel, Kernel, KernelName, PaperKernel
from redraft.revise.tries import TriesKernel
from redraft.sampler import Sampler
from redraft.sentence import Action
from redraft.target import SoftScore, Target

_PROPOSERS = {
    Generator.FORWARD: (ReadingOrder.FORWARD,),
    Generator.BACKWARD: (ReadingOrder.BACKWARD,),
    Generator.BOTH: (ReadingOrder.FORWARD, ReadingOrder.BACKWARD),
    Generator.MASKED: (ReadingOrder.MASKED,),
}

PULLED = "smollm2"  # the target of the default recipe, where it was pulled
_NUM_SCORED, _CAUSAL_STEPS = 4, 10  # for a target that costs a hundred times as much as the LSTM models
_CAUSAL_BEAM = 2
_PARTICLES, _MOST_PARTICLES = 24, 1024
_BEAM, _NOISE = 10, 0.5  # a second's search makes a sentence of the keywords, which the steps then mend


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
    target: str | None = None  # a causal model that decides; None leaves it to the pack's forward model
    num_scored: int | None = None  # how many of the K candidates such a target scores; None for all
    steps: int = 200
    beam: int = 0  # width of the search by the pack's forward model for a first draft; 0 starts from the bare words
    particles: int = 0  # of the infiller, which then writes the drafts; 0 for systems without it


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("l-mcmc", "LSTM models, replace and insert, positions drawn at random"),
        Recipe("l-mcmc-deletion", "the same with deletion: CGMH as the paper builds it", actions=PaperKernel.actions),
        Recipe("l-mcmc-c", "LSTM models guided by the classifier", learned=Learned.ALL),
        Recipe("l-mcmc-c-positions", "the same without the prior for actions", learned=Learned.POSITIONS),
        Recipe("l-mcmc-c-actions", "the same without the prior for positions", learned=Learned.ACTIONS),
        Recipe(
            "gbs",
            "grid beam search by the forward LSTM, nothing revised",
            generator=Generator.FORWARD,
            steps=0,
            beam=_BEAM,
        ),
        Recipe("x-mcmc", "XLNet models, replace and insert, positions drawn at random", family=Family.XLNET),
        Recipe("x-mcmc-c", "XLNet models guided by the classifier", learned=Learned.ALL, family=Family.XLNET),
        Recipe(
            "smollm2-mcmc",
            "SmolLM2 decides, the LSTM models propose",
            target=PULLED,
            num_scored=_NUM_SCORED,
            steps=_CAUSAL_STEPS,
            beam=_BEAM,
        ),
        Recipe(
            "smollm2-mcmc-c",
            "the same, guided by the classifier",
            learned=Learned.ALL,
            target=PULLED,
            num_scored=_NUM_SCORED,
            steps=_CAUSAL_STEPS,
            beam=_BEAM,
        ),
        Recipe(
            "infiller",
            "SmolLM2 trained to write into gaps; the best of its particles",
            target=PULLED,
            steps=0,
            particles=_PARTICLES,
        ),
    )
}


def default(pack: Pack) -> str:
    """The best recipe that the models at hand allow."""
    if is_pulled(PULLED) and INFILLER in pack.parts:
        return INFILLER
    return revising(pack)


def revising(pack: Pack) -> str:
    """The best recipe that revises word by word."""
    return own(pack).replace("l-mcmc", "smollm2-mcmc") if is_pulled(PULLED) else own(pack)


def own(pack: Pack) -> str:
    """The best recipe that a pack has all the models for."""
    family = "l-mcmc" if "forward" in pack.parts else "x-mcmc"
    return f"{family}-c" if CLASSIFIER in pack.parts else family


def unguided(pack: Pack) -> str:
    """The same without a classifier: one that asks for words and hardly ever for fewer makes a sampler slow."""
    return own(pack).removesuffix("-c")


def recipe(
    name: str,
    *,
    num_candidates: int | None = None,
    num_scored: int | None = None,
    kernel: str | None = None,
    generator: str | None = None,
    target: str | None = None,
    particles: int | None = None,
) -> Recipe:
    """A recipe by name, with whatever is given in place of its own."""
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
    if target is not None:
        if chosen.target is None and chosen.steps:  # so far the pack decided, and could afford more
            chosen = replace(chosen, num_scored=_NUM_SCORED, steps=_CAUSAL_STEPS, beam=_BEAM)
        chosen = replace(chosen, target=target)
    if particles is not None:
        if not chosen.particles:
            raise InputError(f"recipe {name} has no particles; the recipe {INFILLER} has")
        if not 1 <= particles <= _MOST_PARTICLES:
            raise InputError(f"particles must be from 1 to {_MOST_PARTICLES}, not {particles}")
        chosen = replace(chosen, particles=particles)
    if num_scored is not None:
        if not 1 <= num_scored <= chosen.num_candidates:
            raise InputError(f"of {chosen.num_candidates} candidates the target cannot score {num_scored}")
        if chosen.target is None:
            raise InputError("the pack's own model scores every candidate; give a target as well")
        chosen = replace(chosen, num_scored=num_scored)
    if chosen.num_scored is not None:
        chosen = replace(chosen, num_scored=min(chosen.num_scored, chosen.num_candidates))
    return chosen


def build(
    recipe: Recipe, pack: Pack, *, power: float = 1.0, soft: tuple[SoftScore, ...] = (), context: str = ""
) -> Sampler:
    """The sampler of a recipe, with the models of a pack and, where it has one, its causal target after a context."""
    models = _language_models(recipe, pack)
    proposers = [models[order] for order in _PROPOSERS[recipe.generator]]
    candidates: CandidateSource = CandidateGenerator(proposers, recipe.num_candidates)
    scorer: Scorer = models[ReadingOrder.FORWARD]
    if recipe.target is not None:
        scorer, candidates = _two_stages(recipe, models, candidates, context)
    elif context:
        raise InputError("only a causal model reads a context; give one: --target smollm2")
    kernel = _kernel(recipe)
    # A sampler needs every action and its reverse; a search takes those of its recipe.
    actions = recipe.actions if recipe.kernel is KernelName.PAPER else kernel.actions
    return Sampler(Target(scorer, power, soft), candidates, _prior(recipe, pack), kernel, actions)


def build_drafter(recipe: Recipe, pack: Pack, sampler: Sampler, context: str = "") -> GridBeam | None:
    """What writes first drafts; None for recipes that start from the bare words.

    A causal target writes them itself where it reads a context, of which the pack's model would not know, and where
    nothing is revised after it.
    """
    if not recipe.beam:
        return None
    if recipe.target is not None and (context or not recipe.steps):
        target = cast("Language", sampler.target.scorer)  # a causal model proposes as well
        return GridBeam(target, _CAUSAL_BEAM, _NOISE, sampler.target.soft)
    forward = _language_models(recipe, pack)[ReadingOrder.FORWARD]
    return GridBeam(forward, recipe.beam, _NOISE, sampler.target.soft)


def _two_stages(
    recipe: Recipe, models: Mapping[ReadingOrder, Any], candidates: CandidateSource, context: str
) -> tuple[Scorer, CandidateSource]:
    """A causal target, and candidates of the pack's models and its own that the pack's forward model has scored."""
    if recipe.target is None:
        raise ValueError("two stages need a target")
    words = models[ReadingOrder.FORWARD].words
    target = load_causal(recipe.target, context=context, words=words, dtype=_precision(recipe))
    own = CandidateGenerator(
        [target, *(models[order] for order in models if order is ReadingOrder.BACKWARD)], recipe.num_candidates
    )
    both = Merged([candidates, own], recipe.num_candidates)
    return target, both if recipe.num_scored is None else CheaplyScored(both, models[ReadingOrder.FORWARD])


def _kernel(recipe: Recipe) -> Kernel:
    if recipe.kernel is KernelName.PAPER:
        return PaperKernel(recipe.num_scored)
    return ExactKernel() if recipe.num_scored is None else TriesKernel(recipe.num_scored)


def _orders(recipe: Recipe) -> list[ReadingOrder]:
    """The orders in which a recipe's language models read: the scorer's, and those of the proposers."""
    return list(dict.fromkeys((ReadingOrder.FORWARD, *_PROPOSERS[recipe.generator])))


def _precision(recipe: Recipe) -> torch.dtype | None:
    """Draws from a distribution ask for scores that do not hang on the batch; a search takes the fastest."""
    return torch.float32 if recipe.kernel is KernelName.EXACT else None


def _language_models(recipe: Recipe, pack: Pack) -> Mapping[ReadingOrder, Any]:
    """The scorer, which reads forward, and what else proposes."""
    orders = _orders(recipe)
    if recipe.family is Family.XLNET:
        return load_readers(pack, orders, _precision(recipe))
    if ReadingOrder.MASKED in orders:
        raise InputError(f"an LSTM sees one side of a slot: recipe {recipe.name} has no masked generator; try x-mcmc")
    return {order: load_lstm(pack, order.value) for order in orders}


def _prior(recipe: Recipe, pack: Pack) -> Prior:
    return UniformPrior() if recipe.learned is None else LearnedPrior(pack_classifier(pack), recipe.learned)


def missing(recipe: Recipe, pack: Pack) -> list[str]:
    """The models that a recipe needs and a pack lacks."""
    if recipe.particles:
        return [] if INFILLER in pack.parts else [INFILLER]
    lacking = [] if recipe.learned is None or CLASSIFIER in pack.parts else [CLASSIFIER]
    orders = _orders(recipe)
    if recipe.family is Family.XLNET:
        return [f"XLNet that reads {order.value}" for order in orders if part_for(pack, order) is None] + lacking
    return [order.value for order in orders if order.value not in pack.parts] + lacking
