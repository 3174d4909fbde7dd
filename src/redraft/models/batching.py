"""Batching and caching for every reader: grouping by length, padding, shared prefixes, remembered scores."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.models.base import Slot, Words

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class BatchShape(NamedTuple):
    """What one call of a network would compute. An item has one or more rows of tokens, which stay together."""

    num_items: int
    num_rows: int
    most_rows: int  # of one item
    longest: int  # tokens of the longest row
    shortest: int  # tokens of the longest row of the shortest item
    num_tokens: int  # without padding


def groups(lengths: Sequence[Sequence[int]], fits: Callable[[BatchShape], bool]) -> Iterator[list[int]]:
    """Yield the indices of items to compute in one call, items of similar length together.

    ``lengths`` holds the lengths of each item's rows. An item without rows is left out. ``fits`` decides whether a
    call may grow to a shape. A single item always fits.
    """
    longest = [max(rows, default=0) for rows in lengths]
    group: list[int] = []
    shape = _EMPTY
    for i in sorted((i for i, rows in enumerate(lengths) if rows), key=lambda i: -longest[i]):
        larger = _grown(shape, lengths[i], longest[i])
        if group and not fits(larger):
            yield group
            group, larger = [], _grown(_EMPTY, lengths[i], longest[i])
        group.append(i)
        shape = larger
    if group:
        yield group


_EMPTY = BatchShape(0, 0, 0, 0, 0, 0)


def _grown(shape: BatchShape, rows: Sequence[int], longest: int) -> BatchShape:
    """Add an item that is no longer than the others."""
    return BatchShape(
        shape.num_items + 1,
        shape.num_rows + len(rows),
        max(shape.most_rows, len(rows)),
        shape.longest if shape.num_items else longest,
        longest,
        shape.num_tokens + sum(rows),
    )


def row_lengths(items: Iterable[Sequence[Sequence[int]]]) -> list[list[int]]:
    """The lengths of each item's rows."""
    return [[len(row) for row in rows] for rows in items]


def padded(rows: Sequence[Sequence[int] | NDArray[np.integer]], padding: int = 0) -> tuple[Tensor, Tensor]:
    """Pad rows at the end: ids [rows, time] and which of them are real. Time is at least 1."""
    longest = max(1, *map(len, rows))
    ids = np.full((len(rows), longest), padding, dtype=np.int64)
    real = np.zeros((len(rows), longest), dtype=np.bool_)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
        real[at, : len(row)] = True
    return torch.from_numpy(ids), torch.from_numpy(real)


def stacked_at_end(parts: Sequence[Tensor], dim: int) -> tuple[Tensor, Tensor]:
    """Stack caches [..., time, size] of different lengths along a new axis, padded with zeros in front.

    Returns the stack and which of its entries are real, [parts, time].
    """
    lengths = [part.shape[-2] for part in parts]
    longest = max(lengths)
    first = parts[0]
    stack = first.new_zeros(*first.shape[:dim], len(parts), *first.shape[dim:-2], longest, first.shape[-1])
    for at, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        stack.select(dim, at)[..., longest - length :, :] = part
    return stack, torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]


def common_prefix(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


class Memo(Generic[_Key, _Value]):
    """Remembers values that are expensive to compute. A chain whose proposal was rejected often needs them again."""

    def __init__(self) -> None:
        self._values: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key and mark it as used."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        self._values[key] = value

    def trim(self, max_values: int) -> None:
        """Forget the least recently used values until at most ``max_values`` are left."""
        while len(self._values) > max_values:
            self._values.popitem(last=False)


FilledKey = tuple[Words, Words, Words]


def filled_keys(slot: Slot, fillings: Sequence[Words]) -> list[FilledKey]:
    """Keys for a memo of filled slots: the words before the slot, in it and after it.

    The same sentence has different keys in different slots, because its score is computed from the slot on and rounding
    differs.
    """
    before, after = slot.before, slot.after
    return [(before, words, after) for words in fillings]


def ids_from_slot(
    slot: Slot,
    fillings: Sequence[Words],
    encode: Callable[[Words], list[int]],
    encode_shown: Callable[[Words, int], list[int]],
) -> list[list[int]]:
    """Ids from the slot to the end of the sentence, one list per filling.

    ``encode_shown(words, start)`` encodes a whole sentence with its capital and returns the ids from a word on. It is
    used where the filling may take over the capital of the sentence.
    """
    if slot.opens_sentence:
        return [encode_shown(slot.fill(words), slot.start) for words in fillings]
    after = encode(slot.after)
    return [encode(words) + after for words in fillings]
