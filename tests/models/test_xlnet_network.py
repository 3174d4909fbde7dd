"""The network and its files against transformers'."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.xlnets import TINY

from redraft.errors import PackError
from redraft.models.output_layer import sample_columns
from redraft.models.xlnet.files import CONFIG, OLD_WEIGHTS, PIECES, WEIGHTS, load_xlnet, save_xlnet
from redraft.models.xlnet.network import XlnetConfig, XlnetLM

transformers = pytest.importorskip("transformers")

_TIME = 9


def _theirs(model: Any, ids: torch.Tensor, hidden: torch.Tensor, **asked: torch.Tensor) -> torch.Tensor:
    """Logits of transformers for every place; ``hidden[..., i, j]``: i does not see j."""
    logits: torch.Tensor = model(ids, perm_mask=hidden.float().expand(len(ids), -1, -1), **asked).logits
    return logits


def _queries(ids: torch.Tensor) -> torch.Tensor:
    return torch.eye(ids.shape[1]).expand(len(ids), -1, -1)


def _theirs_in_turn(model: Any, ids: torch.Tensor, *, is_backward: bool = False, num_streams: int = 2) -> torch.Tensor:
    """Their logits of all pieces but the one that is read first, in reading order."""
    places = torch.arange(ids.shape[1])
    later = places[:, None] > places if is_backward else places[:, None] < places
    if num_streams == 1:  # a content sees itself and predicts the next piece
        logits = _theirs(model, ids, later)
        return logits.flip(1)[:, :-1] if is_backward else logits[:, :-1]
    logits = _theirs(model, ids, later | (places[:, None] == places), target_mapping=_queries(ids))
    return logits.flip(1)[:, 1:] if is_backward else logits[:, 1:]


def _hub_model(folder: Path) -> Any:
    return transformers.XLNetLMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()


def _ids(network: XlnetLM) -> torch.Tensor:
    return torch.randint(0, network.config.vocab_size, (3, _TIME), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("num_streams", [1, 2])
@pytest.mark.parametrize("is_backward", [False, True])
def test_one_side_is_what_transformers_computes(hub_folder: Path, is_backward: bool, num_streams: int) -> None:
    network = load_xlnet(hub_folder)[0].with_streams(num_streams)
    ids = _ids(network)
    reading = ids.flip(1) if is_backward else ids
    with torch.inference_mode():
        ours = network(network.transformer.causal(reading[:, :-1], backward=is_backward)[0])
        theirs = _theirs_in_turn(_hub_model(hub_folder), ids, is_backward=is_backward, num_streams=num_streams)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_both_sides_are_what_transformers_computes(hub_folder: Path) -> None:
    network = load_xlnet(hub_folder)[0]
    ids = _ids(network)
    asked = torch.zeros(ids.shape, dtype=torch.bool)
    asked[0, 3] = asked[1, 0] = asked[2, 5] = asked[2, 8] = True
    with torch.inference_mode():
        ours = network(network.transformer(ids, torch.ones_like(asked), asked))
        theirs = _theirs(
            _hub_model(hub_folder), ids, asked[:, None, :].expand(-1, _TIME, -1), target_mapping=_queries(ids)
        )
    torch.testing.assert_close(ours[asked], theirs[asked], rtol=1e-4, atol=1e-4)


def test_what_was_read_need_not_be_read_again(network: XlnetLM) -> None:
    ids = _ids(network)
    with torch.inference_mode():
        for is_backward in (False, True):
            whole, _ = network.transformer.causal(ids, backward=is_backward)
            first, memory = network.transformer.causal(ids[:, :4], backward=is_backward)
            rest, _ = network.transformer.causal(ids[:, 4:], backward=is_backward, memory=memory)
            torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_streams", [1, 2])
def test_gradients_are_those_of_transformers(hub_folder: Path, num_streams: int) -> None:
    ours, theirs = load_xlnet(hub_folder)[0].with_streams(num_streams), _hub_model(hub_folder)
    ids = _ids(ours)
    hidden, _ = ours.transformer.causal(ids[:, :-1])
    ours.loss(hidden.flatten(0, 1), ids[:, 1:].flatten()).backward()
    logits = _theirs_in_turn(theirs, ids, num_streams=num_streams)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum").backward()
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-3, atol=1e-3, msg=name)


def test_reading_backward_is_reading_reversed_text_forward(network: XlnetLM) -> None:
    """Distances change their sign, which affects only the sines."""
    mirrored = XlnetLM(network.config).eval()
    mirrored.load_state_dict(network.state_dict())
    ids = _ids(network)
    with torch.inference_mode():
        for layer in mirrored.transformer.layer:
            layer.rel_attn.r[: network.config.d_model // 2] *= -1
        backward, _ = network.transformer.causal(ids, backward=True)
        torch.testing.assert_close(backward, mirrored.transformer.causal(ids)[0], rtol=1e-4, atol=1e-4)


def test_sampled_columns_stand_for_all(network: XlnetLM) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, target = torch.randn(6, 16, generator=generator), torch.tensor([3, 40, 77, 3, 120, 99])
    exact = network(hidden).exp().sum(1)
    estimates = []
    for _ in range(400):
        columns = sample_columns(target, network.config.vocab_size, 20, 30, generator)
        assert set(target.tolist()) <= set(columns.ids.tolist())
        estimates.append((network(hidden)[:, columns.ids] + columns.log_weights).exp().sum(1))
    torch.testing.assert_close(torch.stack(estimates).mean(0), exact, rtol=0.1, atol=0)
    everything = sample_columns(target, network.config.vocab_size, network.config.vocab_size, 0, generator)
    assert network.loss(hidden, target, everything).item() == pytest.approx(network.loss(hidden, target).item())


def test_a_saved_model_goes_both_ways(network: XlnetLM, pieces: Path, tmp_path: Path) -> None:
    save_xlnet(tmp_path, network, pieces)
    ids = _ids(network)
    loaded, splitter, folder = load_xlnet(str(tmp_path))
    assert splitter.size == network.config.vocab_size
    assert folder == tmp_path
    with torch.inference_mode():
        ours = loaded(loaded.transformer.causal(ids[:, :-1])[0])
        theirs = _theirs_in_turn(_hub_model(tmp_path), ids, num_streams=1 if network.config.one_stream else 2)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_checkpoint_of_older_days_loads(hub_folder: Path, tmp_path: Path) -> None:
    model = transformers.XLNetLMHeadModel.from_pretrained(hub_folder, dtype=torch.float32)
    for name in (CONFIG, PIECES):
        shutil.copyfile(hub_folder / name, tmp_path / name)
    torch.save(model.state_dict(), tmp_path / OLD_WEIGHTS)  # with the head, which is the embeddings once more
    ours, expected = load_xlnet(tmp_path)[0].state_dict(), load_xlnet(hub_folder)[0].state_dict()
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_a_model_in_the_hubs_cache_loads_by_name(
    hub_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "models--someone--tiny-xlnet"
    shutil.copytree(hub_folder, stored / "snapshots" / "0123abcd")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("0123abcd")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert load_xlnet("someone/tiny-xlnet")[0].config.d_model == TINY["d_model"]
    # A cache that holds the configuration alone is no model: it has to be completed.
    (stored / "snapshots" / "0123abcd" / WEIGHTS).unlink()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PackError, match="is not on this machine and cannot be fetched"):
        load_xlnet("someone/tiny-xlnet")


def test_a_name_that_cannot_be_fetched_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PackError, match=r"xlnet-base-cased is not on this machine .*hf download") as caught:
        load_xlnet("xlnet/xlnet-base-cased")
    assert "\n" not in str(caught.value)
    with pytest.raises(PackError, match="neither a folder nor the name"):
        load_xlnet("/no/such/folder")


def _changed(folder: Path, **changes: object) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def _pickled(folder: Path, content: bytes) -> Path:
    (folder / WEIGHTS).unlink()
    (folder / OLD_WEIGHTS).write_bytes(content)
    return folder / OLD_WEIGHTS


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda folder: _changed(folder, model_type="bert"), "type bert, not an XLNet"),
        (lambda folder: _changed(folder, clamp_len=5), r"does not support \(clamp_len: 5\)"),
        (lambda folder: _changed(folder, tie_word_embeddings=False), "tie_word_embeddings: false"),
        (lambda folder: _changed(folder, n_head=0), "n_head: 0"),
        (lambda folder: _changed(folder, n_layer="six"), "n_layer: six"),
        (lambda folder: _changed(folder, d_model=None), "d_model: None"),
        (lambda folder: _changed(folder, n_head=3, d_head=5), "n_head: 3"),
        (lambda folder: _changed(folder, vocab_size=141), "has 140 pieces, the model 141"),
        (lambda folder: _changed(folder, d_inner=32), "does not hold the weights"),
        (lambda folder: _changed(folder, redraft_pieces_sha256="0"), "not the vocabulary that the model was trained"),
        (lambda folder: (folder / PIECES).unlink(), r"lacks spiece\.model"),
        (lambda folder: (folder / PIECES).write_text("text"), "not a SentencePiece model"),
        (lambda folder: (folder / WEIGHTS).unlink(), "holds no readable weights"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"1234567890"), r"model\.safetensors is damaged"),
        (lambda folder: (folder / WEIGHTS).write_text("version https://git-lfs.github.com/spec/v1"), "git lfs pull"),
        (lambda folder: _pickled(folder, b""), "holds no readable weights: "),
        (lambda folder: _pickled(folder, b"version 1 of nothing"), "is damaged"),
        (lambda folder: torch.save([1], _pickled(folder, b"")), "holds no readable weights: "),
        (lambda folder: (folder / CONFIG).unlink(), "holds no model"),
        (lambda folder: (folder / CONFIG).write_text("[]"), "holds no model"),
    ],
)
def test_bad_checkpoints_are_refused_in_one_line(hub_folder: Path, tmp_path: Path, harm, message: str) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "model"
    shutil.copytree(hub_folder, folder)
    harm(folder)
    with pytest.raises(PackError, match=message) as caught:
        load_xlnet(folder)
    assert "\n" not in str(caught.value)


def test_configurations_that_are_not_computed_are_told_apart() -> None:
    config = transformers.XLNetConfig(**TINY).to_dict()
    assert XlnetConfig.supports(config)
    assert not XlnetConfig.supports({**config, "attn_type": "uni"})
