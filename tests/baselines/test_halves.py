"""sep-bf and asyn-bf with real LSTMs and start states that are trained here."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import redraft
from redraft.app.cli import cli
from redraft.errors import ConstraintError, InputError, PackError
from redraft.evaluation.half_nll import half_nll, padded_halves, random_words
from redraft.models.lstm.files import load_network
from redraft.models.lstm.half_reader import HalfReader
from redraft.models.lstm.start_states import START_STATES, WEIGHTS_FILE, load_half_reader, ordinary_start
from redraft.models.pack import MANIFEST, Pack
from redraft.models.vocabulary import END
from redraft.sentence import Constraints
from redraft.systems import SYSTEMS, absence, system
from redraft.training.parts import Additions, add_parts
from redraft.training.start_states import CARD, StartTask, StartTraining, train_start_states
from redraft.training.word_data import WordData, encode_words
from redraft.writer import Settings

_RECIPES = ("sep-bf", "asyn-bf")
_LINES = ["The dog sees the sea.", "A child likes an apple, but not today!", "The doctor paints the park?"]


@pytest.fixture(scope="module")
def trained(tiny_pack: Pack, made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("starts")
    train_start_states(tiny_pack, made_corpus, out, StartTraining(60_000, batch_tokens=512), quiet=True)
    return out


@pytest.fixture(scope="module")
def started(tiny_pack: Pack, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    out = tmp_path_factory.mktemp("started") / "tiny"
    return add_parts(tiny_pack, out, Additions(start_states=trained), {"some": _LINES})


def test_training_lowers_the_nll_and_the_card_says_by_how_much(started: Pack, trained: Path) -> None:
    card = started.card[START_STATES]
    for direction in ("forward", "backward"):
        before, after = (card["held_out_nll"][direction][when] for when in ("before", "after"))
        assert after < before - 0.05
        assert set(card["nll"]["some"][direction]) == {"ordinary", "learned"}
    assert started.manifest["files"][WEIGHTS_FILE]["bytes"] < 10_000
    assert set(started.parts) == {"forward", "backward", START_STATES}
    assert (trained / CARD).exists()


def test_only_the_start_state_is_trained(tiny_pack: Pack) -> None:
    network, vocabulary = load_network(tiny_pack, "forward")
    data = encode_words(vocabulary, _LINES)
    task = StartTask(network, WordData(vocabulary, data, data), "forward", StartTraining(100))
    assert sum(p.numel() for p in task.module.parameters()) == 4 * network.config.size
    before = {name: value.clone() for name, value in network.state_dict().items()}
    loss, _ = task.loss(0)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and bool(p.grad.any()) for p in task.module.parameters())
    assert all(p.grad is None for p in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_nll_of_halves_is_that_of_words_one_by_one(tiny_pack: Pack, direction) -> None:  # type: ignore[no-untyped-def]
    network, vocabulary = load_network(tiny_pack, direction)
    data, start = encode_words(vocabulary, _LINES), ordinary_start(network)
    order = np.argsort(data.lengths, kind="stable")
    positions = random_words(vocabulary, data, order, np.random.default_rng(0))
    reader = HalfReader(network, vocabulary, start, backward=direction == "backward")
    total, count = 0.0, 0
    for row, at in zip(order, positions, strict=True):
        words = [vocabulary.words[i] for i in data.sentence(row)]
        assert vocabulary.is_word[data.sentence(row)[at]]
        rest = words[:at][::-1] if direction == "backward" else words[at + 1 :]
        state = reader.begin((words[at],))
        for target in [*vocabulary.ids(rest), END]:
            total -= float(reader.log_dists([state])[0, target])
            count += 1
            (state,) = reader.extend([state], [vocabulary.words[target]])
    assert half_nll(network, start, vocabulary, data, direction) == pytest.approx(total / count, rel=1e-5)
    _, _, real = padded_halves(data, order, positions, direction)
    assert int(real.sum()) == count


def test_a_reader_starts_inside_or_at_the_beginning(started: Pack) -> None:
    network, vocabulary = load_network(started, "forward")
    inside = load_half_reader(started, "forward")
    opening = HalfReader(network, vocabulary, ordinary_start(network), opens=True)
    plain = HalfReader(network, vocabulary, ordinary_start(network))
    assert np.array_equal(opening.log_dists([opening.begin(("the",))]), plain.log_dists([plain.begin(("The",))]))
    assert not np.allclose(inside.log_dists([inside.begin(("dog",))]), plain.log_dists([plain.begin(("dog",))]))
    states = [inside.begin(("dog",)), inside.begin(("dog", "."))]
    assert np.exp(inside.log_dists(states)).sum(1) == pytest.approx([1, 1], abs=1e-4)
    assert inside.log_ends(states) == pytest.approx(inside.log_dists(states)[:, inside.end], abs=1e-4)


@pytest.mark.parametrize("recipe", _RECIPES)
@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(("dog",)),
        Constraints(("Xylophone",)),
        Constraints(("can't",)),
        Constraints(("sea",), ban=("the", "a child")),
        Constraints(("dog",), min_words=12),
        Constraints(("dog",), max_words=3),
        Constraints(("dog",), endings=()),
    ],
)
def test_what_it_writes_meets_the_constraints(started: Pack, recipe: str, constraints: Constraints) -> None:
    for draft in redraft.load(started, recipe).write(constraints, Settings(seed=1, num=4)):
        assert draft.constraints_met
        assert not constraints.unmet(draft.words)


@pytest.mark.parametrize("recipe", _RECIPES)
def test_a_sentence_is_the_same_alone_in_a_batch_and_for_any_seed(started: Pack, recipe: str) -> None:
    writer = redraft.load(started, recipe)
    inputs = [Constraints((word,)) for word in ("dog", "sea", "doctor", "today")]
    together = [drafts[0].text for drafts in writer.write_many(inputs, Settings(seed=1))]
    assert together == [writer.write(one, Settings(seed=seed))[0].text for seed, one in enumerate(inputs)]
    several = writer.generate("dog", num=3)
    assert len({draft.text for draft in several}) == 3
    assert together[0] in {draft.text for draft in several}


def test_the_first_word_is_stored_plain_and_shown_with_a_capital(started: Pack) -> None:
    for recipe in _RECIPES:
        draft = redraft.load(started, recipe).generate("sees")
        assert draft.text[0].isupper()
        assert draft.words[0][0].islower()
        assert draft.words[0] != "sees"  # a keyword in lower case does not open a sentence, as the model reads it


@pytest.mark.parametrize("recipe", _RECIPES)
def test_what_it_cannot_write_is_refused_by_name(started: Pack, recipe: str, tmp_path: Path) -> None:
    writer = redraft.load(started, recipe)
    for constraints, why in (
        (Constraints(("dog", "sea")), "takes one keyword, not 2"),
        (Constraints(("old man",)), "not the phrase 'old man'"),
        (Constraints(template="the ___ dog"), "cannot fill a template"),
    ):
        refusal = str(system(recipe).refusal(constraints))
        assert why in refusal
        others = refusal.partition("recipes that can: ")[2].split(", ")
        assert others
        assert all(SYSTEMS[other].refusal(constraints) is None for other in others)
        with pytest.raises(ConstraintError, match="recipes that can"):
            writer.write(constraints)
    assert system(recipe).refusal(Constraints(("dog",))) is None
    # Before models are loaded: the pack does not even exist.
    run = CliRunner().invoke(cli, ["generate", "dog", "sea", "--recipe", recipe, "--pack", "none"])
    assert "takes one keyword, not 2" in str(run.exception)
    lines = tmp_path / "lines.txt"
    lines.write_text("dog\ndog sea\nthe ___ .\nsea\n")
    arguments = ["generate", "--recipe", recipe, "--pack", str(started.folder), "--input", str(lines)]
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 2
    assert "line 2: " in run.stderr
    assert "line 3: " in run.stderr
    assert [json.loads(line)["id"] for line in run.stdout.splitlines()] == [1, 4]


@pytest.mark.parametrize(
    "options",
    [{"target": "smollm2"}, {"context": "Then"}, {"temperature": 0.5}, {"soft": [redraft.prefer("sea", 1.0)]}],
)
def test_options_without_effect_are_refused(started: Pack, options) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="gbs"):
        redraft.load(started, "sep-bf", **options)


def test_packs_without_start_states_or_with_those_of_others_are_refused(
    tiny_pack: Pack, started: Pack, trained: Path, tmp_path: Path
) -> None:
    assert absence(system("asyn-bf"), started) is None
    assert absence(system("asyn-bf"), tiny_pack) == "pack tiny has no start-states"
    with pytest.raises(PackError, match=r"no start states.*redraft train start-states"):
        redraft.load(tiny_pack, "asyn-bf")
    entry = {**started.parts[START_STATES], "lstms_sha256": "0"}
    other = Pack(started.folder, {**started.manifest, "parts": {**started.parts, START_STATES: entry}})
    with pytest.raises(PackError, match="trained for other LSTM models"):
        redraft.load(other, "sep-bf")
    copied = tmp_path / "starts"
    shutil.copytree(trained, copied)
    (copied / CARD).write_text("{}")
    with pytest.raises(InputError, match="other LSTM models"):
        add_parts(tiny_pack, tmp_path / "new", Additions(start_states=copied), {"some": _LINES})
    assert not (tmp_path / "new" / MANIFEST).exists()
    with pytest.raises(PackError, match="train it with redraft train start-states"):
        add_parts(tiny_pack, tmp_path / "new", Additions(start_states=tmp_path), {"some": _LINES})


def test_the_commands_train_and_add(tiny_pack: Pack, made_corpus: Path, tmp_path: Path) -> None:
    train = ["train", "start-states", "--pack", str(tiny_pack.folder), "--corpus", str(made_corpus)]
    run = CliRunner().invoke(cli, [*train, "--out", str(tmp_path / "s"), "--tokens", "2e3"], catch_exceptions=False)
    assert "from the ordinary start state" in run.output
    add = ["train", "add", str(tiny_pack.folder), "--start-states", str(tmp_path / "s"), "--corpus", str(made_corpus)]
    CliRunner().invoke(cli, [*add, "--out", str(tmp_path / "new")], catch_exceptions=False)
    generate = ["generate", "dog", "--recipe", "asyn-bf", "--pack", str(tmp_path / "new")]
    assert "dog" in CliRunner().invoke(cli, generate, catch_exceptions=False).output.lower()
