"""Sentences and tiny judges made on the spot."""

import random
from pathlib import Path

_WORDS = (
    "the a doctor nurse home patient said saw went to of in and quickly old new , market fell rose by percent".split()
)


def sentences(num: int, seed: int, fewest: int = 4, most: int = 14) -> list[list[str]]:
    """Random sentences of few words, so that n-grams meet again."""
    rng = random.Random(seed)
    return [[*rng.choices(_WORDS, k=rng.randint(fewest - 1, most - 1)), "."] for _ in range(num)]


def make_judge(folder: Path, kind: str) -> Path:
    """A random GPT-2 or Llama with a word-level tokenizer in a folder, as transformers saves it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *_WORDS, ".", "The"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = {"bos_token": "<s>"} if kind == "llama" else {}  # GPT-2's way: the end token opens a text too
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", **special).save_pretrained(
        folder
    )
    sizes = {"vocab_size": len(vocabulary), "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.5}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if kind == "llama":
            config = LlamaConfig(
                **sizes,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                max_position_embeddings=64,
            )
            LlamaForCausalLM(config).save_pretrained(folder)
        else:
            GPT2LMHeadModel(GPT2Config(**sizes, n_embd=16, n_layer=2, n_head=2, n_positions=64)).save_pretrained(folder)
    return folder
