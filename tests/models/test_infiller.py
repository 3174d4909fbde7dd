"""The infiller: prompts, adapters as peft has them, a decoder that agrees with reading at once, 8 bits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from making import make_model, make_tokenizer

from redraft.errors import PackError
from redraft.models.causal import llama
from redraft.models.causal.adapter import Adapter, LowRank, load_adapter, save_adapter
from redraft.models.causal.eight_bits import EightBits
from redraft.models.causal.infiller import Infiller, TokenTable, load_infiller
from redraft.models.causal.network import TokenRow
from redraft.models.causal.prompts import keywords_prompt, pieces_of, template_prompt
from redraft.models.checkpoints import fingerprint
from redraft.sentence import Constraints


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    tokenizer = make_tokenizer()
    make_model("llama", len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_adapter(base: Path, rank: int = 2) -> Adapter:
    rng = torch.Generator().manual_seed(1)
    shapes = {"self_attn.q_proj": (32, 32), "mlp.gate_proj": (32, 32), "mlp.down_proj": (32, 32)}
    layers = {
        f"model.layers.{i}.{name}": LowRank(
            torch.randn(rank, shape[1], generator=rng).bfloat16(), torch.randn(shape[0], rank, generator=rng).bfloat16()
        )
        for i in range(2)
        for name, shape in shapes.items()
    }
    return Adapter(rank, 3.0, str(base), fingerprint(base / llama.WEIGHTS), layers, ("News", "Scene"))


def test_prompts() -> None:
    assert (
        template_prompt("News", pieces_of(Constraints(("old park", "dog")).start())) == "News: ___ old park ___ dog ___"
    )
    filled = pieces_of(Constraints(template="The mayor said ___ in the city.").start())
    assert template_prompt("News", filled) == "News: The mayor said ___ in the city."
    assert keywords_prompt("Scene", [("old", "park"), ("dog",)]) == "Scene words: old park / dog"


def test_an_adapter_is_what_was_saved(base: Path, tmp_path: Path) -> None:
    adapter = make_adapter(base)
    save_adapter(adapter, tmp_path)
    found = load_adapter(tmp_path)
    assert (found.rank, found.alpha, found.base_hash, found.styles) == (2, 3.0, adapter.base_hash, adapter.styles)
    for name, (down, up) in adapter.layers.items():
        assert torch.equal(found.layers[name].down, down)
        assert torch.equal(found.layers[name].up, up)


@pytest.mark.filterwarnings("ignore")
def test_peft_loads_it_to_the_same_network(base: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import LlamaForCausalLM

    save_adapter(make_adapter(base), tmp_path)
    wanted = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(base), tmp_path)
    ids = (5, 9, 100, 7, 42)
    network, _ = llama.load(base, torch.float32, load_adapter(tmp_path))
    with torch.inference_mode():
        assert torch.allclose(network.begin(ids)[0], wanted(torch.tensor([ids])).logits[0, -1], atol=1e-4)


def test_a_decoder_agrees_with_reading_at_once(base: Path) -> None:
    network, _ = llama.load(base, torch.float32)
    start, rows = (3, 14, 15), [(9, 2, 6), (5, 3, 5), (8, 9, 7)]
    _, past = network.begin(start)
    decoder = network.decoder(past, 3, 5)
    network.step([(decoder, [row[0] for row in rows])])
    decoder.select([2, 0, 2])
    chosen = [rows[2], rows[0], rows[2]]
    network.step([(decoder, [row[1] for row in chosen])])
    (logits,) = network.step([(decoder, [row[2] for row in chosen])])
    wanted, _ = network.run([TokenRow(row, past.first(0), 0) for row in chosen], past)
    assert torch.allclose(logits, wanted[:, -1], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_decoders_that_are_read_together_do_not_change_each_other(base: Path, dtype: torch.dtype) -> None:
    network, _ = llama.load(base, dtype)
    rows = {(3, 14, 15): [(9, 2, 6), (5, 3, 5), (8, 9, 7)], (4,): [(7, 7, 1), (2, 8, 3)]}
    pasts = [network.begin(start)[1] for start in rows]
    together = [network.decoder(past, len(answers), 3) for past, answers in zip(pasts, rows.values(), strict=True)]
    network.step([(together[0], [row[0] for row in rows[3, 14, 15]])])  # it is a token ahead
    for at in range(2):
        ids = [[row[at + 1] for row in rows[3, 14, 15]], [row[at] for row in rows[(4,)]]]
        joined = network.step(list(zip(together, ids, strict=True)))
    for past, answers, last, found in zip(pasts, rows.values(), (3, 2), joined, strict=True):
        alone = network.decoder(past, len(answers), 3)
        for at in range(last):
            (logits,) = network.step([(alone, [row[at] for row in answers])])
        assert torch.equal(found, logits) if dtype == torch.int8 else torch.allclose(found, logits, atol=1e-5)


def test_rows_of_different_lengths_agree_with_reading_at_once(base: Path) -> None:
    network, _ = llama.load(base, torch.float32)
    rng, (_, past) = np.random.default_rng(0), network.begin((3, 14, 15))
    rows: list[tuple[int, ...]] = [()] * 5
    decoder = network.decoder(past, len(rows), 30)
    for at in range(24):
        ids = [int(token) if rng.random() < 0.7 else llama.UNREAD for token in rng.integers(4, 20, len(rows))]
        ids[at % len(rows)] = 5
        (logits,) = network.step([(decoder, ids)])
        rows = [row if token == llama.UNREAD else (*row, token) for row, token in zip(rows, ids, strict=True)]
        read = [row for row, token in zip(rows, ids, strict=True) if token != llama.UNREAD]
        for row, found in zip(read, logits, strict=True):
            wanted = network.run([TokenRow(row, past.first(0), 0)], past)[0][0, -1]
            assert torch.allclose(found, wanted, atol=1e-4)
        chosen = [int(i) for i in rng.integers(0, len(rows), len(rows))]
        lengths = [int(rng.integers(0, len(rows[i]) + 1)) for i in chosen]
        if at % 3 == 2:
            decoder.select(chosen, lengths)
            rows = [rows[i][:length] for i, length in zip(chosen, lengths, strict=True)]


def test_the_number_of_threads_does_not_change_scores(base: Path) -> None:
    network, _ = llama.load(base, torch.int8)
    ids, found, before = [[5, 9, 8], [7]], [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            decoders = [network.decoder(network.begin((3, 14))[1], len(rows), 2) for rows in ids]
            network.step(list(zip(decoders, ids, strict=True)))
            decoders[0].select([2, 0, 2])
            found.append(network.step(list(zip(decoders, ids, strict=True))))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@given(st.integers(1, 5), st.integers(2, 40), st.integers(1, 9), st.integers(0, 99))
def test_products_in_eight_bits_are_close(rows: int, width: int, out: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(rows, width, generator=rng), torch.randn(out, width, generator=rng)
    bound = 0.02 * x.norm(dim=1)[:, None] * weight.norm(dim=1) + 1e-6
    assert ((EightBits.of(weight).product(x) - x @ weight.t()).abs() <= bound).all()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=6))
def test_tokens_add_up_to_the_text(written: str) -> None:
    tokenizer = make_tokenizer()
    texts = [tokenizer.decode([i]) for i in range(len(tokenizer))]
    table = TokenTable(texts, end=1, decode=tokenizer.decode)
    tokens = tokenizer.encode(written, add_special_tokens=False)
    assert "".join(table.added_by(tokens[: i + 1]) for i in range(len(tokens))) == written


def test_probabilities_given_a_prompt_are_those_of_its_tokens(base: Path) -> None:
    network, tokenizer = llama.load(base, torch.float32)
    infiller = Infiller("tiny", network, tokenizer)
    (found,) = infiller.log_probs("News: ___ dog ___", [("the", "dog", ".")])
    prompt = tokenizer.encode("News: ___ dog ___\n", add_special_tokens=False)
    answer = [*infiller.spell((), ("the", "dog", ".")), infiller.tokens.end]
    logits, _ = network.run(
        [TokenRow((*prompt, *answer)[1:], network.begin(tuple(prompt[:1]))[1].first(0), 0)],
        network.begin(tuple(prompt[:1]))[1],
    )
    log_dists = logits[0].log_softmax(-1)
    wanted = sum(float(log_dists[len(prompt) - 2 + i, token]) for i, token in enumerate(answer))
    assert found == pytest.approx(wanted, abs=1e-3)


def test_an_opening_that_sentences_share_changes_no_probability(base: Path) -> None:
    infiller = Infiller("tiny", *llama.load(base, torch.float32))
    sentences = [("the", "dog", "ran", "."), ("the", "dog", "."), ("the", "old", "dog", "ran", "."), ("the",)]
    for some in (sentences[:1], sentences[:2], sentences[:3], sentences):
        alone = [infiller.log_probs("News: ___", [one], 0.8)[0] for one in some]
        assert infiller.log_probs("News: ___", some, 0.8) == pytest.approx(alone, abs=1e-4)
    assert alone[1] != pytest.approx(alone[2], abs=1e-2)


def test_another_base_or_a_damaged_adapter_is_refused(base: Path, tmp_path: Path) -> None:
    adapter = make_adapter(base)
    save_adapter(Adapter(2, 3.0, str(base), "0" * 8, adapter.layers), tmp_path / "other")
    with pytest.raises(PackError, match="another"):
        load_infiller(tmp_path / "other")
    save_adapter(Adapter(3, 3.0, str(base), "", adapter.layers), tmp_path / "rank")
    with pytest.raises(PackError, match="rank 3"):
        load_adapter(tmp_path / "rank")
    save_adapter(adapter, tmp_path / "torn")
    torn = tmp_path / "torn" / "adapter_model.safetensors"
    torn.write_bytes(torn.read_bytes()[:100])
    with pytest.raises(PackError, match="does not hold"):
        load_adapter(tmp_path / "torn")
    wide = {"model.layers.0.mlp.up_proj": LowRank(torch.ones(2, 7), torch.ones(32, 2))}
    save_adapter(Adapter(2, 3.0, str(base), "", wide), tmp_path / "shape")
    with pytest.raises(PackError, match="shape"):
        load_infiller(tmp_path / "shape")
    assert np.isfinite(load_infiller_text(base, adapter, tmp_path))


def load_infiller_text(base: Path, adapter: Adapter, tmp_path: Path) -> float:
    save_adapter(adapter, tmp_path / "good")
    return load_infiller(tmp_path / "good").log_probs("News: ___", [("a", ".")])[0]
