"""The paper's systems and ours, as values. Only this file and the results know their nicknames."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from redraft import checks
from redraft.blanks import knows_lengths
from redraft.errors import InputError
from redraft.models.causal.infiller import INFILLER
from redraft.models.pack import Pack
from redraft.models.pull import is_pulled
from redraft.models.xlnet.network import ReadingOrder
from redraft.predict.classifier import CLASSIFIER
from redraft.predict.learned import Learned
from redraft.revise.kernels import KernelName, PaperKernel
from redraft.sentence import Action, Constraints

PULLED = "smollm2"  # the target of the default recipe, once it is pulled
_NUM_SCORED, _CAUSAL_STEPS = 4, 10  # for a target that costs a hundred times as much as the LSTM models
_PARTICLES, _PARTICLES_OF_TEMPLATES = 48, 32
_PARTICLES_PER_WORD = 12  # the fewer words are given, the more commonplace is the best of many
MOST_PARTICLES = 1024  # of one input
_MOST_CANDIDATES = 1000  # a step with these takes a tenth of a second
_BEAM = 10  # a search of a second makes a sentence of the keywords, which the steps then improve

# The generators of candidates, and the orders in which their models read: the paper's FLM, BLM, FLM x BLM, and one
# model that sees both sides of the slot (MLM). ``assemble.register_generator`` adds others.
GENERATORS: dict[str, tuple[ReadingOrder, ...]] = {
    "forward": (ReadingOrder.FORWARD,),
    "backward": (ReadingOrder.BACKWARD,),
    "both": (ReadingOrder.FORWARD, ReadingOrder.BACKWARD),
    "masked": (ReadingOrder.MASKED,),
}


class Family(enum.Enum):
    """Whose language models propose and decide. The classifier may be of another kind: they exchange words."""

    LSTM = "LSTM"
    XLNET = "XLNet"


@dataclass(frozen=True)
class Overrides:
    """Values that a user gives in place of those of a recipe; None keeps the recipe's."""

    num_candidates: int | None = None
    num_scored: int | None = None
    kernel: str | None = None
    generator: str | None = None
    target: str | None = None
    particles: int | None = None

    def __post_init__(self) -> None:
        if self.num_candidates is not None:
            checks.check_count("candidates", self.num_candidates, 1, most=_MOST_CANDIDATES)
        if self.num_scored is not None:
            checks.check_count("scored", self.num_scored, 1)
        if self.kernel is not None and self.kernel not in [known.value for known in KernelName]:
            raise InputError(f"there is no kernel {self.kernel!r}; choose paper, exact or cgmh")
        if self.generator is not None and self.generator not in GENERATORS:
            raise InputError(f"there is no generator {self.generator!r}; choose one of: {', '.join(GENERATORS)}")
        if self.particles is not None:
            checks.check_count("particles", self.particles, 1, most=MOST_PARTICLES)


@dataclass(frozen=True)
class Recipe:
    """What every system has: a name, a line that describes it, and its number of steps.

    ``target`` is a causal model that decides; with None a model of the pack decides.
    """

    name: str
    summary: str
    target: str | None = None
    steps: int = 0

    def override(self, given: Overrides) -> Self:
        """The recipe with the values that are given. Values that it does not have are ignored, except particles."""
        if given.particles is not None:
            raise InputError(f"recipe {self.name} has no particles; the recipe {INFILLER} has")
        return self if given.target is None else replace(self, target=given.target)


_PAPER_ACTIONS = frozenset({Action.REPLACE, Action.INSERT})


