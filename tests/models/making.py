"""Tiny causal language models, made on the spot: a tokenizer, networks, and a GGUF file in a wheel."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from redraft.models.pull import ModelSource, WheelFile

TEXT = [
    "The doctor's view, he said, isn't new.",
    'A dog saw "the old house" (near a park) and didn\'t stop.\n',
    "The young doctor sees a house. The dog likes the doctor!\n",
]
DOG = ("the", "dog", "sees", "a", "house", ".")


def make_tokenizer(size: int = 330, **special: str) -> Any:
    """A byte-level BPE tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    special = special or {"bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def make_model(kind: str, num_tokens: int, window: int = 128, key_value_heads: int = 2) -> Any:
    """A random network whose distributions are far from flat."""
    shared = {"vocab_size": num_tokens, "bos_token_id": 0, "eos_token_id": 1, "initializer_range": 0.3}
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": key_value_heads, "max_position_embeddings": window, "head_dim": 8}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if kind == "gpt2":
            model: Any = GPT2LMHeadModel(GPT2Config(**shared, n_embd=32, n_layer=2, n_head=4, n_positions=window))
        elif kind == "llama":
            model = LlamaForCausalLM(LlamaConfig(**shared, **sizes, tie_word_embeddings=True))
        else:  # layers that see no further back than eight tokens, beside one that does
            layers = ["sliding_attention", "full_attention"]
            model = Gemma3ForCausalLM(Gemma3TextConfig(**shared, **sizes, sliding_window=8, layer_types=layers))
    return model.train(False)


def write_gguf(path: Path, model: Any, tokenizer: Any) -> None:
    """A Llama as llama.cpp keeps it, in 32 bits; its halves of queries and keys lie interleaved there."""
    from gguf import GGUFWriter, TokenType

    config, merges = model.config, json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL] * 2 + [TokenType.NORMAL] * (len(tokens) - 2))
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    for name, values in model.state_dict().items():
        if renamed := _gguf_name(name):
            heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(renamed.split("_")[-1][:1])
            writer.add_tensor(renamed, _interleaved(values.numpy(), heads if "attn_" in renamed else None))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str) -> str | None:
    if name == "lm_head.weight":
        return None  # tied to the embedding
    plain = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    if name in plain:
        return plain[name]
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    return f"blk.{layer}.{parts[part]}.weight"


def _interleaved(values: np.ndarray, heads: int | None) -> np.ndarray:
    if heads is None:
        return values
    rows, columns = values.shape
    halves = values.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows, columns)


def make_wheels(folder: Path, gguf: Path, num: int) -> ModelSource:
    """Split a file into ``num`` wheels. Returns the source that names them."""
    folder.mkdir(exist_ok=True)
    content = gguf.read_bytes()
    size = -(-len(content) // num)
    files = []
    for i in range(num):
        part = content[i * size : (i + 1) * size]
        member = f"tiny_part{i}/{gguf.name}" + (f".part0{i}" if num > 1 else "")
        files += make_wheel(folder, f"tiny-part{i}", {member: part})
    return ModelSource("a tiny model", "none", tuple(files), lead="<s>")


def make_wheel(folder: Path, package: str, contents: Mapping[str, bytes]) -> list[WheelFile]:
    """Write a wheel with these members."""
    folder.mkdir(exist_ok=True)
    stem = f"{package.replace('-', '_')}-1.0"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, content in contents.items():
            wheel.writestr(member, content)
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return [WheelFile(package, "1.0", one, hashlib.sha256(content).hexdigest()) for one, content in contents.items()]


def whole_score(reader, words):
    """The log-probability of a whole sentence."""
    return reader.log_prob(reader.read([words], [None])[0])
