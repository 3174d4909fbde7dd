"""CGMH as a system: its drafts, its traces, and that it is another system than L-MCMC with deletion."""

import pytest

import redraft
from redraft.errors import InputError
from redraft.models.pack import Pack
from redraft.sentence import Action, Constraints
from redraft.writer import Settings

_INPUTS = [Constraints(("dog",)), Constraints(("dog", "sea")), Constraints(template="The ___ sees ___ .")]


def test_drafts_meet_their_constraints_and_do_not_depend_on_the_batch(tiny_pack: Pack) -> None:
    writer = redraft.load(tiny_pack, "cgmh", candidates=10)
    settings = Settings(steps=60, seed=3)
    together = [drafts[0] for drafts in writer.write_many(_INPUTS, settings, numbers=[4, 7, 9])]
    for number, constraints, draft in zip([4, 7, 9], _INPUTS, together, strict=True):
        assert draft.constraints_met
        ((alone,),) = writer.write_many([constraints], settings, numbers=[number])
        assert alone.text == draft.text
        assert [step.words for step in alone.trace] == [step.words for step in draft.trace]
    taken = {revision.action for draft in together for revision in draft.trace if revision.accepted}
    assert taken == {Action.REPLACE, Action.INSERT, Action.DELETE}


def test_it_takes_200_steps_and_is_not_l_mcmc_with_deletion(tiny_pack: Pack) -> None:
    settings = Settings(seed=1)
    (one,), (other,) = (
        redraft.load(tiny_pack, name, candidates=10).write(_INPUTS[1], settings) for name in ("cgmh", "l-mcmc-deletion")
    )
    assert one.steps == 200
    assert "kernel:cgmh" in one.signature
    assert [step.words for step in one.trace] != [step.words for step in other.trace]


def test_actions_are_drawn_equally_often(tiny_pack: Pack) -> None:
    constraints = Constraints(("dog", "sea", "park", "apple"))
    (draft,) = redraft.load(tiny_pack, "cgmh", candidates=10).write(constraints, Settings(steps=600, seed=1))
    actions = [revision.action for revision in draft.trace]
    shares = {action: actions.count(action) / len(actions) for action in set(actions)}
    assert all(share == pytest.approx(1 / 3, abs=0.12) for share in shares.values())


def test_samples_are_drawn_with_the_exact_kernel(tiny_pack: Pack) -> None:
    samples = redraft.load(tiny_pack, "cgmh", candidates=5).sample(_INPUTS[0], num=3, burn_in=5, thin=1, seed=0)
    assert len(samples.draws) == 3


@pytest.mark.parametrize(("recipe", "options"), [("cgmh", {"target": "x"}), ("smollm2-mcmc", {"kernel": "cgmh"})])
def test_a_causal_target_is_refused(tiny_pack: Pack, recipe: str, options: dict[str, str]) -> None:
    with pytest.raises(InputError, match="leave the target out"):
        redraft.load(tiny_pack, recipe, **options)  # type: ignore[arg-type]
