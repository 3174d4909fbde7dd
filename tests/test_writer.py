import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import ConstraintError, InputError, PackError
from redraft.models.pack import Pack
from redraft.sampler import Chain, Sampler, State, Step
from redraft.sentence import Constraints, num_words
from redraft.writer import Settings, Writer


@pytest.fixture(scope="module")
def writer(tiny_pack: Pack) -> Writer:
    return redraft.load(str(tiny_pack.folder), candidates=10)


_SHORT = Settings(steps=25, seed=1)


def test_a_sentence_with_the_words_in_it(writer: Writer) -> None:
    draft = writer.generate("dog", "ball", settings=_SHORT)
    assert draft.constraints_met
    assert draft.words.index("dog") < draft.words.index("ball")
    assert draft.text == writer.generate("dog", "ball", settings=_SHORT).text
    assert "seed:1" in draft.signature
    assert len(draft.trace) == draft.steps == 25


@pytest.mark.parametrize("word", ["can't", "U.S.", "fine-tuning", "naïve", "Zyxgard", "2,900", "doctor's", "O'Neill"])
def test_odd_words_are_kept_verbatim(writer: Writer, word: str) -> None:
    shown = writer.generate("dog", word, settings=_SHORT).text
    assert f" {word}" in shown


def test_a_template_keeps_its_known_parts(writer: Writer) -> None:
    draft = writer.infill("The doctor sees ___ in the morning .", settings=_SHORT)
    assert draft.text.startswith("The doctor sees")
    assert draft.text.endswith(" in the morning.")
    assert len(draft.words) > 7


def test_the_draft_is_the_best_that_was_visited(writer: Writer) -> None:
    constraints = Constraints(keywords=("river", "house"))
    (draft,) = writer.write(constraints, Settings(steps=60, seed=2))
    long_enough = [r for r in draft.trace if num_words(r.words) >= constraints.preferred_words]
    assert draft.nll == pytest.approx(min(revision.nll for revision in long_enough))


def test_several_drafts_differ(writer: Writer) -> None:
    drafts = writer.write(Constraints(keywords=("dog",)), Settings(steps=40, num=4, seed=0))
    assert len({draft.text for draft in drafts}) == 4
    assert all(draft.constraints_met for draft in drafts)


def test_spares_come_after_the_drafts(writer: Writer) -> None:
    few, many = (
        writer.write(Constraints(keywords=("dog",)), Settings(steps=40, num=2, spares=spares, seed=0))
        for spares in (0, 5)
    )
    assert few[0].text == many[0].text
    assert len({draft.text for draft in many}) == len(many) == 7
    assert not writer.matches_signature(many[0].signature, Settings(steps=40, num=2))


def test_more_chains_are_no_worse(writer: Writer) -> None:
    constraints = Constraints(keywords=("dog",))
    one, many = (writer.write(constraints, Settings(30, chains=n, seed=0))[0] for n in (1, 4))
    assert (-min(7, num_words(many.words)), many.nll) <= (-min(7, num_words(one.words)), one.nll)


def test_inputs_do_not_depend_on_their_neighbours(writer: Writer) -> None:
    inputs = [Constraints(keywords=("dog",)), Constraints(template="___ house ."), Constraints(keywords=("sea", "a"))]
    together = writer.write_many(inputs, _SHORT)
    alone = [writer.write_many([one], _SHORT, numbers=[i])[0] for i, one in enumerate(inputs)]
    assert [drafts[0].text for drafts in together] == [drafts[0].text for drafts in alone]


def test_min_words_bans_and_order(writer: Writer) -> None:
    draft = writer.generate(
        "park", "dog", order="any", ban=["the", "every day"], min_words=8, max_words=14, settings=Settings(120, seed=4)
    )
    assert draft.constraints_met
    assert "the" not in [word.lower() for word in draft.words]


def test_what_was_not_reached_is_said(writer: Writer) -> None:
    assert not writer.generate("dog", min_words=12, settings=Settings(steps=2, seed=0)).constraints_met


def test_no_steps_give_the_words_themselves(writer: Writer) -> None:
    assert writer.generate("dog", "sea", settings=Settings(steps=0)).text == "Dog sea."


def test_an_observer_can_stop_the_work(writer: Writer) -> None:
    count = itertools.count()
    draft = writer.write(Constraints(keywords=("dog",)), Settings(50, seed=0), lambda *_: next(count) < 5)[0]
    assert draft.steps == 5


def test_the_time_limit_ends_the_work(writer: Writer) -> None:
    draft = writer.write(Constraints(keywords=("dog",)), Settings(steps=10**9, seed=0, time_limit=0.2))[0]
    assert draft.steps < 10**9


