"""Synthetic data on disk: a folder of Parquet shards and a card that describes them.

A shard holds the instances of a fixed range of source sentences, so its content depends only on the configuration.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from redraft.errors import InputError
from redraft.extras import extra
from redraft.files import replacing, sha256
from redraft.synthesis.corrupt import Instance
from redraft.synthesis.labels import Label

CARD = "card.json"
SPLITS = ("train", "valid")
FORMAT = "redraft synthetic data 1"


class StoredInstance(NamedTuple):
    """An instance read from a shard. ``labels`` are those of BOS, the words and EOS."""

    words: list[str]
    labels: list[int]
    recipe: str
    method: str
    source: int


def write_shard(path: Path, instances: Sequence[Instance]) -> None:
    """Write a shard atomically."""
    with extra("train"):
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet

    table = pa.table(
        {
            "words": pa.array([i.labelled.words for i in instances], pa.list_(pa.string())),
            "labels": pa.array([i.labelled.labels for i in instances], pa.list_(pa.uint8())),
            "recipe": pa.array([i.recipe for i in instances], pa.string()),
            "method": pa.array([i.method.value for i in instances], pa.string()),
            "source": pa.array([i.source for i in instances], pa.int64()),
        }
    )
    with replacing(path) as partial:
        parquet.write_table(table, partial, compression="zstd")


def shard_paths(folder: Path, split: str) -> list[Path]:
    """The shards of a split ("train" or "valid"), in order."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; make one with redraft synthesize")
    found = sorted(folder.glob(f"{split}-*.parquet"))
    if not found:
        raise InputError(f"{folder} has no {split} shard; make the data with redraft synthesize, --num-valid above 0")
    return found


def read_shard(path: Path) -> Iterator[StoredInstance]:
    """The instances of a shard, validated: two more labels than words, all of them known."""
    with extra("train"):
        import pyarrow as pa
        from pyarrow import parquet

    try:
        columns = parquet.read_table(path, columns=list(StoredInstance._fields)).to_pydict()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is not a shard of synthetic data: {error}") from error
    for number, row in enumerate(map(StoredInstance, *(columns[name] for name in StoredInstance._fields))):
        if len(row.labels) != len(row.words) + 2:
            raise InputError(
                f"{path}, row {number}: {len(row.labels)} labels do not fit {len(row.words)} words, BOS and EOS; "
                "labels are per word, not per sub-token"
            )
        if not row.words or not all(0 <= label < len(Label) for label in row.labels):
            raise InputError(f"{path}, row {number}: labels must be 0 to {len(Label) - 1}, on at least one word")
        yield row


def count(paths: Sequence[Path]) -> dict[str, Any]:
    """Number of sentences and source sentences, and counts by recipe, method and label."""
    with extra("train"):
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]
        from pyarrow import parquet

    totals: dict[str, Counter[str]] = {"recipe": Counter(), "method": Counter(), "label": Counter()}
    num_sentences = num_sources = 0
    for path in paths:
        try:
            table = parquet.read_table(path, columns=["labels", "recipe", "method", "source"])
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise InputError(f"{path} is damaged; remove it and run redraft synthesize again") from error
        num_sentences += table.num_rows
        num_sources += pc.count_distinct(table["source"]).as_py()
        columns = {"recipe": table["recipe"], "method": table["method"], "label": pc.list_flatten(table["labels"])}
        for name, column in columns.items():
            totals[name].update({str(v["values"].as_py()): v["counts"].as_py() for v in pc.value_counts(column)})
    totals["label"] = Counter({Label(int(value)).name.lower(): n for value, n in totals["label"].items()})
    by_name = {name: dict(sorted(counts.items())) for name, counts in totals.items()}
    return {"sentences": num_sentences, "sources": num_sources, **by_name}


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder of synthetic data."""
    try:
        card: dict[str, Any] = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} has no readable {CARD}; make the data with redraft synthesize") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f"{folder / CARD} is not a card of {FORMAT}")
    return card


def check_shards(folder: Path, card: dict[str, Any]) -> None:
    """Refuse a folder whose shards do not match its card, such as an incomplete copy."""
    check_known(folder, card["shards"])
    if lost := sorted(name for name in card["shards"] if not (folder / name).exists()):
        raise InputError(f"{folder} has lost {lost[0]}; run redraft synthesize again")
    check_unaltered(folder, card["shards"])


def check_known(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder with a shard that is not listed."""
    if other := sorted(path.name for path in folder.glob("*.parquet") if path.name not in names):
        raise InputError(f"{folder / other[0]} does not belong to the data in that folder; remove it")


def check_unaltered(folder: Path, hashes: Mapping[str, str]) -> None:
    """Refuse a folder with a shard whose hash differs from the card. Missing shards are ignored."""
    for name, expected in sorted(hashes.items()):
        path = folder / name
        if path.exists() and sha256(path) != expected:
            raise InputError(f"{path} is not the shard of the {CARD}; remove it and run redraft synthesize again")


def write_card(folder: Path, card: dict[str, Any]) -> None:
    with replacing(folder / CARD) as partial:
        partial.write_text(json.dumps({"format": FORMAT} | card, indent=1) + "\n", encoding="utf-8")
