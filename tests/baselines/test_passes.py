"""Systems that fill blanks of known lengths, with the small trained LSTMs."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.blanks import Layout, told
from redraft.errors import ConstraintError, InputError
from redraft.models.pack import Pack
from redraft.recipes import TOLD
from redraft.sentence import Constraints
from redraft.systems import SYSTEMS, system
from redraft.writer import Settings

_RECIPES = [recipe.name for recipe in TOLD]
_PASSES = ["bayesian-mcmc", "tigs-random", "tigs-flm"]
_INPUTS = [
    Constraints(template="The ___{2} sees ___{1} ball ."),
    Constraints(template="___ likes an ___", lengths=[2, 4]),
    Constraints(template="___{3} Xylophone ___{2} can't ___{1} ."),
    Constraints(template="a child ___{4} .", ban=("the", "a child sees")),
    Constraints(template="___{6}"),
]


def _texts(pack: Pack, recipe: str, inputs: list[Constraints], numbers: list[int], seed: int = 3) -> list[str]:
    drafts = redraft.load(pack, recipe).write_many(inputs, Settings(steps=_steps(recipe), seed=seed), numbers=numbers)
    return [some[0].text for some in drafts]


def _steps(recipe: str) -> int | None:
    return 4 if recipe in _PASSES else None


@pytest.mark.parametrize("recipe", _RECIPES)
def test_lengths_and_given_words_are_kept(tiny_pack: Pack, recipe: str) -> None:
    drafts = redraft.load(tiny_pack, recipe).write_many(_INPUTS, Settings(steps=_steps(recipe), seed=1, num=2))
    for constraints, some in zip(_INPUTS, drafts, strict=True):
        layout = Layout.of(told(constraints))
        for draft in some:
            assert draft.constraints_met
            assert not told(constraints).unmet(draft.words)
            assert len(draft.words) == len(layout.words)
            assert all(given in (None, word) for given, word in zip(layout.words, draft.words, strict=True))


@pytest.mark.parametrize("recipe", _RECIPES)
def test_texts_depend_on_the_seed_and_not_on_the_batch(tiny_pack: Pack, recipe: str) -> None:
    numbers = [4, 7, 9, 11, 2]
    together = _texts(tiny_pack, recipe, _INPUTS, numbers)
    assert together == _texts(tiny_pack, recipe, _INPUTS, numbers)
    assert together == [
        _texts(tiny_pack, recipe, [one], [number])[0] for one, number in zip(_INPUTS, numbers, strict=True)
    ]
    if recipe == "tigs-random":
        assert together != _texts(tiny_pack, recipe, _INPUTS, numbers, seed=4)


@pytest.mark.parametrize("recipe", ["tigs-random", "tigs-flm"])
def test_the_objective_never_rises_and_the_search_ends_when_two_passes_change_nothing(
    tiny_pack: Pack, recipe: str
) -> None:
    writer = redraft.load(tiny_pack, recipe)
    settings = Settings(seed=5, checkpoints=(1, 2, 10, 20))
    for constraints, (draft,) in zip(_INPUTS, writer.write_many(_INPUTS, settings), strict=True):
        nlls = [revision.nll for revision in draft.trace]
        assert all(after <= before + 1e-5 for before, after in pairwise(nlls))
        assert nlls[-1] == pytest.approx(draft.nll, abs=1e-5)
        num = len(Layout.of(told(constraints)).missing)
        passes = [draft.trace[i : i + num] for i in range(0, len(draft.trace), num)]
        changed = [any(revision.accepted for revision in one) for one in passes]
        assert len(passes) == draft.steps
        assert draft.steps == 20 or changed[-3:] in ([True, False, False], [False, False])
        assert [one.steps for one in draft.earlier] == [1, 2, 10, 20]  # also after it ended
        assert draft.earlier[-1].text == draft.text


def test_gradient_search_lowers_the_nll_and_greedy_words_are_a_better_start(tiny_pack: Pack) -> None:
    ends, starts = {}, {}
    for recipe in ("tigs-random", "tigs-flm"):
        writer = redraft.load(tiny_pack, recipe)
        for steps, into in ((0, starts), (None, ends)):
            drafts = writer.write_many(_INPUTS, Settings(steps=steps, seed=0))
            into[recipe] = sum(some[0].nll for some in drafts)
    assert ends["tigs-random"] < starts["tigs-random"] - 5
    assert ends["tigs-flm"] <= starts["tigs-flm"]
    assert starts["tigs-flm"] < starts["tigs-random"]


def test_bayesian_mcmc_keeps_the_best_sentence_that_it_visits(tiny_pack: Pack) -> None:
    (draft,) = redraft.load(tiny_pack, "bayesian-mcmc").write(_INPUTS[0], Settings(seed=2))
    assert draft.steps == 20
    assert len(draft.trace) == 20 * 3
    assert all(revision.new is not None and revision.action.value == "replace" for revision in draft.trace)
    assert draft.start is not None
    assert draft.nll <= min(revision.nll for revision in draft.trace) + 1e-5
    assert "passes:20|candidates:50" in draft.signature


def test_the_better_of_two_beams_wins(tiny_pack: Pack) -> None:
    settings = Settings(seed=0)
    flm, blm, both = (redraft.load(tiny_pack, name).write_many(_INPUTS, settings) for name in ("flm", "blm", "fb-lm"))
    for one, other, (best,) in zip(flm, blm, both, strict=True):
        assert best.nll == pytest.approx(min(one[0].nll, other[0].nll), abs=1e-5)
        assert best.text in (one[0].text, other[0].text)


@pytest.mark.parametrize("recipe", _RECIPES)
def test_what_it_cannot_write_is_refused_before_any_work(recipe: str) -> None:
    for arguments, constraints, why in (
        (["generate", "dog", "sea"], Constraints(("dog", "sea")), "takes no keywords"),
        (["infill", "The ___ dog"], Constraints(template="The ___ dog"), "must be told how many words"),
        (["infill", "The ___{2} dog ___"], Constraints(template="The ___{2} dog ___"), "must be told how many words"),
    ):
        refusal = str(system(recipe).refusal(constraints))
        assert why in refusal
        others = refusal.partition("recipes that ")[2].partition(": ")[2].split(", ")
        if not constraints.fixes_lengths:
            assert all(SYSTEMS[other].refusal(constraints) is None for other in others)
        run = CliRunner().invoke(cli, [*arguments, "--recipe", recipe, "--pack", "none"])  # a pack that is not there
        assert why in str(run.exception)
    assert system(recipe).refusal(Constraints(template="The ___ dog", lengths=[1])) is None


@pytest.mark.parametrize("recipe", [name for name in SYSTEMS if name not in (*_RECIPES, "infiller")])
def test_others_refuse_templates_that_fix_a_length(recipe: str) -> None:
    fixed, free = Constraints(template="The ___{2} dog ."), Constraints(template="The ___ dog .", lengths=[2])
    refusal = str(system(recipe).refusal(fixed))
    if recipe not in ("sep-bf", "asyn-bf"):
        assert all(SYSTEMS[one].refusal(fixed) is None for one in refusal.partition("that can: ")[2].split(", "))
        assert system(recipe).refusal(free) is None


def test_a_default_that_cannot_keep_to_lengths_refuses_them() -> None:
    run = CliRunner().invoke(cli, ["infill", "The ___{2,3} dog ."])  # without SmolLM2 the default is no infiller
    assert "cannot keep to a number of words" in str(run.exception)
    assert system("infiller").refusal(Constraints(template="The ___{2,3} dog .")) is None


def test_lengths_beside_a_template_change_nothing_for_those_that_are_not_told(tiny_pack: Pack) -> None:
    writer, settings = redraft.load(tiny_pack, "l-mcmc"), Settings(steps=30, seed=1)
    bare, given = Constraints(template="The ___ sees ___"), Constraints(template="The ___ sees ___", lengths=[1, 9])
    assert writer.write(bare, settings)[0].text == writer.write(given, settings)[0].text
    with pytest.raises(ConstraintError, match="any number of words"):
        writer.infill("The ___{2} sees .")


def test_a_file_of_a_test_set_is_written(tiny_pack: Pack, tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_text("The dog sees the red ball near the river.\nA child finds an apple, but not today!\n")
    files = ["--from", str(source), "--out", str(tmp_path / "set.jsonl"), "--ratio", "50", "--num", "2"]
    CliRunner().invoke(cli, ["testset", "infill", *files], catch_exceptions=False)
    given = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    arguments = ["infill", "--pack", str(tiny_pack.folder), "--input", str(tmp_path / "set.jsonl"), "--trace"]
    for recipe in ("fb-lm", "bayesian-mcmc", "l-mcmc"):
        shown = CliRunner().invoke(cli, [*arguments, "--recipe", recipe, "--seed", "1"], catch_exceptions=False).stdout
        for one, line in zip(given, map(json.loads, shown.splitlines()), strict=True):
            assert line["input"] == one
            assert recipe == "l-mcmc" or len(line["words"]) == len(redraft.text.tokenise(one["reference"]))
            assert bool(line["trace"]) is (recipe != "fb-lm")


@pytest.mark.parametrize("recipe", [name for name in _RECIPES if name != "bayesian-mcmc"])
def test_options_without_effect_are_refused(tiny_pack: Pack, recipe: str) -> None:
    for options in ({"target": "smollm2"}, {"context": "Then"}, {"temperature": 0.5}, {"style": "News"}):
        with pytest.raises(InputError, match=r"leave|styles"):
            redraft.load(tiny_pack, recipe, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="temperature"):
        redraft.load(tiny_pack, recipe).at_temperature(0.5)


def test_bayesian_mcmc_has_a_temperature_and_soft_scores(tiny_pack: Pack) -> None:
    settings = Settings(seed=0, steps=5)
    cold = redraft.load(tiny_pack, "bayesian-mcmc", temperature=0.2).write(_INPUTS[4], settings)[0]
    assert "^5" in cold.signature
    wanting = redraft.load(tiny_pack, "bayesian-mcmc", soft=[redraft.prefer("park", 30.0)])
    assert "park" in wanting.write(_INPUTS[4], settings)[0].words
    with pytest.raises(InputError, match="context"):
        redraft.load(tiny_pack, "bayesian-mcmc", context="Then")


@pytest.mark.parametrize("recipe", _RECIPES)
def test_a_time_limit_leaves_a_sentence(tiny_pack: Pack, recipe: str) -> None:
    writer = redraft.load(tiny_pack, recipe)
    for constraints, (draft,) in zip(_INPUTS, writer.write_many(_INPUTS, Settings(time_limit=1e-9)), strict=True):
        assert not told(constraints).unmet(draft.words)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"template": "a ___{4,2} b"}, "is from 1 to 1,000"),
        ({"template": "a ___{0} b"}, "is from 1 to 1,000"),
        ({"template": "a ___{} b"}, "is from 1 to 1,000"),
        ({"template": "a ___ b", "lengths": [1, 2]}, "one for each blank"),
        ({"template": "a ___{2} b", "lengths": [2]}, "one for each blank"),
        ({"keywords": ["a"], "lengths": [2]}, "one for each blank"),
        ({"template": "a ___ b", "lengths": [0]}, "at least 1"),
        ({"template": "a ___ b", "lengths": 2}, "several numbers"),
        ({"template": "a ___{9} b", "max_words": 5}, "needs 11 places"),
        ({"template": "a ___{3} b", "min_words": 9}, "does not fit"),
    ],
)
def test_lengths_that_make_no_sense_are_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ConstraintError, match=why):
        Constraints(**given)  # type: ignore[arg-type]


def test_neighbouring_blanks_are_one() -> None:
    constraints = Constraints(template="a ___{2}___{3} b")
    assert told(constraints).limit == 7
    assert constraints.met_by("a 1 2 3 4 5 b".split())
    assert not constraints.met_by("a 1 2 3 4 b".split())
    assert Constraints(template="a ___ b ___{2} c", endings=()).met_by("a 1 b 2 b 3 4 c".split())
