"""A tokenizer read from its files, without transformers, which takes seconds to import."""

import json
from collections.abc import Sequence
from pathlib import Path

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"


class FileTokenizer:
    """A ``tokenizer.json`` file as a ``TextTokenizer``, without transformers."""

    def __init__(self, folder: Path):
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        named = json.loads((folder / TOKENIZER_CONFIG).read_text(encoding="utf-8"))
        self.bos_token, self.eos_token = (_content(named.get(f"{which}_token")) for which in ("bos", "eos"))
        self.eos_token_id: int | None = self._tokenizer.token_to_id(self.eos_token) if self.eos_token else None

    def encode(self, written: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(written, add_special_tokens=add_special_tokens).ids
        return ids

    def __call__(self, written: Sequence[str], *, add_special_tokens: bool) -> dict[str, list[list[int]]]:
        found = self._tokenizer.encode_batch_fast(list(written), add_special_tokens=add_special_tokens)
        return {"input_ids": [one.ids for one in found]}

    def decode(self, ids: Sequence[int]) -> str:
        written: str = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return written


def _content(token: str | dict[str, str] | None) -> str | None:
    """The text of a special token, which files store alone or with its properties."""
    return token["content"] if isinstance(token, dict) else token
