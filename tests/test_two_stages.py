"""A causal target over the pack's LSTM models: thinned candidates, tries, lazy scoring, contexts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redraft
from redraft import recipes
from redraft.assemble import build
from redraft.errors import InputError
from redraft.models.causal import reader as causal
from redraft.models.pack import Pack
from redraft.models.precision import PRECISION
from redraft.numerics import log_sum
from redraft.revise import lazy
from redraft.revise.accept import paper_log_ratio
from redraft.revise.candidates import ScoredCandidates
from redraft.revise.kernels import Site, ThinningKernel
from redraft.revise.lazy import undecided_by_paper
from redraft.sampler import Chain, Sampler
from redraft.sentence import Action, Constraints
from redraft.target import prefer
from redraft.writer import Settings, Shaping

_INPUTS = (Constraints(keywords=("dog", "park")), Constraints(template="The ___ sees ___ ."))


@pytest.fixture(scope="module")
def target(causal_folder: Path) -> Path:
    return causal_folder


def _sampler(pack: Pack, target: Path, name: str, **options: object) -> Sampler:
    recipe = recipes.recipe(name, num_candidates=12, target=str(target))
    return build(replace(recipe, **options), pack, Shaping(0.15, (prefer("river", 2.0),)))  # type: ignore[arg-type]


def _sentences(sampler: Sampler, steps: int = 25) -> list[tuple[str, ...]]:
    chains = [Chain(constraints, np.random.default_rng(i)) for i, constraints in enumerate(_INPUTS)]
    states, visited = sampler.init(chains), []
    for _ in range(steps):
        states = [state for state, _ in sampler.step(chains, states)]
        visited += [state.sentence.words for state in states]
    return visited


@pytest.mark.parametrize("num_scored", [None, 5])
@pytest.mark.parametrize("name", ["l-mcmc", "l-mcmc-deletion"])
def test_lazy_scoring_draws_what_full_scoring_draws(tiny_pack, target, monkeypatch, name, num_scored) -> None:  # type: ignore[no-untyped-def]
    sampler = _sampler(tiny_pack, target, name, num_scored=num_scored)
    read: list[int] = []
    run = sampler.target.scorer.run  # type: ignore[attr-defined]
    monkeypatch.setattr(
        sampler.target.scorer, "run", lambda rows: read.extend(len(r.tokens) for r in rows) or run(rows)
    )
    monkeypatch.setattr(lazy, "_AT_ONCE", 0)
    monkeypatch.setattr(causal, "_KEPT", 0)
    lazily = _sentences(sampler)
    num_lazily = sum(read)
    read.clear()
    sampler._is_lazy = False
    assert _sentences(sampler) == lazily
    assert len(set(lazily)) > 8  # the chains went somewhere
    assert num_lazily < sum(read)


@given(st.data())
def test_nothing_that_is_left_out_can_matter(data: st.DataObject) -> None:
    """Decisions from bounds are those from scores, wherever the search for them stops."""
    action = data.draw(st.sampled_from([Action.REPLACE, Action.INSERT, Action.DELETE]))
    number = st.floats(-30, 0)
    num = data.draw(st.integers(1, 6))
    scores = np.array(data.draw(st.lists(number, min_size=num, max_size=num)))
    bounds = np.minimum(0.0, scores + data.draw(st.lists(st.floats(0, 20), min_size=num, max_size=num)))
    noise = np.array(data.draw(st.lists(st.floats(-2, 4), min_size=num, max_size=num)))
    log_old, log_level = data.draw(number), data.draw(st.floats(-8, 0))
    final = bounds == scores
    order = data.draw(st.permutations(range(num)))
    while open_ := undecided_by_paper(action, bounds, final, noise, log_old, log_level):
        assert not final[open_].any()
        chosen = min(open_, key=order.index)
        bounds[chosen], final[chosen] = scores[chosen], True

    def decision(known: np.ndarray) -> tuple[bool, int | None]:
        without = float(known[-1]) if action is Action.DELETE else None
        among = known[:-1] if action is Action.DELETE else known
        accepted = log_level < paper_log_ratio(action, log_old, among, without)
        return accepted, int((known + noise).argmax()) if accepted and action is not Action.DELETE else None

    assert decision(bounds) == decision(scores)


def test_thinning_draws_in_proportion_and_puts_nothing_back() -> None:
    cheap = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    candidates = ScoredCandidates(tuple("abcd"), np.zeros(4), {word: i for i, word in enumerate("abcd")}, cheap, 0.0)
    site = Site(Constraints(keywords=("x",)).start(), Action.INSERT, 0, candidates)
    rng = np.random.default_rng(0)
    pairs = [ThinningKernel(2).plan(site, rng).words for _ in range(4000)]
    assert all(len(set(pair)) == 2 for pair in pairs)
    p = np.exp(cheap)
    both = p[0] * p[1] / (1 - p[0]) + p[1] * p[0] / (1 - p[1])
    assert np.mean([pair == ("a", "b") for pair in pairs]) == pytest.approx(both, abs=0.025)
    assert ThinningKernel(9).plan(site, rng).words == tuple("abcd")
    assert log_sum(cheap) == pytest.approx(0)


@pytest.mark.parametrize("kernel", ["paper", "exact"])
def test_a_writer_with_a_causal_target(tiny_pack: Pack, target: Path, kernel: str) -> None:
    writer = redraft.load(str(tiny_pack.folder), target=str(target), candidates=10, scored=4, kernel=kernel)
    settings = Settings(steps=12, seed=3)
    draft = writer.generate("dog", "park", settings=settings)
    assert draft.constraints_met
    assert "candidates:4 of 10" in draft.signature
    assert draft.text == writer.generate("dog", "park", settings=settings).text
    nll = -writer.sampler.read([_chain()], [_chain().constraints.start()])[0].log_prob
    assert nll > 0


def test_an_exact_chain_has_a_target_in_single_precision(
    tiny_pack: Pack, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "bfloat16")
    for kernel, expected in (("paper", "bfloat16"), ("exact", "float32")):
        writer = redraft.load(str(tiny_pack.folder), target=str(target), kernel=kernel)
        assert writer.sampler.target.scorer.precision == expected


def _chain() -> Chain:
    return Chain(_INPUTS[0], np.random.default_rng(0))


def test_a_context_changes_the_target(tiny_pack: Pack, target: Path) -> None:
    folder = str(tiny_pack.folder)
    plain, after = (redraft.load(folder, target=str(target), context=context) for context in ("", "The old house:"))
    start = _chain().constraints.start()
    scores = [writer.sampler.read([_chain()], [start])[0].log_prob for writer in (plain, after)]
    assert scores[0] != pytest.approx(scores[1], abs=1e-3)
    assert "after 'The old house:'" in after.generate("dog", settings=Settings(steps=1, seed=0)).signature


def test_what_does_not_go_together(tiny_pack: Pack, target: Path) -> None:
    folder = str(tiny_pack.folder)
    with pytest.raises(InputError, match="only a causal model reads a context"):
        redraft.load(folder, context="A story:")
    with pytest.raises(InputError, match="give a target as well"):
        redraft.load(folder, scored=5)
    with pytest.raises(InputError, match="cannot score 60"):
        redraft.load(folder, target=str(target), scored=60)


def test_steps_are_the_recipes_unless_given(tiny_pack: Pack, target: Path) -> None:
    assert redraft.load(str(tiny_pack.folder)).complete(Settings()).steps == 200
    writer = redraft.load(str(tiny_pack.folder), target=str(target))
    assert writer.complete(Settings()).steps == writer.recipe.steps < 200
    assert writer.complete(Settings(steps=0)).steps == 0


def test_a_deletion_does_not_make_a_banned_phrase(tiny_pack: Pack, target: Path) -> None:
    constraints = Constraints(("dog", "sea"), ban=("dog sea",))
    for options in ({}, {"target": str(target), "candidates": 10, "scored": 5}):
        writer = redraft.load(str(tiny_pack.folder), "l-mcmc-deletion", **options)
        (draft,) = writer.write(constraints, Settings(60, seed=3))
        after = [one.words for one in draft.trace if one.accepted]
        first = next(i for i, words in enumerate(after) if constraints.has_no_banned_phrase(words))
        assert all(constraints.has_no_banned_phrase(words) for words in after[first:])
        assert any(one.action is Action.DELETE for one in draft.trace)


def test_nothing_to_draw_leaves_nothing_open() -> None:
    for action in Action:
        nothing = np.empty(0)
        assert undecided_by_paper(action, nothing, nothing.astype(bool), nothing, -1.0, -1.0) == []


def test_a_first_draft_is_a_sentence(tiny_pack: Pack, target: Path) -> None:
    writer = redraft.load(str(tiny_pack.folder), target=str(target), candidates=10)
    asked: list[int] = []

    def observe(step: int, *_: object) -> bool:
        asked.append(step)
        return True

    (draft,) = writer.write(_INPUTS[0], Settings(steps=2, seed=1), observe)
    assert asked == [0, 1]
    assert f"2 after beam {writer.recipe.beam}|" in draft.signature
    (stopped,) = writer.write(_INPUTS[0], Settings(seed=1), lambda *_: False)
    assert len(stopped.words) > 5  # a sentence before the target is asked
    assert stopped.steps == 0


def test_grid_beam_search_revises_nothing_and_is_the_targets_own(tiny_pack: Pack, target: Path) -> None:
    settings = Settings(seed=0)
    folder = str(tiny_pack.folder)
    by_pack, by_target = (redraft.load(folder, "gbs", target=one) for one in (None, str(target)))
    drafts = {writer: writer.generate("dog", "sea", settings=settings) for writer in (by_pack, by_target)}
    for draft in drafts.values():
        assert draft.constraints_met
        assert (draft.steps, draft.trace) == (0, ())
    assert drafts[by_target].text != drafts[by_pack].text
    bare = by_pack.generate("dog", "sea", settings=Settings(seed=0, time_limit=1e-9))  # no time for a search
    assert bare.words == ("dog", "sea", ".")
