"""The library as a notebook user meets it: plain arguments, values that show themselves, errors of our own."""

import inspect
import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import redraft
from redraft import Constraints, Draft, Order, Settings
from redraft.errors import ConstraintError, InputError
from redraft.models.pack import Pack
from redraft.revise.rewrite import Rewrite
from redraft.systems import SYSTEMS


@pytest.fixture(scope="module")
def writer(tiny_pack: Pack) -> redraft.Writer:
    return redraft.load(tiny_pack, candidates=10)


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in redraft.__all__:
        found = getattr(redraft, name)
        assert name in dir(redraft)
        assert name == "__version__" or inspect.getdoc(found)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = redraft.nothing


def test_importing_redraft_needs_no_heavy_library() -> None:
    script = "import redraft, sys; dir(redraft); print({'torch', 'numpy'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "set()"


def test_plain_arguments_are_settings(writer: redraft.Writer) -> None:
    given = Settings(steps=12, seed=3)
    assert writer.generate("dog", "sea", steps=12, seed=3) == replace(
        writer.generate("dog", "sea", settings=given), seconds=pytest.approx(0, abs=60)
    )
    assert writer.generate("dog", settings=given, seed=4).signature.endswith("seed:4")
    assert writer.generate("dog", steps=10**8, time_limit=0.1, seed=1).steps < 10**8


def test_num_gives_a_list_and_nothing_else_does(writer: redraft.Writer) -> None:
    drafts = writer.generate("dog", "ball", seed=1, num=3, temperature=0.8, steps=15)
    assert len({draft.text for draft in drafts}) == 3
    assert all("^1.25" in draft.signature for draft in drafts)
    assert isinstance(writer.generate("dog", seed=1, num=1, steps=2), list)
    assert isinstance(writer.generate("dog", steps=2, settings=Settings(num=3)), Draft)
    assert len(writer.infill("The dog ___ .", seed=1, num=2, steps=10)) == 2


def test_a_list_of_keywords_is_the_keywords(writer: redraft.Writer) -> None:
    apart = writer.generate("dog", "old man", steps=8, seed=1)
    assert writer.generate(["dog", "old man"], steps=8, seed=1).text == apart.text
    assert Constraints(["dog", "old man"]) == Constraints(("dog", "old man"))


def test_infill_takes_min_words(writer: redraft.Writer) -> None:
    draft = writer.infill("The dog ___ .", min_words=7, steps=80, seed=1)
    assert draft.constraints_met
    assert len(draft.words) > 7


def test_an_order_can_be_given_by_name() -> None:
    assert Constraints(("a", "b"), order="any") == Constraints(("a", "b"), order=Order.ANY)
    assert Constraints(("a", "b"), order="any").met_by("B before a .".split())
    for wrong in ("backwards", None, 1):
        with pytest.raises(ConstraintError, match="order must be 'given' or 'any'"):
            Constraints(("a",), order=wrong)  # type: ignore[arg-type]


def test_a_temperature_changes_the_target_and_not_the_writer(writer: redraft.Writer, tiny_pack: Pack) -> None:
    cold = writer.generate("dog", "sea", temperature=0.5, steps=20, seed=2)
    assert (
        cold.text
        == redraft.load(tiny_pack, candidates=10, temperature=0.5).generate("dog", "sea", steps=20, seed=2).text
    )
    assert "^2" not in writer.generate("dog", steps=1, seed=2).signature
    for wrong in (0, -1, float("nan"), float("inf"), "hot", True):
        with pytest.raises(InputError, match="the temperature must be a number above 0"):
            writer.generate("dog", temperature=wrong)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 1.5}, {"steps": "3"}, {"steps": float("nan")}, {"steps": True}, {"chains": None}, {"chains": 2.0},
        {"num": None}, {"num": -1}, {"seed": 1.0}, {"seed": -3}, {"seed": "x"}, {"time_limit": float("nan")},
        {"time_limit": "1"}, {"time_limit": -1.0}, {"checkpoints": (1.5,)},
    ],
)  # fmt: skip
def test_settings_of_a_wrong_type_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"keywords": None}, {"keywords": (None,)}, {"keywords": (1, 2)}, {"template": 3}, {"ban": None}, {"ban": (3,)},
        {"endings": None}, {"min_words": 1.5}, {"min_words": float("nan")}, {"min_words": -1}, {"max_words": -1},
        {"max_words": "9"}, {"max_words": True}, {"max_words": 0},
    ],
)  # fmt: skip
def test_constraints_of_a_wrong_type_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConstraintError):
        Constraints(**{"keywords": ("dog",) if "template" not in wrong else (), **wrong})  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    assert Settings(steps=np.int64(3), seed=np.int64(1)).steps == 3  # type: ignore[arg-type]
    assert Constraints(("a",), min_words=np.int64(4)).min_words == 4  # type: ignore[arg-type]


