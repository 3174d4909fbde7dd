"""The registry of systems: everything that turns constraints into drafts, and how to open it.

To add a system, subclass ``Writer`` (what writes) and ``WritingSystem`` (what it needs, and how it is opened) in a file
of its own, and add one line to ``SYSTEMS``, or call ``register``.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from redraft import recipes
from redraft.assemble import Models, build_chain, missing_models, opened
from redraft.baselines.blank_beams import BlankBeamSystem
from redraft.baselines.grid_beam import BeamSystem
from redraft.baselines.halves import HalvesSystem
from redraft.baselines.passes import GibbsSystem, GradientSystem
from redraft.chain_writer import ChainWriter
from redraft.errors import ConstraintError, InputError
from redraft.infill_writer import InfillWriter
from redraft.models.causal.infiller import INFILLER
from redraft.models.causal.prompts import DEFAULT_STYLE
from redraft.models.lstm.files import load_words
from redraft.models.pack import DEFAULT, Pack, require
from redraft.models.pull import SOURCES, is_pulled
from redraft.recipes import ChainRecipe, InfillerRecipe, Overrides
from redraft.revise.kernels import KernelName
from redraft.sentence import Constraints
from redraft.target import SoftScore, power_of
from redraft.text import capitalise
from redraft.writer import Shaping, Writer, WritingSystem


@dataclass(frozen=True)
class ChainSystem(WritingSystem):
    """Chains of revisions: the paper's method."""

    recipe: ChainRecipe

    @property
    def needs(self) -> list[str]:
        """Language models, a classifier if it is guided, and a causal target if it has one."""
        orders = " and ".join(order.value for order in self.recipe.orders)
        guide = [] if self.recipe.learned is None else ["a classifier"]
        target = [] if self.recipe.target is None else [self.recipe.target]
        return [f"{orders} {self.recipe.family.value} models", *guide, *target]

    def missing(self, pack: Pack) -> list[str]:
        """The models that the pack lacks."""
        return missing_models(self.recipe, pack)

    def refusal(self, constraints: Constraints) -> str | None:
        """Numbers of words are refused; a list of words too where a beam search writes the first draft."""
        name = self.recipe.name
        of_list = None if self.recipe.target is None else recipes.refusal_of_list(name, constraints)
        return recipes.refusal_of_lengths(name, constraints) or of_list

    def override(self, given: Overrides) -> "ChainSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> ChainWriter:
        """The writer, with the models of a pack."""
        shaping.refuse_style(self.recipe)
        sampler, drafter = build_chain(self.recipe, pack, shaping)
        exact = replace(self.recipe, kernel=KernelName.EXACT)
        return ChainWriter(pack, self.recipe, sampler, drafter, lambda: build_chain(exact, pack, shaping)[0])


@dataclass(frozen=True)
class InfillerSystem(WritingSystem):
    """Sequential Monte Carlo with a causal model that was trained to write into gaps."""

    recipe: InfillerRecipe

    @property
    def needs(self) -> list[str]:
        """The infiller, and the causal model that it was trained from."""
        return [f"an {INFILLER}", *([] if self.recipe.target is None else [self.recipe.target])]

    def missing(self, pack: Pack) -> list[str]:
        """The infiller, if the pack lacks it."""
        return [] if INFILLER in pack.parts else [INFILLER]

    def refusal(self, constraints: Constraints) -> str | None:
        """It writes for all constraints."""
        return None

    def override(self, given: Overrides) -> "InfillerSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> InfillWriter:
        """The writer, with the infiller of a pack. What the infiller cannot write, a system that revises does."""
        require(pack, [INFILLER])
        model = Models(pack).infiller(shaping.context)
        styles = model.styles or (DEFAULT_STYLE,)
        if shaping.style is not None and shaping.style not in styles:
            known = ", ".join(styles)
            raise InputError(f"the infiller of pack {pack.name} has no style {shaping.style!r}; choose one of: {known}")
        fallback = replace(shaping, context="", style=None)
        return InfillWriter(
            pack,
            self.recipe,
            model,
            style=shaping.style or styles[0],
            temperature=1 / shaping.power,
            soft=shaping.soft,
            lowered=_lowered(pack),
            fallback=lambda: ChainSystem(recipes.revising(pack)).open(pack, fallback),
        )


def _lowered(pack: Pack) -> frozenset[str]:
    """The words that are more frequent in lower case than with a capital, by the word list of a pack."""
    if "forward" not in pack.parts:
        return frozenset()
    rank = {word: i for i, word in enumerate(load_words(pack, "forward"))}
    return frozenset(word for word in rank if rank[word] < rank.get(capitalise(word), math.inf))


SYSTEMS: dict[str, WritingSystem] = {
    system.recipe.name: system
    for system in (
        *map(ChainSystem, recipes.CHAINS),
        *map(BeamSystem, recipes.BEAMS),
        *map(HalvesSystem, recipes.HALVES),
        *map(BlankBeamSystem, recipes.BLANK_BEAMS),
        GibbsSystem(recipes.GIBBS),
        *map(GradientSystem, recipes.GRADIENT),
        InfillerSystem(recipes.INFILLING),
    )
}


