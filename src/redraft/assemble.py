"""Builds models and samplers from recipes and packs."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path

import torch

from redraft.draft.grid_beam import GridBeam, Language
from redraft.errors import InputError, PackError
from redraft.models.base import Proposer
from redraft.models.causal.files import load_causal
from redraft.models.causal.infiller import INFILLER, Infiller, load_infiller
from redraft.models.causal.reader import CausalReader
from redraft.models.lstm.files import load_lstm
from redraft.models.pack import Pack, base_folders, find, open_pack
from redraft.models.xlnet.masked import XlnetMaskedReader
from redraft.models.xlnet.network import ReadingOrder
from redraft.models.xlnet.pack import load_readers, part_for
from redraft.models.xlnet.reader import XlnetReader
from redraft.predict.classifier import CLASSIFIER, Classifier, pack_classifier
from redraft.predict.learned import LearnedPrior
from redraft.predict.prior import EqualActionsPrior, Prior, UniformPrior
from redraft.recipes import GENERATORS, ChainRecipe, Family
from redraft.revise.candidates import CandidateGenerator, Candidates, CandidateSource, CheaplyScored, Merged
from redraft.revise.cgmh import CgmhKernel
from redraft.revise.kernels import ExactKernel, Kernel, KernelName, PaperKernel, ThinningKernel
from redraft.revise.tries import TriesKernel
from redraft.sampler import Sampler
from redraft.sentence import Action
from redraft.target import Target
from redraft.writer import Shaping

NEEDS_CAUSAL = "only a causal model reads a context; give one: --target smollm2 (once: redraft pull smollm2)"
_CAUSAL_BEAM = 2
_NOISE = 0.5  # makes the first drafts of different chains differ


def opened(name: str) -> Pack:
    """Open a pack. Its files are hashed once per process, and again if one of them changes."""
    folder = find(name).resolve()
    files = sorted(path for one in (folder, *base_folders(folder)) for path in one.rglob("*") if path.is_file())
    stats = [(str(path), path.stat()) for path in files]
    return _opened(folder, tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


@lru_cache(maxsize=8)
def _opened(folder: Path, files: tuple[tuple[str, int, int], ...]) -> Pack:
    return open_pack(str(folder))


class Models:
    """The models of an opened pack that a system needs. Each is loaded on first use and then shared.

    ``orders`` are all the orders in which an XLNet will read: one network serves several.
    """

    def __init__(
        self,
        pack: Pack,
        *,
        family: Family = Family.LSTM,
        orders: tuple[ReadingOrder, ...] = (ReadingOrder.FORWARD,),
        dtype: torch.dtype | None = None,
    ):
        self.pack, self._family, self._orders, self._dtype = pack, family, orders, dtype

    @cached_property
    def forward(self) -> Language:
        """The model that reads from left to right: it scores sentences, and proposes words."""
        if self._family is Family.LSTM:
            return load_lstm(self.pack, "forward")
        found = self._xlnets[ReadingOrder.FORWARD]
        if not isinstance(found, XlnetReader):
            raise PackError(f"the forward model of pack {self.pack.name} cannot score sentences; choose another pack")
        return found

    @cached_property
    def backward(self) -> Proposer:
        """The model that reads from right to left."""
        return load_lstm(self.pack, "backward") if self._family is Family.LSTM else self._xlnets[ReadingOrder.BACKWARD]

    @cached_property
    def masked(self) -> Proposer:
        """The model that reads both sides of a slot."""
        if self._family is Family.LSTM:
            raise InputError("an LSTM reads one side of a slot and cannot be a masked generator; try recipe x-mcmc")
        return self._xlnets[ReadingOrder.MASKED]

    @cached_property
    def classifier(self) -> Classifier:
        return pack_classifier(self.pack)

    def causal(self, location: str, context: str = "") -> CausalReader:
        """A causal model from outside the pack, which proposes the words of the forward model."""
        return load_causal(location, context=context, words=self.forward.words, dtype=self._dtype)

    def infiller(self, context: str = "") -> Infiller:
        return load_infiller(self.pack.part_folder(INFILLER), context=context)

    def proposer(self, order: ReadingOrder) -> Proposer:
        """The model that proposes words in an order."""
        if order is ReadingOrder.FORWARD:
            return self.forward
        return self.backward if order is ReadingOrder.BACKWARD else self.masked

    @cached_property
    def _xlnets(self) -> dict[ReadingOrder, XlnetReader | XlnetMaskedReader]:
        return load_readers(self.pack, self._orders, self._dtype)


def chain_models(recipe: ChainRecipe, pack: Pack) -> Models:
    """The models of a recipe."""
    if recipe.family is Family.LSTM and ReadingOrder.MASKED in recipe.orders:
        raise InputError(f"an LSTM sees one side of a slot: recipe {recipe.name} has no masked generator; try x-mcmc")
    return Models(pack, family=recipe.family, orders=tuple(recipe.orders), dtype=_precision(recipe))


def _precision(recipe: ChainRecipe) -> torch.dtype | None:
    """Samples need scores that do not depend on the batch; a search uses the fastest precision."""
    return torch.float32 if recipe.kernel is KernelName.EXACT else None


def build(recipe: ChainRecipe, pack: Pack, shaping: Shaping | None = None) -> Sampler:
    """The sampler of a recipe, with the models of a pack and a causal target if the recipe has one."""
    return build_chain(recipe, pack, shaping or Shaping())[0]


def build_chain(recipe: ChainRecipe, pack: Pack, shaping: Shaping) -> tuple[Sampler, GridBeam | None]:
    """The sampler of a recipe, and the search for first drafts; None if chains start from the given words alone."""
    models = chain_models(recipe, pack)
    candidates = _candidates(recipe, models)
    scorer: Language = models.forward
    if recipe.target is not None:
        causal = models.causal(recipe.target, shaping.context)
        scorer, candidates = causal, _with_causal(recipe, models, causal, candidates)
    elif shaping.context:
        raise InputError(NEEDS_CAUSAL)
    target, prior = Target(scorer, shaping.power, shaping.soft), _prior(recipe, models)
    is_paper = recipe.kernel is KernelName.PAPER
    if recipe.num_scored is None:
        one_stage = _KERNELS[recipe.kernel]()
        sampler = Sampler(target, candidates, prior, one_stage, _actions(recipe, one_stage.actions))
    else:
        two_stages = ThinningKernel(recipe.num_scored) if is_paper else TriesKernel(recipe.num_scored)
        scored = CheaplyScored(candidates, models.forward)
        sampler = Sampler(target, scored, prior, two_stages, _actions(recipe, two_stages.actions))
    # A context is unknown to the forward model of the pack, so the causal model searches then.
    searcher = scorer if shaping.context else models.forward
    return sampler, build_beam(searcher, recipe.beam, shaping) if recipe.beam else None


CandidateBuilder = Callable[[Models, int], CandidateSource[Candidates]]  # models, number of candidates
_BUILDERS: dict[str, CandidateBuilder] = {}


def register_generator(name: str, build: CandidateBuilder, orders: tuple[ReadingOrder, ...] = ()) -> None:
    """Add a generator of candidates of your own, for ``redraft.load(generator=name)``.

    ``orders`` are those in which the models that it uses read, besides forward.
    """
    GENERATORS[name], _BUILDERS[name] = orders, build


def _candidates(recipe: ChainRecipe, models: Models) -> CandidateSource[Candidates]:
    """The generator of a recipe: by default the product of the models that read in its orders."""
    if build := _BUILDERS.get(recipe.generator):
        return build(models, recipe.num_candidates)
    proposers = [models.proposer(order) for order in GENERATORS[recipe.generator]]
    return CandidateGenerator(proposers, recipe.num_candidates)


_KERNELS: dict[KernelName, Callable[[], Kernel[Candidates]]] = {
    KernelName.PAPER: PaperKernel,
    KernelName.EXACT: ExactKernel,
    KernelName.CGMH: CgmhKernel,
}


def _actions(recipe: ChainRecipe, of_kernel: frozenset[Action]) -> frozenset[Action]:
    """A sampler needs every action and its reverse; a search uses those of its recipe."""
    return of_kernel if recipe.kernel is KernelName.EXACT else recipe.actions


def build_beam(model: Language, width: int, shaping: Shaping, *, is_plain: bool = False) -> GridBeam:
    """A grid beam search. A causal model, which is expensive, gets a narrower beam.

    A plain search adds no noise and chooses by the score of the whole sentence.
    """
    width = _CAUSAL_BEAM if isinstance(model, CausalReader) else width
    return GridBeam(model, width, 0.0 if is_plain else _NOISE, shaping.soft, is_per_word=not is_plain)


def _with_causal(
    recipe: ChainRecipe, models: Models, causal: CausalReader, candidates: CandidateSource[Candidates]
) -> Merged:
    """The candidates of the pack's models, merged with those of the causal target."""
    backward = [models.backward] if ReadingOrder.BACKWARD in recipe.orders else []
    own = CandidateGenerator([causal, *backward], recipe.num_candidates)
    return Merged([candidates, own], recipe.num_candidates)


def _prior(recipe: ChainRecipe, models: Models) -> Prior:
    if recipe.learned is not None:
        return LearnedPrior(models.classifier, recipe.learned)
    return EqualActionsPrior() if recipe.has_equal_actions else UniformPrior()


def missing_models(recipe: ChainRecipe, pack: Pack) -> list[str]:
    """The models that a recipe needs but a pack lacks."""
    lacking = [] if recipe.learned is None or CLASSIFIER in pack.parts else [CLASSIFIER]
    if recipe.family is Family.XLNET:
        return [f"XLNet that reads {order.value}" for order in recipe.orders if part_for(pack, order) is None] + lacking
    return [order.value for order in recipe.orders if order.value not in pack.parts] + lacking
