"""sep-B/F and asyn-B/F (Mou et al., 2015) as systems: backward and forward beam search from one keyword."""

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.assemble import Models
from redraft.baselines.grid_beam import BeamWriter
from redraft.draft.halves import HalvesBeam
from redraft.drafts import Draft, Observer, Settings
from redraft.errors import ConstraintError, InputError
from redraft.models.lstm.files import load_network
from redraft.models.lstm.half_reader import HalfReader
from redraft.models.lstm.start_states import START_STATES, load_half_reader, ordinary_start
from redraft.models.pack import Pack
from redraft.recipes import HalvesRecipe, Overrides
from redraft.sentence import Constraints
from redraft.target import Target
from redraft.writer import Shaping, Writer, WritingSystem

_OTHERS = "recipes that can: infiller, gbs, cgmh, l-mcmc-c"


def _refusal(recipe: str, constraints: Constraints) -> str | None:
    """Why a recipe that takes one keyword cannot write."""
    if constraints.template is not None:
        return f"recipe {recipe} cannot fill a template; {_OTHERS}"
    if (num := len(constraints.keywords)) > 1:
        return f"recipe {recipe} takes one keyword, not {num}; {_OTHERS}"
    if len(constraints.keywords[0].split()) > 1:
        return f"recipe {recipe} takes one word, not the phrase {constraints.keywords[0]!r}; {_OTHERS}"
    return None


class HalvesWriter(BeamWriter):
    """Backward and forward beam search from one keyword. The search is deterministic."""

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        """Drafts for several inputs, one search after the other."""
        for constraints in inputs:
            if (why := _refusal(self.recipe.name, constraints)) is not None:
                raise ConstraintError(why)
        return super().write_many(inputs, settings, numbers=numbers, observe=observe)

    def at_temperature(self, temperature: float) -> "HalvesWriter":
        """Refuse: the search takes the probabilities as they are."""
        raise InputError(f"recipe {self.recipe.name} has no temperature; leave it out")


@dataclass(frozen=True)
class HalvesSystem(WritingSystem):
    """The LSTM models of a pack write from the keyword to the beginning and to the end of the sentence."""

    recipe: HalvesRecipe

    @property
    def needs(self) -> list[str]:
        """Both LSTM models, and the states from which they start inside a sentence."""
        return ["forward and backward LSTM models", START_STATES]

    def missing(self, pack: Pack) -> list[str]:
        """The parts that the pack lacks."""
        return [part for part in ("forward", "backward", START_STATES) if part not in pack.parts]

    def refusal(self, constraints: Constraints) -> str | None:
        """Everything but one keyword is refused."""
        return _refusal(self.recipe.name, constraints)

    def override(self, given: Overrides) -> "HalvesSystem":
        """The same system: it takes no values."""
        if given.target is not None:
            raise InputError(f"recipe {self.recipe.name} searches with the LSTM models of a pack; gbs takes a target")
        self.recipe.override(given)
        return self

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        """The writer, with the models of a pack."""
        shaping.refuse_style(self.recipe)
        if shaping.context or shaping.soft or shaping.power != 1:
            raise InputError(f"recipe {self.recipe.name} has no context, soft scores or temperature; gbs has")
        backward, target = load_half_reader(pack, "backward"), Target(Models(pack).forward)
        beam = HalvesBeam(
            backward,
            load_half_reader(pack, "forward") if self.recipe.is_separate else _whole_reader(pack),
            self.recipe.width,
            is_separate=self.recipe.is_separate,
            plain=backward.vocabulary.plain,
        )
        return HalvesWriter(pack, self.recipe, target, beam)


def _whole_reader(pack: Pack) -> HalfReader:
    """The forward LSTM, which reads from the beginning of the sentence."""
    network, vocabulary = load_network(pack, "forward")
    return HalfReader(network, vocabulary, ordinary_start(network), opens=True)