def test_a_draft_shows_itself(writer: redraft.Writer) -> None:
    draft = writer.generate("dog", "<b>", steps=12, seed=1)
    assert str(draft) == draft.text
    shown = draft._repr_html_()
    assert "<mark>dog</mark>" in shown.lower()
    assert "<b>&lt;b&gt;</b>" not in shown.split("<details>")[0]
    assert "&lt;" in shown
    assert f"in {len(draft.trace)} steps" in shown
    for trace in (False, True):
        given = draft.to_dict(trace=trace)
        assert json.loads(json.dumps(given, allow_nan=False)) == given
    assert "trace" not in draft.to_dict()
    assert len(draft.to_dict(trace=True)["trace"]) == 12


def test_a_draft_shows_its_rewrites() -> None:
    made = (
        Rewrite(1, ("a", "<i>"), ("the", "old"), 0.5, True, ("b",)),
        Rewrite(1, ("c",), ("this",), -np.inf, False, ("b",)),
    )
    draft = Draft("A b.", ("a", "b", "."), 1.0, 2, 0.1, True, "seed:1", rewrites=made)
    assert "<s>a &lt;i&gt;</s> <b>the old</b>" in draft._repr_html_()
    assert "this" not in draft._repr_html_()
    assert [one["log_ratio"] for one in draft.to_dict(trace=True)["rewrites"]] == [0.5, None]


@pytest.mark.parametrize("recipe", ["l-mcmc", "gbs"])
def test_a_writer_can_be_pickled(tiny_pack: Pack, recipe: str) -> None:
    soft = [redraft.prefer("river", 2.0), redraft.prefer_length(8), redraft.penalise_repetition(1.0)]
    writer = redraft.load(tiny_pack, recipe, candidates=5, soft=soft, temperature=0.5)
    settings = Settings(SYSTEMS[recipe].recipe.steps and 10, seed=1)
    again = pickle.loads(pickle.dumps(writer)).generate("dog", settings=settings)
    assert (again.text, again.signature) == (
        (first := writer.generate("dog", settings=settings)).text,
        first.signature,
    )
    warm = pickle.loads(pickle.dumps(writer.at_temperature(2.0)))
    assert "^0.5" in warm.generate("dog", settings=settings).signature


def test_samples_come_from_the_exact_kernel(writer: redraft.Writer, tiny_pack: Pack) -> None:
    constraints = Constraints(["dog"], max_words=6)
    samples = writer.sample(constraints, num=5, burn_in=5, thin=1, chains=2, seed=1)
    assert len(samples.draws) == 10
    exact = redraft.load(tiny_pack, candidates=10, kernel="exact")
    again = exact.sample(constraints, num=5, burn_in=5, thin=1, chains=2, seed=1)
    assert [draw.text for draw in samples.draws] == [draw.text for draw in again.draws]
    with pytest.raises(InputError, match="no chains to sample from"):
        redraft.load(tiny_pack, "gbs").sample(constraints)


def test_explain_says_where_a_draft_is_weak() -> None:
    writer = redraft.load(recipe="l-mcmc-c")
    found = writer.explain("the the dog runs .", keywords=["dog"])
    assert found.probabilities.shape == (3, 6)
    assert ((found.probabilities >= 0) & (found.probabilities <= 1)).all()
    assert found.probabilities[[0, 2], 2].tolist() == [0, 0]  # a keyword is neither replaced nor deleted
    assert "dog" in str(found)
    assert "<td" in found._repr_html_()
    json.dumps(found.to_dict())
    with pytest.raises(InputError, match="'cat' is not a word of the draft"):
        writer.explain("the dog .", keywords=["cat"])


def test_a_pack_without_a_classifier_explains_nothing(writer: redraft.Writer) -> None:
    with pytest.raises(InputError, match="has no classifier"):
        writer.explain("the dog .")


def test_old_names_still_work_and_warn(tiny_pack: Pack) -> None:
    with pytest.warns(DeprecationWarning, match="num_candidates is now candidates"):
        old = redraft.load(tiny_pack, num_candidates=7)
    assert "candidates:7" in old.generate("dog", steps=1, seed=0).signature
    with pytest.warns(DeprecationWarning, match="power is now temperature"):
        assert "^2" in redraft.load(tiny_pack, power=2.0).generate("dog", steps=1, seed=0).signature
    with pytest.warns(DeprecationWarning, match="banned is now ban"):
        constraints = Constraints(("dog",), banned=("cat",))
    assert constraints == Constraints(("dog",), ban=("cat",))
    with pytest.warns(DeprecationWarning, match="now Constraints.ban"):
        assert constraints.banned == ("cat",)
