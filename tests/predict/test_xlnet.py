"""The compact XLNet is the XLNet of transformers, to the last weight."""

import pytest
import torch

from redraft.predict.xlnet import XlnetConfig, XlnetTokenClassifier

transformers = pytest.importorskip("transformers")


def _theirs(activation: str) -> torch.nn.Module:
    torch.manual_seed(1)
    config = transformers.XLNetConfig(
        vocab_size=50, d_model=16, n_layer=2, n_head=2, d_inner=24, ff_activation=activation, num_labels=4
    )
    model: torch.nn.Module = transformers.XLNetForTokenClassification(config).eval()
    for parameter in model.parameters():  # transformers starts many of them at zero, which would hide mistakes
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_it_computes_what_transformers_computes(activation: str) -> None:
    theirs = _theirs(activation)
    ours = XlnetTokenClassifier(XlnetConfig.read(theirs.config.to_dict()), 4)
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(0, 50, (3, 9))
    real = torch.ones(3, 9, dtype=torch.bool)
    real[1, 6:] = False
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=real.long()).logits
        found = ours(ids, real)
    torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_transformers() -> None:
    theirs = _theirs("gelu")
    ours = XlnetTokenClassifier(XlnetConfig.read(theirs.config.to_dict()), 4)
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(0, 50, (2, 7))
    theirs(ids).logits.pow(2).sum().backward()
    ours(ids, torch.ones_like(ids, dtype=torch.bool)).pow(2).sum().backward()
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-3, atol=1e-3, msg=name)


@pytest.mark.parametrize(
    "change", [{"model_type": "bert"}, {"ff_activation": "silu"}, {"attn_type": "uni"}, {"clamp_len": 8}]
)
def test_what_it_does_not_compute_is_left_to_transformers(change: dict[str, object]) -> None:
    config = transformers.XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=24).to_dict()
    assert XlnetConfig.supports(config)
    assert not XlnetConfig.supports({**config, **change})


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    model = XlnetTokenClassifier(XlnetConfig(50, d_model=16, n_layer=2, n_head=2, d_inner=24), 4)
    ids = torch.randint(0, 50, (1, 5))
    longer = torch.cat([ids, torch.zeros(1, 4, dtype=torch.long)], 1)
    real = torch.arange(9)[None] < 5
    with torch.inference_mode():
        alone = model(ids, torch.ones_like(ids, dtype=torch.bool))
        torch.testing.assert_close(model(longer, real)[:, :5], alone, rtol=1e-4, atol=1e-6)
