"""Training the classifiers of the paper's ablations of the synthetic data, as overlays of a pack.

Each is trained as the classifier of the pack was, by its card, but on a third of the sentences: with both methods of
corruption, without the random one, and without the masked language model.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from redraft.errors import InputError
from redraft.files import replacing
from redraft.models.pack import MANIFEST, Base, Pack, open_pack
from redraft.predict.classifier import CLASSIFIER, OVER_READINGS, load_classifier, read_config
from redraft.predict.xlnet import XlnetConfig
from redraft.synthesis.dataset import LoadMaskedLm, SynthesisConfig, synthesise
from redraft.synthesis.masked_lstm import PackMaskedLm
from redraft.synthesis.masked_xlnet import PackMaskedXlnet
from redraft.synthesis.recipes import RECIPES
from redraft.synthesis.words import Method
from redraft.training.classifier import ClassifierTraining, train_classifier
from redraft.training.classifier_data import read_labelled
from redraft.training.classifier_task import score_sets
from redraft.training.label_scores import LabelScores
from redraft.training.pack import held_out_sets
from redraft.training.parts import Additions, add_over

_TAKEN = ("forward", "backward")  # parts of the base; others may change without a change of the ablations
_VALIDATION = "validation"
_BOTH = (Method.RANDOM, Method.MASKED_LM)


class Ablation(NamedTuple):
    """What is left out. Its pack is named after that of the full classifier, with ``name`` at the end."""

    name: str
    methods: tuple[Method, ...]
    about: str


ABLATIONS = (
    Ablation("third", _BOTH, "a third of the sentences"),
    Ablation("third-masked", (Method.MASKED_LM,), "a third of the sentences, without the random method"),
    Ablation("third-random", (Method.RANDOM,), "a third of the sentences, without the masked-LM method"),
)


def choose_ablations(names: Sequence[str]) -> list[Ablation]:
    """The ablations with these names; all if none are given."""
    known = {one.name: one for one in ABLATIONS}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"there is no ablation {unknown[0]!r}; choose some of: {', '.join(known)}")
    return [one for one in ABLATIONS if not names or one.name in names]


@dataclass(frozen=True)
class _Original:
    """How the classifier of a pack was trained, by its card."""

    pack: Pack

    @cached_property
    def _card(self) -> Mapping[str, Any]:
        card = self.pack.card.get(CLASSIFIER, {})
        try:
            # All that is used, so that an incomplete card is refused before any work.
            _ = card["data"]["num"], card["data"]["masked_lm"]["kind"], card["training"]["learning_rate"]
            _ = card["training"]["words"], card["data"]["counts"]["train"]["label"], self._recipes(card)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"the card of pack {self.pack.name} does not say how its classifier was trained ({error}); choose a "
                "pack whose classifier is from redraft train classifier, with the masked-LM method"
            ) from error
        return dict(card)

    @staticmethod
    def _recipes(card: Mapping[str, Any]) -> list[Any]:
        known = {recipe.name: recipe for some in RECIPES.values() for recipe in some}
        return [known[name] for name in card["data"]["recipes"]]

    def data(self, corpus: Path, num: int | None) -> SynthesisConfig:
        """The synthetic data of the classifier, but fewer sentences: a third, unless a number is given."""
        data = self._card["data"]
        longest = data["max_words"]
        return SynthesisConfig(
            corpus,
            data["seed"],
            num or max(1, data["num"] // 3),
            data["num_valid"],
            recipes=tuple(self._recipes(self._card)),
            max_words=longest if isinstance(longest, int) else longest["train"],
        )

    @property
    def masked_lm(self) -> LoadMaskedLm:
        """The model whose words corrupted the sentences."""
        source = str(self.pack.folder)
        is_lstm = "LSTM" in self._card["data"]["masked_lm"]["kind"]
        return PackMaskedLm(source) if is_lstm else PackMaskedXlnet(source)

    def training(self, data: Path) -> ClassifierTraining:
        """The training of the classifier, on other data."""
        config = read_config(self.pack.part_folder(CLASSIFIER))
        if config.get("model_type") != OVER_READINGS:
            raise InputError(f"the classifier of pack {self.pack.name} does not read the states of its LSTM models")
        counts, given = self._card["data"]["counts"]["train"], self._card["training"]
        return ClassifierTraining(
            data,
            readers=self.pack,
            shape={key: value for key, value in asdict(XlnetConfig.read(config)).items() if key != "vocab_size"},
            epochs=given["words"] / (sum(counts["label"].values()) - counts["sentences"]),  # the start has a label
            learning_rate=given["learning_rate"],
            seed=given["seed"],
        )


def train_ablations(
    base: Pack,
    corpus: Path,
    out: Path,
    names: Sequence[str] = (),
    *,
    num: int | None = None,
    batch_pieces: int = 8192,
    workers: int = 1,
    say: Callable[[str], None] = lambda _: None,
    quiet: bool = False,
) -> list[Pack]:
    """Make the data, train the classifiers and write the overlays ``out / "packs" / NAME``, or resume.

    A finished step is not done again. ``num`` is the number of training sentences of each.
    """
    original, chosen = _Original(base), choose_ablations(names)
    folders = [out / "packs" / f"{base.folder.resolve().name}-{one.name}" for one in chosen]
    Base.of(base.only(_TAKEN)).open(folders[0])  # hours before they are written
    config = original.data(corpus, num)
    original.training(out)
    made = []
    for ablation, folder in zip(chosen, folders, strict=True):
        if not (folder / MANIFEST).exists():
            data, source = out / ablation.name / "data", out / ablation.name / CLASSIFIER
            say(f"{ablation.name}: making {config.num:,} sentences")
            load = original.masked_lm
            synthesise(replace(config, methods=ablation.methods), data, load_masked_lm=load, workers=workers)
            say(f"{ablation.name}: training the classifier")
            training = replace(original.training(data), batch_pieces=batch_pieces)
            train_classifier(training, source, quiet=quiet)
            validation = _validation(config, out, load, workers)
            _write_scores(source, _score(source, base, validation))
            say(f"{ablation.name}: writing the pack")
            shutil.rmtree(folder, ignore_errors=True)  # left by a kill
            about = {"description": f"Pack {base.name} with a classifier that was trained on {ablation.about}."}
            add_over(base, folder, Additions(classifier=source), held_out_sets(corpus), _TAKEN, about)
        made.append(open_pack(str(folder)))
    return made


def _validation(config: SynthesisConfig, out: Path, load: LoadMaskedLm, workers: int) -> Path:
    """Validation sentences of both methods, on which all classifiers are scored alike."""
    synthesise(replace(config, num=1, methods=_BOTH), out / _VALIDATION, load_masked_lm=load, workers=workers)
    return out / _VALIDATION


def _score(source: Path, base: Pack, data: Path) -> dict[str, LabelScores]:
    classifier = load_classifier(source, pack=base)
    found = read_labelled(data, "valid", classifier.splitter)
    return score_sets(classifier.network, found, classifier.splitter.padding)


def _write_scores(source: Path, scores: Mapping[str, LabelScores]) -> None:
    """Put scores into the card of a classifier, in place of those on the validation sentences of its own methods."""
    path = source / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    content = {**card, "scores": {name: part.as_json() for name, part in scores.items()}}
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
