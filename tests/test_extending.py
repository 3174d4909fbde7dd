"""How to extend redraft. A system, a generator of candidates and a metric of one's own: a class each, and one line."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from click.testing import CliRunner

import redraft
from redraft import Constraints, Draft, Settings, Writer, assemble, recipes, systems
from redraft.app.cli import cli
from redraft.assemble import Models
from redraft.drafts import Observer
from redraft.evaluation.evaluate import figures
from redraft.evaluation.metric import Bootstrap, Metric, mean
from redraft.models.base import Reader, Slot, Words
from redraft.models.pack import Pack
from redraft.recipes import Recipe
from redraft.revise.candidates import Candidates
from redraft.sentence import Sentence
from redraft.writer import Shaping, WritingSystem

# --- a system ---------------------------------------------------------------------------------------------------------


class BareWriter(Writer):
    """Writes the given words and nothing else."""

    def write_many(
        self,
        inputs: Sequence[Constraints],
        settings: Settings | None = None,
        *,
        numbers: Sequence[int] | None = None,
        observe: Observer | None = None,
    ) -> list[list[Draft]]:
        settings = settings or Settings()
        return [[self._draft(constraints, settings)] for constraints in inputs]

    def _draft(self, constraints: Constraints, settings: Settings) -> Draft:
        start = constraints.start()
        signature = self.signature(settings, settings.seed or 0)
        return Draft(start.text, start.words, 0.0, 0, 0.0, constraints.met_by(start.words), signature)

    def signature(self, settings: Settings, seed: int) -> str:
        return f"recipe:bare|seed:{seed}"


class BareSystem(WritingSystem):
    recipe = Recipe("bare", "the given words alone")

    def open(self, pack: Pack, shaping: Shaping) -> Writer:
        return BareWriter()


@pytest.fixture
def _bare_system() -> Iterator[None]:
    systems.register(BareSystem())  # the one line
    yield
    del systems.SYSTEMS["bare"]


@pytest.mark.usefixtures("_bare_system")
def test_a_system(tiny_pack: Pack, tmp_path) -> None:  # type: ignore[no-untyped-def]
    writer = redraft.load(tiny_pack, "bare")
    assert str(writer.generate("dog", "sea")) == "Dog sea."
    assert writer.matches_signature(writer.generate("dog", seed=3).signature, Settings())
    pack = ["--pack", str(tiny_pack.folder)]
    assert "bare" in CliRunner().invoke(cli, ["recipes", *pack]).output
    (tmp_path / "in").write_text("dog\nsea\n")
    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    assert CliRunner().invoke(cli, ["generate", "--recipe", "bare", *pack, *files]).exit_code == 0
    assert len((tmp_path / "out").read_text().splitlines()) == 2


# --- a generator of candidates ----------------------------------------------------------------------------------------


class FixedCandidates:
    """The same few words everywhere."""

    readers: tuple[Reader, ...] = ()

    def __init__(self, words: Words):
        self._words = words

    def candidates(
        self,
        sentences: Sequence[Sentence],
        slots: Sequence[Slot],
        constraints: Sequence[Constraints],
        readings: Sequence[Sequence[object]],
    ) -> list[Candidates]:
        columns = {word: i for i, word in enumerate(self._words)}
        return [Candidates(self._words, np.zeros(len(columns)), columns) for _ in slots]


@pytest.fixture
def _fixed_generator() -> Iterator[None]:
    def build(models: Models, num: int) -> FixedCandidates:
        return FixedCandidates(("the", "old", "river")[:num])

    assemble.register_generator("fixed", build)  # the one line
    yield
    del recipes.GENERATORS["fixed"], assemble._BUILDERS["fixed"]


@pytest.mark.usefixtures("_fixed_generator")
@pytest.mark.parametrize("kernel", ["paper", "exact"])
def test_a_generator_of_candidates(tiny_pack: Pack, kernel: str) -> None:
    writer = redraft.load(tiny_pack, generator="fixed", kernel=kernel)
    draft = writer.generate("dog", "sea", steps=25, seed=1)
    assert set(draft.words) <= {"dog", "sea", "the", "old", "river", "."}
    assert len(draft.words) > 3
    assert "generator:fixed" in draft.signature


# --- a metric ---------------------------------------------------------------------------------------------------------


def commas(sentences: Sequence[Words]) -> Metric:
    """Commas in a sentence."""
    return mean("commas", "a sentence", [float(words.count(",")) for words in sentences])


def test_a_metric() -> None:
    (figure,) = figures([commas([("a", ",", "b", ","), ("c",), ("d",)])], Bootstrap(num_draws=50))  # the one line
    assert figure.value == pytest.approx(2 / 3)
    assert figure.low is not None
    assert figure.signature
