"""The plain way to do what redraft.models.xlnet.reader does: whole sentences, all logits, nothing kept.

Either with redraft's own network, or with that of transformers and permutation masks, as published code does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft import text
from redraft.models.base import Slot, Words
from redraft.models.xlnet.network import XlnetLM
from redraft.models.xlnet.reader import XlnetReader
from redraft.numerics import Array


class HubNetwork:
    """The same weights in ``transformers.XLNetLMHeadModel``."""

    def __init__(self, network: XlnetLM):
        import transformers

        shape = {name: getattr(network.config, name) for name in network.config.__dataclass_fields__}
        self._one_stream = shape.pop("one_stream")
        self._model: Any = transformers.XLNetLMHeadModel(transformers.XLNetConfig(**shape, dropout=0.0)).eval()
        weights = network.state_dict()
        self._model.load_state_dict({**weights, "lm_loss.weight": weights["transformer.word_embedding.weight"]})

    def __call__(self, ids: Tensor, backward: bool) -> Tensor:
        """Logits [rows, time, pieces]; row t predicts what follows piece t."""
        return self._from_content(ids, backward) if self._one_stream else self._from_queries(ids, backward)

    def _from_content(self, ids: Tensor, backward: bool) -> Tensor:
        logits = self._logits(ids, backward, _later(ids.shape[1], backward))
        return logits.flip(1) if backward else logits

    def _from_queries(self, ids: Tensor, backward: bool) -> Tensor:
        rows, time = ids.shape
        extended = torch.cat([ids, ids[:, :1]], 1)  # the last place is asked for, what stands there is not seen
        hidden = _later(time + 1, backward) | torch.eye(time + 1, dtype=torch.bool)
        wanted = torch.eye(time + 1)[:time].flip(0) if backward else torch.eye(time + 1)[1:]
        return self._logits(extended, backward, hidden, target_mapping=wanted.expand(rows, -1, -1))

    def _logits(self, ids: Tensor, backward: bool, hidden: Tensor, **asked: Tensor) -> Tensor:
        mask = hidden.float().expand(len(ids), -1, -1)
        # Backward, the first piece of the reading order stands last.
        logits: Tensor = self._model(ids.flip(1) if backward else ids, perm_mask=mask, use_mems=False, **asked).logits
        return logits


def _later(time: int, backward: bool) -> Tensor:
    """[places, places]: whether the column's place is read after the row's."""
    places = torch.arange(time)
    return places[:, None] > places if backward else places[:, None] < places


class OwnNetwork:
    """redraft's network without its memory."""

    def __init__(self, network: XlnetLM):
        self._network = network

    def __call__(self, ids: Tensor, backward: bool) -> Tensor:
        logits: Tensor = self._network(self._network.transformer.causal(ids, backward=backward)[0])
        return logits


class PlainXlnet:
    """Reads every sentence from its first piece each time it is asked."""

    def __init__(self, reader: XlnetReader, network: HubNetwork | OwnNetwork | None = None):
        self.name, self._reader = f"plain {reader.name}", reader
        self._logits = network or OwnNetwork(reader.network)
        self.words, self.proposable = reader.words, reader.proposable

    def read(self, sentences: Sequence[Words], old: Sequence[object]) -> list[Words]:
        return list(sentences)

    def log_prob(self, reading: Words) -> float:
        return float(self._score([reading])[0])

    def log_probs_filled(
        self, slots: Sequence[Slot], fillings: Sequence[Sequence[Words]], readings: Sequence[Words]
    ) -> list[Array]:
        # The old sentence is scored along with the candidates, as published code does.
        return [
            self._score([*(slot.fill(word) for word in words), slot.words])[:-1]
            for slot, words in zip(slots, fillings, strict=True)
        ]

    @torch.inference_mode()
    def _score(self, sentences: Sequence[Words]) -> Array:
        reader = self._reader
        ids = [reader.pieces.flat(text.surface(words)) for words in sentences]
        longest = max(map(len, ids)) + 1
        inputs = torch.tensor([[reader.begin, *row, *[reader.end] * (longest - len(row) - 1)] for row in ids])
        targets = torch.tensor([[*row, *[reader.end] * (longest - len(row))] for row in ids])
        real = torch.arange(longest) <= torch.tensor([[len(row)] for row in ids])
        log_probs = self._logits(inputs, False).log_softmax(-1).gather(2, targets[..., None]).squeeze(2).double()
        kept: Array = torch.where(real, log_probs, 0.0).sum(1).numpy()
        return kept

    @torch.inference_mode()
    def log_dist(self, slots: Sequence[Slot], readings: Sequence[Words]) -> NDArray[np.float32]:
        reader, rows = self._reader, []
        for slot in slots:
            before = reader.pieces.flat(text.surface(slot.before))
            if reader.backward:
                before = reader.pieces.flat(slot.after)[::-1]
            logits = self._logits(torch.tensor([[reader.begin, *before]]), reader.backward)
            rows.append(reader.pieces.log_dist(logits[:, -1], [slot])[0])
        return np.stack(rows)