@dataclass(frozen=True)
class ChainRecipe(Recipe):
    """Chains of revisions: which models propose and decide, and which actions are taken."""

    steps: int = 200
    actions: frozenset[Action] = _PAPER_ACTIONS
    generator: str = "both"  # of candidates, one of GENERATORS
    num_candidates: int = 50
    kernel: KernelName = KernelName.PAPER
    learned: Learned | None = None  # what the prior takes from the classifier; None draws moves at random
    family: Family = Family.LSTM
    num_scored: int | None = None  # how many of the candidates a causal target scores; None for all
    beam: int = 0  # width of the beam search for a first draft; 0 starts from the bare words
    has_equal_actions: bool = False  # whether each action is equally likely, rather than each action and position

    @property
    def orders(self) -> list[ReadingOrder]:
        """The orders in which the language models read: that of the scorer, and those of the proposers."""
        return list(dict.fromkeys((ReadingOrder.FORWARD, *GENERATORS[self.generator])))

    def override(self, given: Overrides) -> Self:
        """The recipe with the values that are given."""
        chosen = self
        if given.target is not None and self.target is None:  # until now the pack decided, which costs less
            chosen = replace(chosen, num_scored=_NUM_SCORED, steps=_CAUSAL_STEPS, beam=_BEAM)
        chosen = super(ChainRecipe, chosen).override(given)
        if given.num_candidates is not None:
            chosen = replace(chosen, num_candidates=given.num_candidates)
        if given.kernel is not None:
            chosen = replace(chosen, kernel=KernelName(given.kernel))
        if given.generator is not None:
            chosen = replace(chosen, generator=given.generator)
        if given.num_scored is not None:
            if given.num_scored > chosen.num_candidates:
                raise InputError(f"of {chosen.num_candidates} candidates the target cannot score {given.num_scored}")
            if chosen.target is None:
                raise InputError("the pack's own model scores every candidate; give a target as well")
            chosen = replace(chosen, num_scored=given.num_scored)
        if chosen.num_scored is not None:
            if chosen.kernel is KernelName.CGMH:
                raise InputError("the kernel cgmh scores every candidate by a model of the pack; leave the target out")
            chosen = replace(chosen, num_scored=min(chosen.num_scored, chosen.num_candidates))
        return chosen


@dataclass(frozen=True)
class BeamRecipe(Recipe):
    """Grid beam search, nothing revised after it. A causal target searches with a narrower beam.

    A plain one adds no noise and chooses by the score of the whole sentence; otherwise by the score per word.
    """

    width: int = _BEAM
    is_plain: bool = False


@dataclass(frozen=True)
class HalvesRecipe(Recipe):
    """A backward and a forward beam search from one keyword, separately or the forward one after the backward one."""

    width: int = _BEAM
    is_separate: bool = True


@dataclass(frozen=True)
class BlankRecipe(Recipe):
    """Fills blanks whose numbers of words are known, with the LSTM models of a pack."""

    def override(self, given: Overrides) -> Self:
        """The recipe with the values that are given. No other model can decide."""
        if given.target is not None:
            raise InputError(f"recipe {self.name} works with the LSTM models of a pack; leave the target out")
        return super().override(given)


@dataclass(frozen=True)
class BlankBeamRecipe(BlankRecipe):
    """Beam search in each of these orders; the sentence with the lowest NLL under the forward model wins."""

    width: int = _BEAM
    orders: tuple[ReadingOrder, ...] = (ReadingOrder.FORWARD,)


@dataclass(frozen=True)
class PassRecipe(BlankRecipe):
    """Passes over the missing words, one word after the other. A step is a pass."""

    steps: int = 20
    num_candidates: int = 50

    def override(self, given: Overrides) -> Self:
        """The recipe with the values that are given."""
        chosen = super().override(given)
        return chosen if given.num_candidates is None else replace(chosen, num_candidates=given.num_candidates)


@dataclass(frozen=True)
class GibbsRecipe(PassRecipe):
    """Words are drawn among candidates by the forward model, which decides, and the backward one."""


@dataclass(frozen=True)
class GradientRecipe(PassRecipe):
    """Gradient descent in the embedding space, then the best of the nearest words. The values are its authors'."""

    num_candidates: int = 100
    rate: float = 10.0
    starts_greedy: bool = False  # with the forward model's greedy continuation, rather than random words


