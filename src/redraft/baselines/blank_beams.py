"""FLM, BLM and F+B LM as systems: beam search that fills blanks of known lengths."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from redraft.baselines.grid_beam import BeamWriter
from redraft.blanks import Layout, told
from redraft.draft.blank_beam import BlankBeam
from redraft.draft.fillable import RandomFilling
from redraft.drafts import Draft, Observer, Settings
from redraft.errors import ConstraintError, InputError
from redraft.models.lstm.files import load_lstm, load_network
from redraft.models.lstm.half_reader import HalfReader
from redraft.models.lstm.network import LstmState
from redraft.models.lstm.start_states import ordinary_start
from redraft.models.pack import Pack
from redraft.models.xlnet.network import ReadingOrder
from redraft.recipes import BlankBeamRecipe, BlankRecipe, Overrides, refusal_of_list, refusal_without_lengths
from redraft.sampler import Chain
from redraft.sentence import Constraints, Sentence
from redraft.target import Target
from redraft.writer import Shaping, Writer, WritingSystem


def prepared(recipe: str, inputs: Sequence[Constraints]) -> list[Constraints]:
    """The inputs of a recipe that must be told the lengths, which are then part of the constraints."""
    for constraints in inputs:
        if (why := refusal_without_lengths(recipe, constraints)) is not None:
            raise ConstraintError(why)
    return [told(constraints) for constraints in inputs]


def blank_beam(pack: Pack, order: ReadingOrder, width: int) -> BlankBeam[LstmState]:
    """A beam search with an LSTM of a pack."""
    network, vocabulary = load_network(pack, order.value)
    is_backward = order is ReadingOrder.BACKWARD
    return BlankBeam(HalfReader(network, vocabulary, ordinary_start(network), backward=is_backward), width)


def random_filling(pack: Pack) -> RandomFilling:
    """Random words of the forward LSTM of a pack, each in its plain form."""
    reader = load_lstm(pack, "forward")
    return RandomFilling(reader.words, reader.proposable & reader.vocabulary.is_plain)


class BlankBeams:
    """One or more searches for each sentence. The best sentences of each are found."""

    def __init__(self, beams: Sequence[BlankBeam[LstmState]], start: RandomFilling):
        self._beams, self._start = beams, start
        self.width = beams[0].width

    def ranked(self, chain: Chain, num: int, in_time: Callable[[], bool] = lambda: True) -> list[Sentence]:
        """The best ``num`` sentences of each search; random words if none finds any that is allowed."""
        layout = Layout.of(chain.constraints)
        found = [one for beam in self._beams if in_time() for one in beam.find(layout, chain.constraints)[:num]]
        return found or [self.unsearched(chain)]

    def unsearched(self, chain: Chain) -> Sentence:
        """Blanks filled with random words."""
        return self._start.fill(Layout.of(chain.constraints), chain.constraints, chain.rng)


class BlankBeamWriter(BeamWriter):
    """Beam search for templates whose lengths are known. The search is deterministic."""

    def __init__(self, pack: Pack, recipe: BlankBeamRecipe, target: Target, beams: BlankBeams):
        super().__init__(pack, recipe, target, beams)
        self._beams = beams

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, one search after the other."""
        return super().write_many(prepared(self.recipe.name, inputs), settings, numbers=numbers, observe=observe)

    def at_temperature(self, temperature: float) -> "BlankBeamWriter":
        """Refuse: the search takes the probabilities as they are."""
        raise InputError(f"recipe {self.recipe.name} has no temperature; leave it out")

    def _unsearched(self, chain: Chain) -> Sentence:
        return self._beams.unsearched(chain)


class ToldSystem(WritingSystem):
    """A system that must be told the lengths of blanks."""

    recipe: BlankRecipe

    @property
    def orders(self) -> tuple[ReadingOrder, ...]:
        """The orders in which the LSTM models that it needs read."""
        return (ReadingOrder.FORWARD,)

    @property
    def needs(self) -> list[str]:
        """The LSTM models."""
        plural = "s" if len(self.orders) > 1 else ""
        return [f"{' and '.join(order.value for order in self.orders)} LSTM model{plural}"]

    def missing(self, pack: Pack) -> list[str]:
        """The models that the pack lacks."""
        return [order.value for order in self.orders if order.value not in pack.parts]

    def refusal(self, constraints: Constraints) -> str | None:
        """Keywords are refused, and blanks of unknown length."""
        name = self.recipe.name
        return refusal_without_lengths(name, constraints) or refusal_of_list(name, constraints)

    def refuse_shaping(self, shaping: Shaping) -> None:
        """Raise where a search for the likeliest sentence is to be shaped."""
        shaping.refuse_style(self.recipe)
        if shaping.context or shaping.soft or shaping.power != 1:
            raise InputError(f"recipe {self.recipe.name} has no context, soft scores or temperature; leave them out")


@dataclass(frozen=True)
class BlankBeamSystem(ToldSystem):
    """The LSTM models of a pack fill blanks from left to right, from right to left, or both."""

    recipe: BlankBeamRecipe

    @property
    def orders(self) -> tuple[ReadingOrder, ...]:
        """The orders in which it searches, and that in which it scores."""
        return tuple(dict.fromkeys((ReadingOrder.FORWARD, *self.recipe.orders)))

    def override(self, given: Overrides) -> "BlankBeamSystem":
        """The same system with the values that are given."""
        return replace(self, recipe=self.recipe.override(given))

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """The writer, with the models of a pack."""
        self.refuse_shaping(shaping)
        beams = [blank_beam(pack, order, self.recipe.width) for order in self.recipe.orders]
        target = Target(load_lstm(pack, "forward"))
        return BlankBeamWriter(pack, self.recipe, target, BlankBeams(beams, random_filling(pack)))
