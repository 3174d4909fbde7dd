"""Loading causal models: folders, GGUF files, names, and what is wrong with them."""

import copy
import io
import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.models.making import DOG, make_model, whole_score, write_gguf

from redraft.errors import InputError, PackError
from redraft.models.causal import hub
from redraft.models.causal.files import load_causal
from redraft.models.causal.llama import can_load
from redraft.models.causal.llama import load as load_llama
from redraft.models.causal.reader import CausalReader


def test_loads_a_folder_and_a_gguf_file(tmp_path, llama, tokenizer):
    expected = whole_score(CausalReader("tiny", llama, tokenizer), DOG)
    llama.model.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    write_gguf(tmp_path / "tiny.gguf", llama.model, tokenizer)
    for place in ("tiny", "tiny.gguf"):
        assert whole_score(load_causal(str(tmp_path / place)), DOG) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "change", [{"rope_scaling": {"type": "linear", "factor": 4.0}}, {"quantization_config": {}}, {"mlp_bias": True}]
)
def test_our_own_network_takes_only_what_it_computes(causal_folder, tmp_path, change):
    folder = Path(shutil.copytree(causal_folder, tmp_path / "copy"))
    assert can_load(folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("rope_parameters", None)
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    assert not can_load(folder)


def test_heads_and_padding_that_a_file_need_not_tell(tokenizer, tmp_path):
    padded = copy.deepcopy(tokenizer)
    padded.backend_tokenizer.enable_padding(length=7)
    make_model("llama", len(tokenizer), key_value_heads=4).save_pretrained(tmp_path)
    padded.save_pretrained(tmp_path)
    expected = whole_score(load_causal(str(tmp_path)), DOG)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["num_key_value_heads"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    network, files = load_llama(tmp_path, torch.float32)
    assert files(["a"], add_special_tokens=False)["input_ids"] == [tokenizer.encode("a", add_special_tokens=False)]
    assert whole_score(CausalReader("tiny", network, files), DOG) == pytest.approx(expected, abs=1e-4)


def test_a_folder_without_a_tokenizer(tmp_path, llama):
    llama.model.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no readable tokenizer") as caught:
        load_causal(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("config.json", "{", "not a valid JSON file"),
        ("config.json", "[]", "holds no causal language model|has no readable tokenizer"),
        ("config.json", '{"model_type": "llama", "rope_parameters": "x"}', "holds no causal language model|tokenizer"),
        ("model.safetensors", "x", "does not hold the model"),
        ("tokenizer.json", "{}", "has no readable tokenizer"),
    ],
)
def test_damaged_files_of_a_llama(tmp_path, llama, tokenizer, name, content, complaint):
    llama.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        load_causal(str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 9},
        {"num_hidden_layers": 1},
        {"num_attention_heads": 2},
        {"num_key_value_heads": 1},
        {"num_attention_heads": None},
        {"rms_norm_eps": None},
    ],
)
def test_weights_of_another_llama(tmp_path, llama, tokenizer, change):
    llama.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=r"does not hold the model that config\.json describes"):
        load_causal(str(tmp_path))


def test_weights_that_are_missing_are_not_drawn_at_random(tmp_path, tokenizer):
    make_model("gpt2", len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_causal(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_layer": 3}))
    with pytest.raises(InputError, match=r"do not match its config\.json \(transformer\.h\.2"):
        load_causal(str(tmp_path))


def test_code_that_lies_beside_a_model_is_not_run(tmp_path, tokenizer, monkeypatch):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}')
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match=r"no tokenizer|no causal language model"):
        load_causal(str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_the_name_of_a_folder_tells_what_is_in_it(tmp_path, llama, tokenizer):
    llama.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    first, again = (load_causal(str(tmp_path)).name for _ in range(2))
    assert first == again
    assert first.startswith(f"{tmp_path}@")
    other = make_model("llama", len(tokenizer), key_value_heads=4)
    other.save_pretrained(tmp_path)
    assert load_causal(str(tmp_path)).name != first


def test_what_is_not_there(tmp_path, monkeypatch):
    def refuse(name):
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(hub, "_require_hub", refuse)
    with pytest.raises(InputError, match="no-such-model cannot be loaded: no route to the hub; check the name"):
        load_causal("no-such-model")
    with pytest.raises(InputError, match="there is no folder"):
        load_causal("./no/such/folder")
    with pytest.raises(InputError, match="there is no file"):
        load_causal("no.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(InputError, match="not a GGUF file"):
        load_causal(str(tmp_path / "bad.gguf"))
    with pytest.raises(PackError, match="run: redraft pull smollm2"):
        load_causal("smollm2")
    for odd in ("x" * 300, "~nobody-has-this-name/x"):
        with pytest.raises(InputError, match="is not the name of a model or a folder"):
            load_causal(odd)