@dataclass(frozen=True)
class InfillerRecipe(Recipe):
    """A causal model that was trained to write into gaps writes particles; the best ones are the drafts."""

    particles: int = _PARTICLES
    particles_of_templates: int = _PARTICLES_OF_TEMPLATES  # fewer: the words around a blank leave less to choose from
    particles_per_word: int | None = _PARTICLES_PER_WORD  # for keywords; None for the same number for any

    def override(self, given: Overrides) -> Self:
        """The recipe with the values that are given."""
        chosen = super().override(replace(given, particles=None))
        num = given.particles
        if num is None:
            return chosen
        return replace(chosen, particles=num, particles_of_templates=num, particles_per_word=None)


CHAINS = (
    ChainRecipe("l-mcmc", "LSTM models, replace and insert, positions drawn at random"),
    ChainRecipe("l-mcmc-deletion", "the same with deletion: CGMH as the paper builds it", actions=PaperKernel.actions),
    ChainRecipe(
        "cgmh",
        "CGMH: LSTM models; replace, insert and delete equally often, by the acceptance of its authors",
        actions=PaperKernel.actions,
        num_candidates=100,  # as in its authors' program
        kernel=KernelName.CGMH,
        has_equal_actions=True,
    ),
    ChainRecipe("l-mcmc-c", "LSTM models guided by the classifier", learned=Learned.ALL),
    ChainRecipe("l-mcmc-c-positions", "the same without the prior for actions", learned=Learned.POSITIONS),
    ChainRecipe("l-mcmc-c-actions", "the same without the prior for positions", learned=Learned.ACTIONS),
    ChainRecipe("x-mcmc", "XLNet models, replace and insert, positions drawn at random", family=Family.XLNET),
    ChainRecipe("x-mcmc-c", "XLNet models guided by the classifier", learned=Learned.ALL, family=Family.XLNET),
    ChainRecipe(
        "smollm2-mcmc",
        "SmolLM2 decides, the LSTM models propose",
        target=PULLED,
        num_scored=_NUM_SCORED,
        steps=_CAUSAL_STEPS,
        beam=_BEAM,
    ),
    ChainRecipe(
        "smollm2-mcmc-c",
        "SmolLM2 decides, the LSTM models propose, the classifier guides",
        learned=Learned.ALL,
        target=PULLED,
        num_scored=_NUM_SCORED,
        steps=_CAUSAL_STEPS,
        beam=_BEAM,
    ),
)
GRID_BEAM = BeamRecipe("gbs", "grid beam search by the forward LSTM, nothing revised")
PLAIN_GRID_BEAM = BeamRecipe("gbs-plain", "the same as the paper runs it: no noise, best whole sentence", is_plain=True)
BEAMS = (GRID_BEAM, PLAIN_GRID_BEAM)
HALVES = (
    HalvesRecipe("sep-bf", "backward and forward beam search from one keyword, separately"),
    HalvesRecipe("asyn-bf", "the same, forward after backward", is_separate=False),
)
BLANK_BEAMS = (
    BlankBeamRecipe("flm", "blanks of known lengths filled by beam search, left to right"),
    BlankBeamRecipe("blm", "the same, right to left", orders=(ReadingOrder.BACKWARD,)),
    BlankBeamRecipe(
        "fb-lm",
        "the better of the two by the forward model",
        orders=(ReadingOrder.FORWARD, ReadingOrder.BACKWARD),
    ),
)
GIBBS = GibbsRecipe("bayesian-mcmc", "Bayesian MCMC: blanks of known lengths, random words replaced one by one")
GRADIENT = (
    GradientRecipe("tigs-random", "TIGS: blanks of known lengths, gradient search from random words"),
    GradientRecipe("tigs-flm", "the same from the words that the forward model chooses", starts_greedy=True),
)
TOLD: tuple[BlankRecipe, ...] = (*BLANK_BEAMS, GIBBS, *GRADIENT)  # they must be told the lengths of blanks
INFILLING = InfillerRecipe(INFILLER, "SmolLM2 trained to write into gaps; the best of its particles", target=PULLED)
RECIPES: dict[str, Recipe] = {one.name: one for one in (*CHAINS, *BEAMS, *HALVES, *TOLD, INFILLING)}


