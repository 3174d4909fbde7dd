"""A BERT that also sees capitals: an encoder of sentences, with the names of ``transformers.BertModel``.

A BERT without capitals reads "turkey" and "Turkey" alike. Here an id is a piece and the case of its word together, and
each case has a vector that is added to that of the piece. The vectors are zero at first, so that the encoder begins as
the model whose weights it starts from.
"""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.errors import PackError

VOCABULARY = "vocab.txt"
CASES = "embeddings.case_embeddings.weight"  # what a BERT without capitals lacks
_FEWEST = 20  # pieces that occur less often in the training data are left out
_BEGIN, _END, _PADDING, _UNKNOWN = "[CLS]", "[SEP]", "[PAD]", "[UNK]"


class Case(IntEnum):
    """The capitals of a word."""

    SMALL = 0
    FIRST = 1
    ALL = 2
    MIXED = 3

    @classmethod
    def of(cls, word: str) -> "Case":
        letters = [letter for letter in word if letter.isalpha()]
        capitals = [letter.isupper() for letter in letters]
        if not any(capitals):
            return cls.SMALL
        if len(capitals) > 1 and all(capitals):
            return cls.ALL
        return cls.FIRST if capitals[0] and not any(capitals[1:]) else cls.MIXED


class CasedPieces:
    """Splits words into the pieces of a BERT without capitals. An id is ``piece + case * number of pieces``."""

    def __init__(self, names: Sequence[str]):
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        self.names = tuple(names)
        self.size = len(self.names) * len(Case)
        numbers = {name: i for i, name in enumerate(self.names)}
        self._tokenizer = Tokenizer(WordPiece(numbers, unk_token=_UNKNOWN))
        self._tokenizer.normalizer = BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = BertPreTokenizer()
        self.begin, self.end, self.padding = (numbers[name] for name in (_BEGIN, _END, _PADDING))
        self._unknown = numbers[_UNKNOWN]

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file with one piece a line."""
        return cls(read_vocabulary(path))

    def only(self, kept: Sequence[int]) -> "CasedPieces":
        """With some of the pieces."""
        return CasedPieces([self.names[i] for i in kept])

    def save(self, path: Path) -> None:
        path.write_text("".join(f"{name}\n" for name in self.names), encoding="utf-8")

    def split(self, word: str) -> tuple[int, ...]:
        shift = Case.of(word) * len(self.names)
        return tuple(shift + piece for piece in self.pieces(word))

    def pieces(self, word: str) -> list[int]:
        """The pieces of a word, whatever its case."""
        found: list[int] = self._tokenizer.encode(word, add_special_tokens=False).ids
        return found or [self._unknown]


def read_vocabulary(path: Path) -> list[str]:
    """The pieces of a file, one a line."""
    try:
        names = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise PackError(f"{path} is not the vocabulary of a BERT ({error}); copy it from its source") from error
    if missing := [name for name in (_BEGIN, _END, _PADDING, _UNKNOWN) if name not in names]:
        raise PackError(f"{path} is not the vocabulary of a BERT: it lacks {missing[0]}")
    return names


def kept_pieces(names: Sequence[str], counts: Mapping[int, int]) -> list[int]:
    """The pieces to keep of a vocabulary: special ones, ASCII characters, and those that are frequent enough.

    Words of these characters can still be spelled, and a word whose pieces are all kept is spelled as before.
    """
    return [
        i
        for i, name in enumerate(names)
        if counts.get(i, 0) >= _FEWEST
        or (name.startswith("[") and name.endswith("]") and not name.startswith("[unused"))
        or (len(name.removeprefix("##")) == 1 and name.removeprefix("##") in string.printable)
    ]


@dataclass(frozen=True)
class EncoderConfig:
    """The sizes of an encoder, with the names of BERT's configuration."""

    vocab_size: int
    hidden_size: int = 384
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 1536
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """From the configuration of a BERT."""
        wanted = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
        if other := [key for key, value in wanted.items() if config.get(key, value) != value]:
            raise PackError(f"an encoder with {other[0]} {config[other[0]]!r} is not supported; use a plain BERT")
        try:
            return cls(**{name: config[name] for name in cls.__dataclass_fields__})
        except KeyError as error:
            raise PackError(f"the configuration of the encoder has no {error.args[0]}; it is no BERT") from error


class Encoder(nn.Module):
    """From ids of ``CasedPieces`` to hidden states. Places after the window count as its last one."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Ids [rows, time] and which of them are real to hidden states [rows, time, size]."""
        hidden = self.embeddings(ids)
        mask = None if bool(real.all()) else real[:, None, None, :]
        layers: Any = self.encoder["layer"]
        for layer in layers:
            hidden = layer(hidden, mask)
        result: Tensor = hidden
        return result


class _Embeddings(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self._num_pieces = config.vocab_size
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(2, config.hidden_size)  # the second type is not used
        self.case_embeddings = nn.Embedding(len(Case), config.hidden_size)
        nn.init.zeros_(self.case_embeddings.weight)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        summed = self.word_embeddings(ids % self._num_pieces) + self.case_embeddings(ids // self._num_pieces)
        places = torch.arange(ids.shape[1]).clamp(max=self.position_embeddings.num_embeddings - 1)
        summed = summed + self.position_embeddings(places) + self.token_type_embeddings.weight[0]
        result: Tensor = self.LayerNorm(summed)
        return result


class _Layer(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        size, self._num_heads = config.hidden_size, config.num_attention_heads
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(size, size) for name in ("query", "key", "value")}),
                "output": _Output(size, size, config.layer_norm_eps),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, config.intermediate_size)})
        self.output = _Output(config.intermediate_size, size, config.layer_norm_eps)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        projections: Any = self.attention["self"]
        query, key, value = (
            projections[name](hidden).unflatten(-1, (self._num_heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        hidden = self.attention["output"](attended.transpose(1, 2).flatten(2), hidden)
        result: Tensor = self.output(functional.gelu(self.intermediate["dense"](hidden)), hidden)
        return result


class _Output(nn.Module):
    """A projection that is added to what came before, and normalised."""

    def __init__(self, num_in: int, num_out: int, eps: float):
        super().__init__()
        self.dense = nn.Linear(num_in, num_out)
        self.LayerNorm = nn.LayerNorm(num_out, eps)

    def forward(self, given: Tensor, before: Tensor) -> Tensor:
        result: Tensor = self.LayerNorm(self.dense(given) + before)
        return result


def pruned(weights: Mapping[str, Tensor], kept: Sequence[int]) -> dict[str, Tensor]:
    """The weights of a BERT with only some of its pieces, and without what is not read here."""
    pieces, pooled = "embeddings.word_embeddings.weight", "pooler."
    found = {name.removeprefix("bert."): weight for name, weight in weights.items()}
    found = {name: one for name, one in found.items() if not name.startswith(pooled) and not name.endswith("_ids")}
    return {**found, pieces: found[pieces][torch.tensor(list(kept))]}
