"""A small pack, trained in seconds on sentences that are made here, and a user folder of its own for every test."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["REDRAFT_HOME"] = tempfile.mkdtemp()  # for what is made once: no test sees the models of whoever runs it
os.environ["REDRAFT_PRECISION"] = "float32"  # laws are held to 1e-4; what bfloat16 gives up has tests of its own

from redraft.models.lstm.network import LstmConfig
from redraft.models.pack import Pack
from redraft.training.lm import LmTask
from redraft.training.loop import BEST, Schedule, train
from redraft.training.pack import PackTraining, assemble
from redraft.training.word_data import prepare_words

settings.register_profile("redraft", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("redraft")

_SUBJECTS = "the dog|the old man|a child|the doctor|my friend|the cook|a singer|the young woman".split("|")
_VERBS = "sees|finds|likes|follows|remembers|paints|sells|carries".split("|")
_OBJECTS = "the ball|a red house|the park|an apple|the long road|a letter|the sea|her brother".split("|")
_TAILS = "|in the morning|near the river|with a smile|every day|, but not today|after the rain|at home".split("|")


def made_sentence(rng: np.random.Generator) -> str:
    parts = [str(rng.choice(choices)) for choices in (_SUBJECTS, _VERBS, _OBJECTS, _TAILS)]
    line = " ".join(part for part in parts if part).replace(" ,", ",")
    return line[0].upper() + line[1:] + str(rng.choice([".", ".", ".", "?", "!"]))


@pytest.fixture(scope="session")
def made_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two files of made sentences."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text("".join(made_sentence(rng) + "\n" for _ in range(2000)))
    return folder


@pytest.fixture(scope="session")
def tiny_pack(made_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Both LSTM models, trained on the made corpus."""
    folder = tmp_path_factory.mktemp("packs")
    data = prepare_words(made_corpus)
    config = LstmConfig.small(len(data.vocabulary))
    weights = {}
    for direction in ("forward", "backward"):
        task = LmTask(data, direction, config=config, batch_tokens=512)
        train(task, Schedule(60_000, learning_rate=2e-2, validate_every=30_000), folder / direction, quiet=True)
        weights[direction] = folder / direction / BEST
    return assemble(PackTraining(made_corpus, "tiny", 60_000, network=config), data, weights, folder / "tiny")


@pytest.fixture(scope="session")
def causal_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny causal model of random weights."""
    from tests.models.making import make_model, make_tokenizer

    folder = tmp_path_factory.mktemp("causal")
    tokenizer = make_tokenizer()
    make_model("llama", len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_HOME", str(tmp_path / "home"))