def refusal_of_lengths(name: str, constraints: Constraints) -> str | None:
    """Why a recipe that fills blanks with any number of words cannot write; None if the template fixes no length."""
    if not constraints.fixes_lengths:
        return None
    return f"recipe {name} cannot keep to a number of words in a blank; recipes that can: {_names((INFILLING, *TOLD))}"


def refusal_of_list(name: str, constraints: Constraints) -> str | None:
    """Why a recipe that may write any word cannot keep to a list; None if there is no list."""
    if constraints.allow is None:
        return None
    return f"recipe {name} cannot keep to a list of words; recipes that can: infiller, l-mcmc-c, x-mcmc-c, cgmh"


def refusal_without_lengths(name: str, constraints: Constraints) -> str | None:
    """Why a recipe that must be told the lengths of blanks cannot write; None if it can."""
    if constraints.template is None:
        return f"recipe {name} fills templates and takes no keywords; recipes that do: infiller, l-mcmc-c, cgmh, gbs"
    if not knows_lengths(constraints):
        return (
            f"recipe {name} must be told how many words each blank holds, as in ___{{3}}; recipes that need not: "
            "infiller, l-mcmc-c, cgmh, gbs"
        )
    return None


def _names(some: Sequence[Recipe]) -> str:
    return ", ".join(one.name for one in some)


def recipe(
    name: str,
    *,
    num_candidates: int | None = None,
    num_scored: int | None = None,
    kernel: str | None = None,
    generator: str | None = None,
    target: str | None = None,
) -> ChainRecipe:
    """The recipe of chains with a name, with the values that are given in place of its own."""
    found = RECIPES.get(name)
    if not isinstance(found, ChainRecipe):
        raise InputError(f"there is no recipe {name!r} of chains; choose one of: {', '.join(c.name for c in CHAINS)}")
    return found.override(Overrides(num_candidates, num_scored, kernel, generator, target))


def default(pack: Pack, *, has_target: bool | None = None) -> Recipe:
    """The best recipe for the models at hand. ``has_target`` says whether SmolLM2 is pulled, if not the disk."""
    if has_target is None:
        has_target = is_pulled(PULLED)
    return INFILLING if has_target and INFILLER in pack.parts else revising(pack, has_target=has_target)


def revising(pack: Pack, *, has_target: bool | None = None) -> ChainRecipe:
    """The best recipe that revises word by word."""
    if has_target is None:
        has_target = is_pulled(PULLED)
    chosen = own(pack)
    return _with_models(chosen.family, chosen.learned, PULLED) or chosen if has_target else chosen


def own(pack: Pack) -> ChainRecipe:
    """The best recipe that a pack has all the models for."""
    return _own(pack, Learned.ALL if CLASSIFIER in pack.parts else None)


def unguided(pack: Pack) -> ChainRecipe:
    """The same without the classifier. It asks for words but hardly ever for fewer, which makes a sampler slow."""
    return _own(pack, None)


def _own(pack: Pack, learned: Learned | None) -> ChainRecipe:
    found = _with_models(Family.LSTM if "forward" in pack.parts else Family.XLNET, learned, None)
    if found is None:
        raise ValueError(f"no recipe has a prior of {learned} and no causal target")
    return found


def _with_models(family: Family, learned: Learned | None, target: str | None) -> ChainRecipe | None:
    """The recipe with the paper's actions and these models."""
    wanted = (family, learned, target, _PAPER_ACTIONS)
    return next((one for one in CHAINS if (one.family, one.learned, one.target, one.actions) == wanted), None)


def gains_from_pulling(pack: Pack) -> bool:
    """Whether the default recipe would be a better one if SmolLM2 were pulled."""
    return not is_pulled(PULLED) and default(pack, has_target=True) != default(pack, has_target=False)