def test_a_time_limit_is_looked_at_between_chains_of_a_step(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    plain = Sampler.step

    def step(self: Sampler, chains: Sequence[Chain], states: Sequence[State]) -> list[Step]:
        sizes.append(len(chains))
        return plain(self, chains, states)

    monkeypatch.setattr(Sampler, "step", step)
    settings = Settings(steps=2, chains=100, seed=0)
    whole = writer.write(Constraints(keywords=("dog",)), settings)[0]
    assert sizes == [100, 100]
    limited = writer.write(Constraints(keywords=("dog",)), replace(settings, time_limit=60))[0]
    assert sizes[2:] == [40, 40, 20] * 2
    assert limited.text == whole.text


@pytest.mark.parametrize("most", [{"chains": 1001}, {"num": 10**9}, {"spares": 1001}])
def test_absurd_sizes_are_refused(most: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be at most 1,000, not"):
        Settings(**most)  # type: ignore[arg-type]


def test_what_is_no_soft_score_is_refused(tiny_pack: Pack) -> None:
    with pytest.raises(InputError, match="soft scores are made by prefer"):
        redraft.load(tiny_pack, "l-mcmc", soft=[3])  # type: ignore[list-item]


def test_absurd_numbers_of_candidates_are_refused(tiny_pack: Pack) -> None:
    with pytest.raises(InputError, match="candidates must be at most 1,000, not 1,000,000"):
        redraft.load(tiny_pack, "l-mcmc", candidates=1_000_000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": -1},
        {"chains": 0},
        {"num": 0},
        {"time_limit": 0.0},
        {"time_limit": math.nan},
        {"seed": -1},
        {"seed": 1.5},
        {"checkpoints": 3},
        {"checkpoints": None},
        {"until_settled": None},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_a_lone_ban_is_one_word(writer: Writer) -> None:
    with pytest.raises(ConstraintError, match="'dog' is banned and required"):
        writer.generate("dog", ban="dog")
    with pytest.raises(ConstraintError, match="order must be 'given' or 'any', not 'backwards'"):
        writer.generate("dog", order="backwards")


def test_errors_are_typed(writer: Writer) -> None:
    with pytest.raises(ConstraintError):
        writer.generate()
    with pytest.raises(PackError):
        redraft.load("no such pack")
    with pytest.raises(InputError, match="l-mcmc-deletion"):
        redraft.load(recipe="none")


def test_a_checkpoint_is_what_a_shorter_run_gives(writer: Writer) -> None:
    checkpoints = (1, 4, 9, 12)
    (draft,) = writer.write(Constraints(("dog", "sea")), Settings(12, seed=3, checkpoints=checkpoints))
    shorter = [writer.write(Constraints(("dog", "sea")), Settings(steps, seed=3))[0] for steps in checkpoints]
    assert [(one.steps, one.text, one.nll) for one in draft.earlier] == [(s.steps, s.text, s.nll) for s in shorter]
    assert draft.signature == shorter[-1].signature


def test_a_pass_is_as_many_steps_as_words_are_missing(writer: Writer) -> None:
    lengths = [(2,), (3, 1), (1,)]
    templates = ["the dog ___ the ball .", "___ finds ___ .", "a child likes ___"]
    told = [Constraints(template=one, lengths=some) for one, some in zip(templates, lengths, strict=True)]
    together = writer.write_many(told, Settings(passes=4, seed=2))
    for number, (template, some, (draft,)) in enumerate(zip(templates, lengths, together, strict=True)):
        steps = Settings(4 * sum(some), seed=2)
        (alone,) = writer.write_many([Constraints(template=template)], steps, numbers=[number])[0]
        assert (draft.text, draft.steps) == (alone.text, 4 * sum(some))
        assert [step.words for step in draft.trace] == [step.words for step in alone.trace]
        assert "steps:4 passes" in draft.signature
        assert writer.matches_signature(draft.signature, Settings(passes=4))
        assert not writer.matches_signature(draft.signature, Settings(passes=5))
        assert not writer.matches_signature(draft.signature, Settings(4))
    (none,) = writer.write(told[0], Settings(passes=0, seed=2))
    assert none.words == ("the", "dog", "the", "ball", ".")


def test_passes_over_unknown_lengths_are_refused(writer: Writer, tiny_pack: Pack) -> None:
    known = Constraints(template="the dog ___ .", lengths=(2,))
    for unknown in (Constraints(template="the dog ___ ."), Constraints(["dog"])):
        with pytest.raises(ConstraintError, match="give a template with lengths, or a number of steps instead"):
            writer.write_many([known, unknown], Settings(passes=3))
    with pytest.raises(InputError, match="give a number of steps or of passes, not both"):
        Settings(steps=3, passes=3)
    with pytest.raises(InputError, match="passes must be"):
        Settings(passes=-1)
    with pytest.raises(InputError, match="recipe gbs makes no passes over blanks; recipes that do: l-mcmc-c"):
        redraft.load(tiny_pack, "gbs").write(known, Settings(passes=3))
    gibbs = redraft.load(tiny_pack, "bayesian-mcmc")  # whose steps are passes
    one, other = (gibbs.write(known, settings)[0] for settings in (Settings(3, seed=1), Settings(passes=3, seed=1)))
    assert (one.text, one.signature) == (other.text, other.signature)


def test_passes_on_the_command_line(tiny_pack: Pack, tmp_path: Path) -> None:
    lines = [{"template": "the dog ___ .", "lengths": [2]}, {"template": "the dog ___ ."}]
    (tmp_path / "inputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["infill", "--pack", str(tiny_pack.folder), "--recipe", "l-mcmc", "--passes", "3", "--seed", "1"]
    done = CliRunner().invoke(cli, [*arguments, "--input", str(tmp_path / "inputs.jsonl")])
    assert done.exit_code == 2
    assert "line 2" in done.stderr
    assert "a number of steps instead of passes" in done.stderr
    (draft,) = map(json.loads, done.stdout.splitlines())
    assert draft["steps"] == 6
    both = CliRunner().invoke(cli, [*arguments, "--steps", "3", "--input", str(tmp_path / "inputs.jsonl")])
    assert isinstance(both.exception, InputError)