def register(system: WritingSystem) -> None:
    """Add a system of your own. ``redraft.load(recipe=...)`` and ``redraft recipes`` then know its name."""
    SYSTEMS[system.recipe.name] = system


def system(name: str) -> WritingSystem:
    """The system of a name."""
    if name not in SYSTEMS:
        raise InputError(f"there is no recipe {name!r}; choose one of: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def absence(system: WritingSystem, pack: Pack) -> str | None:
    """Why a system is unavailable with a pack; None if it is available."""
    target = system.recipe.target
    if target in SOURCES and not is_pulled(target):
        return f"{target} was not pulled"
    missing = system.missing(pack)
    return f"pack {pack.name} has no {' and no '.join(missing)}" if missing else None


def listing(pack: Pack) -> list[dict[str, Any]]:
    """All systems as JSON objects: what each needs, and whether it is available with a pack."""
    default = recipes.default(pack).name
    return [
        {
            "name": name,
            "summary": system.recipe.summary,
            "target": system.recipe.target,
            "steps": system.recipe.steps,
            "needs": system.needs,
            "available": (reason := absence(system, pack)) is None,
            "reason": reason,
            "default": name == default,
        }
        for name, system in SYSTEMS.items()
    ]


def refuse_unwritable(
    constraints: Constraints, pack: str = DEFAULT, recipe: str | None = None, target: str | None = None
) -> None:
    """Raise an error if the system that ``load`` would open cannot write for some constraints."""
    if recipe is None and not constraints.fixes_lengths and constraints.allow is None:
        return  # every recipe of a default can write it
    if recipe is None:
        found = opened(pack)
        recipe = (recipes.default(found) if target is None else recipes.own(found)).name
    why = system(recipe).refusal(constraints)
    if why is not None:
        raise ConstraintError(why)


def load(
    pack: str | Pack = DEFAULT,
    recipe: str | None = None,
    *,
    candidates: int | None = None,
    scored: int | None = None,
    kernel: str | None = None,
    generator: str | None = None,
    target: str | None = None,
    context: str = "",
    temperature: float = 1.0,
    soft: Sequence[SoftScore] = (),
    style: str | None = None,
    particles: int | None = None,
    num_candidates: int | None = None,
    num_scored: int | None = None,
    power: float | None = None,
) -> Writer:
    """Load the models of a pack and return a writer that works by a recipe.

    Examples:
        >>> writer = redraft.load()
        >>> writer = redraft.load(recipe="l-mcmc-c", candidates=20, temperature=0.8)
        >>> writer.generate("dog", "ball", steps=5, seed=1).constraints_met
        True
        >>> writer = redraft.load(target="smollm2", soft=[redraft.prefer("river", 2.0)])

    Args:
        pack: A name or a folder.
        recipe: Which system; by default the best one for the models at hand. ``redraft recipes`` lists them.
        candidates: Words to weigh at each step (the paper's K).
        scored: How many of them a causal target scores.
        kernel: "paper" or "cgmh" (search), or "exact" (sample).
        generator: Which models propose words: "forward", "backward", "both" or "masked".
        target: A causal model that decides: "smollm2", a hub name, a folder or a .gguf file.
        context: Text that the sentence follows; needs a causal model.
        temperature: Below 1 for likelier text, above 1 for more varied text.
        soft: Soft scores: ``prefer``, ``prefer_length``, ``penalise_repetition``.
        style: The kind of text that the infiller writes, one of those that it was trained on.
        particles: Sentences that the infiller writes to choose from.

    ``num_candidates``, ``num_scored`` and ``power`` (1 / temperature) are old names, which a later release removes.
    """
    candidates = _renamed("num_candidates", num_candidates, "candidates", candidates)
    scored = _renamed("num_scored", num_scored, "scored", scored)
    if power is not None:
        warnings.warn("power is now temperature (1 / power)", DeprecationWarning, stacklevel=2)
    shaping = Shaping(power_of(temperature) if power is None else power, tuple(soft), context, style)
    found = pack if isinstance(pack, Pack) else opened(pack)
    if recipe is None:
        recipe = (recipes.default(found) if target is None else recipes.own(found)).name
    given = Overrides(candidates, scored, kernel, generator, target, particles)
    writer = system(recipe).override(given).open(found, shaping)
    writer.reopen = (
        load,
        {
            "pack": str(found.folder),
            "recipe": recipe,
            "candidates": candidates,
            "scored": scored,
            "kernel": kernel,
            "generator": generator,
            "target": target,
            "context": context,
            "temperature": 1 / shaping.power,
            "soft": tuple(soft),
            "style": style,
            "particles": particles,
        },
    )
    return writer


def _renamed(old_name: str, old: int | None, name: str, given: int | None) -> int | None:
    if old is None:
        return given
    warnings.warn(f"{old_name} is now {name}", DeprecationWarning, stacklevel=3)
    return old
