"""The pack that ships with the package, as a person meets it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import redraft
from redraft import recipes
from redraft.app.cli import cli
from redraft.app.synthesize import find_masked_lm
from redraft.errors import InputError
from redraft.experiments.metric_tables import TABLE1, TABLE2, TABLE4, TABLE6
from redraft.experiments.systems import SYSTEMS, absence
from redraft.models.causal.adapter import load_adapter
from redraft.models.causal.infiller import INFILLER
from redraft.models.pack import DEFAULT, open_pack
from redraft.predict.classifier import pack_classifier
from redraft.synthesis.labels import Label
from redraft.synthesis.masked_xlnet import PackMaskedXlnet
from redraft.training.ablations import ABLATIONS
from redraft.writer import Settings


def test_the_pack_is_whole_and_small_and_has_a_card() -> None:
    pack = open_pack(DEFAULT)
    assert pack.num_bytes < 60_000_000
    assert {"sources", "nll_per_word", "tokens_per_direction", "licence"} <= set(pack.card)
    for direction in ("forward", "backward"):
        scores = pack.card["nll_per_word"][direction]["held-out part of the corpus"]
        assert abs(scores["cost_of_int8"]) < 0.01


def test_a_classifier_guides_by_default_and_inserts_before_the_right_words() -> None:
    pack = open_pack(DEFAULT)
    assert recipes.own(pack).name == "l-mcmc-c"
    words = "manufacturing suffer under the climate bill".split()
    (log_probs,) = pack_classifier(pack).log_probs([tuple(words)])
    places = [*words, "the end"]
    asked = np.argsort(-log_probs[:, Label.INSERT])[:3]
    assert {places[i] for i in asked} == {"manufacturing", "suffer", "the end"}  # the paper's labels


def test_the_same_seed_gives_the_same_sentence_with_all_words() -> None:
    words = ["person", "home", "problems", "depression"]
    arguments = ["generate", *words, "--json", "--seed", "1", "--steps", "60"]
    first, second = (json.loads(CliRunner().invoke(cli, arguments).stdout)["drafts"][0] for _ in range(2))
    assert first["text"] == second["text"]
    assert first["constraints_met"]
    places = [first["words"].index(word) for word in words]
    assert places == sorted(places)


def test_revising_makes_a_draft_likelier() -> None:
    writer = redraft.load()
    bare, revised = (writer.generate("doctor", "newspaper", settings=Settings(steps, seed=1)) for steps in (0, 80))
    assert revised.nll < bare.nll - 2


def test_the_xlnet_writes_and_knows_its_language() -> None:
    pack = open_pack(DEFAULT)
    for order in ("forward", "backward", "masked"):
        scores = pack.card["xlnet"]["nll"]["held-out part of the corpus"][order]
        assert abs(scores["cost_of_int8"]) < 0.05
    arguments = ["generate", "river", "old bridge", "--recipe", "x-mcmc-c", "--json", "--seed", "1", "--steps", "30"]
    (draft,) = json.loads(CliRunner().invoke(cli, arguments).stdout)["drafts"]
    assert draft["constraints_met"]
    writer = redraft.load(recipe="x-mcmc")
    scorer = writer.sampler.target.scorer
    right, wrong = "the company said its profit fell last year .", "year last fell profit its said company the ."
    readings = scorer.read([tuple(right.split()), tuple(wrong.split())], [None, None])
    assert scorer.log_prob(readings[0]) > scorer.log_prob(readings[1]) + 20


def test_the_xlnet_supplies_the_wrong_words_of_synthetic_data() -> None:
    assert isinstance(find_masked_lm(None), PackMaskedXlnet)


def test_the_infiller_is_an_adapter_for_smollm2() -> None:
    pack = open_pack(DEFAULT)
    adapter = load_adapter(pack.part_folder(INFILLER))
    assert (adapter.base, adapter.rank, adapter.styles) == ("smollm2", 16, ("News", "Encyclopedia", "Everyday"))
    assert len(adapter.layers) == 30 * 7  # every linear layer of SmolLM2
    assert pack.card["infiller"]["base"] == f"smollm2@{adapter.base_hash}"


def test_no_baseline_that_writes_from_keywords_is_unavailable() -> None:
    pack = open_pack()
    for row in (*TABLE1, *TABLE6):
        if row.system in ("sep-bf", "asyn-bf", "gbs-plain", "gbs", "cgmh"):
            assert absence(SYSTEMS[row.system], pack) is None
    assert {row.title: row.system for row in TABLE1}["CGMH"] == "cgmh"


def test_the_start_states_help() -> None:
    for found in open_pack().card["start-states"]["nll"].values():
        for direction in ("forward", "backward"):
            assert found[direction]["learned"] < found[direction]["ordinary"] - 0.1


@pytest.mark.parametrize("recipe", ["sep-bf", "asyn-bf", "gbs-plain"])
def test_beam_searches_write_with_the_shipped_models(recipe: str) -> None:
    draft = redraft.load(recipe=recipe).generate("river")
    assert draft.constraints_met
    assert draft.nll < 4


def test_chains_end_once_the_classifier_would_copy_every_word() -> None:
    writer = redraft.load(recipe="l-mcmc-c")
    inputs = [redraft.Constraints(template=one) for one in ("He ___ the game .", "The company ___ in 2008 ___ .")]
    settings = redraft.Settings(steps=30, seed=1)
    whole = [drafts[0] for drafts in writer.write_many(inputs, settings)]
    ended = [drafts[0] for drafts in writer.write_many(inputs, replace(settings, until_settled=True))]
    assert ended[0].steps < 30  # an easy blank
    assert ended[0].constraints_met
    for given, one, other in zip(inputs, ended, whole, strict=True):
        made = [(step.action, step.position, step.words) for step in one.trace]
        assert made == [(step.action, step.position, step.words) for step in other.trace[: len(made)]]  # but shorter
        assert set(given.unmet(one.words)) <= {"words in every blank"}  # of a chain that came to no rest
        assert "until:settled" in one.signature
    alone = writer.write_many(inputs[1:], replace(settings, until_settled=True), numbers=[1])[0][0]
    assert (alone.text, alone.steps) == (ended[1].text, ended[1].steps)
    with pytest.raises(InputError, match="recipe l-mcmc has no classifier"):
        redraft.load(recipe="l-mcmc").write(inputs[0], replace(settings, until_settled=True))


def test_no_system_of_any_table_needs_more_than_the_pack_and_smollm2() -> None:
    """Only the ablations of the synthetic data have packs of their own."""
    pack = open_pack()
    rows = {row.system for row in (*TABLE1, *TABLE2, *TABLE4, *TABLE6)}
    lacking = {name: why for name in rows if (why := absence(SYSTEMS[name], pack))}
    own = {name for name in rows if SYSTEMS[name].ablation}
    assert {lacking.pop(name, None) for name in own} <= {
        None,
        *(f"unavailable: there is no pack 'english-{one.name}'" for one in ABLATIONS),
    }
    assert set(lacking.values()) == {"unavailable: smollm2 was not pulled"}


@pytest.mark.parametrize("recipe", ["fb-lm", "bayesian-mcmc", "tigs-flm"])
def test_blanks_of_known_length_are_filled_with_the_shipped_models(recipe: str) -> None:
    draft = redraft.load(recipe=recipe).infill(
        "The mayor said ___{4} in the city .", steps=0 if recipe == "fb-lm" else 3
    )
    assert draft.constraints_met
    assert len(draft.words) == 11
    assert draft.nll < 4
