"""Traces give the sentences again, and sentences are cut without losing a letter."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redraft
from redraft import text
from redraft.experiments.replay import given_words, replay, segments, start_of
from redraft.models.pack import Pack
from redraft.records import record
from redraft.sentence import Constraints, Order
from redraft.writer import Draft, Settings

_WORDS = st.lists(
    st.sampled_from(["the", "dog", "'s", ",", '"', "(", ")", "New", "York", "don", "'t", "."]), max_size=9
)


@given(_WORDS, st.data())
def test_segments_are_the_text(words: list[str], data: st.DataObject) -> None:
    marked = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    found = segments(words, marked)
    assert "".join(piece for piece, _ in found) == text.render(words)
    kept = "".join(word for word, mark in zip(text.surface(words), marked, strict=True) if mark)
    assert "".join(piece for piece, mark in found if mark).replace(" ", "") == kept
    assert all(left != right for (_, left), (_, right) in itertools.pairwise(found))


@pytest.mark.parametrize("recipe", ["l-mcmc", "l-mcmc-deletion"])
@pytest.mark.parametrize(
    "given_input",
    [
        {"keywords": ("dog", "old man")},
        {"keywords": ("dog", "sea", "park", "man"), "order": Order.ANY},
        {"template": "The ___ sees ___"},
    ],
)
def test_a_trace_gives_the_sentences_of_its_chain(tiny_pack: Pack, recipe: str, given_input: dict) -> None:
    constraints = Constraints(**given_input)
    (draft,) = redraft.load(str(tiny_pack.folder), recipe).write(constraints, Settings(40, seed=2))
    _check(draft, constraints)


def test_a_trace_sets_out_from_the_first_draft(tiny_pack: Pack, causal_folder: Path) -> None:
    constraints = Constraints(("dog", "sea"))
    writer = redraft.load(str(tiny_pack.folder), target=str(causal_folder), candidates=10, scored=5)
    (draft,) = writer.write(constraints, Settings(10, seed=2))
    assert draft.start != constraints.start()
    _check(draft, constraints)


def _check(draft: Draft, constraints: Constraints) -> None:
    told = json.loads(json.dumps(record(draft, trace=True)))
    moments = list(replay(start_of(told, constraints), told["trace"]))
    accepted = [revision for revision in draft.trace if revision.accepted]
    assert [moment.sentence.words for moment in moments[1:]] == [revision.words for revision in accepted]
    assert [moment.step for moment in moments[1:]] == [i for i, one in enumerate(draft.trace, 1) if one.accepted]
    assert draft.text in [moment.sentence.text for moment in moments]


def test_a_broken_trace_is_refused() -> None:
    step = {"action": "replace", "position": 7, "old": "a", "new": "b", "accepted": True, "nll": 1}
    for change in ({}, {"position": 0}, {"action": "dance"}):
        with pytest.raises(ValueError, match=r"."):
            list(replay(Constraints(("dog",)).start(), [{**step, **change}]))


def test_given_words_are_found_in_order() -> None:
    words = "Old men and old women see New York .".split()
    marked = given_words(words, Constraints(("old", "New York")))
    assert [word for word, mark in zip(words, marked, strict=True) if mark] == ["Old", "New", "York"]
    marked = given_words("The dog sees the sea .".split(), Constraints(template="The dog ___ sea ."))
    assert marked == [True, True, False, False, True, True]
