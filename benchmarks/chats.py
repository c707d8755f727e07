# SPDX-License-Identifier: Apache-2.0
"""What do conversations, lists of objects, cost: batches from Parquet, and packed batches on devices from JSON Lines?"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = (
    "conversations of 1 to 8 messages: batches of 256 from Parquet; template, tokens, rows of 512 on 8 JAX devices"
)
NOTES = """
From Parquet, distinput gives columns with offsets, and Hugging Face's datasets give lists of dicts, or Arrow tables. In the
other case all have the same Python functions for a template and for tokens (its bytes), and each library has its own packer:
rows differ, tokens are the same. `by hand` puts documents one behind another until a row is full.
"""
BATCH, LENGTH, ROWS, DEVICES = 256, 512, 16, 8
FLAG = "--xla_force_host_platform_device_count"
WORDS = [
    "what",
    "is",
    "the",
    "way",
    "of",
    "a",
    "record",
    "to",
    "its",
    "replica",
    "and",
    "who",
    "cuts",
    "it",
    "for",
    "me",
]


def prepare(folder: Path, scale: float) -> None:
    """The same conversations as Parquet and as JSON Lines."""
    import pyarrow as pa
    from pyarrow import parquet

    random = np.random.default_rng(SEED)
    chats = [
        {
            "id": number,
            "messages": [
                {
                    "role": ("user", "assistant")[turn % 2],
                    "content": " ".join(random.choice(WORDS, random.integers(1, 12))),
                }
                for turn in range(random.integers(1, 9))
            ],
        }
        for number in range(_chats(scale))
    ]
    parquet.write_table(pa.Table.from_pylist(chats), folder / "chats.parquet")
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))


def _chats(scale: float) -> int:
    return scaled(20_000, scale, 300)


def cases(folder: Path, scale: float) -> list[Case]:
    """Batches of nested records, and packed batches of their tokens."""
    table, lines = str(folder / "chats.parquet"), str(folder / "chats.jsonl")
    units = {"conversation": _chats(scale)}
    return [
        Case(
            "nested Parquet",
            units,
            [
                Contender("distinput", "ours", lambda: _columns(table)),
                Contender("datasets", "peer", lambda: _of_datasets(table, folder), ("datasets",), 1.0),
                Contender(
                    "datasets, rows in Arrow", "peer", lambda: _of_datasets(table, folder, "arrow"), ("datasets",)
                ),
            ],
        ),
        Case(
            "chats to packed batches",
            units,
            [
                Contender("distinput", "ours", lambda: _packed(lambda place: _ours(lines, place))),
                Contender("grain", "peer", lambda: _packed(lambda place: _grain(lines, place)), ("jax", "grain"), 1.5),
                Contender(
                    "datasets, by hand",
                    "peer",
                    lambda: _packed(lambda place: _by_hand(lines, folder, place)),
                    ("jax", "datasets"),
                    1.0,
                ),
            ],
        ),
    ]


# ---- nested records


def _columns(file: str) -> Work:
    import distinput as di

    batches = di.data.ParquetDataset(file).ragged_batch(BATCH)

    def plain(batch: Any) -> Any:
        contents = batch["messages"]["content"]
        return contents.flat_values, np.diff(contents.row_splits)

    return delivering(lambda: batches, plain=plain)


def _of_datasets(file: str, folder: Path, kind: str | None = None) -> Work:
    import datasets

    chats: Any = datasets.Dataset.from_parquet(file, cache_dir=str(folder / "cache")).with_format(kind)

    def plain(batch: Any) -> Any:
        messages = batch["messages"] if kind is None else batch["messages"].to_pylist()
        contents = [message["content"].encode() for chat in messages for message in chat]
        return np.array(contents, object), np.array(list(map(len, messages)))

    return delivering(lambda: chats.iter(BATCH), plain=plain)


# ---- tokens on devices


def template(chat: Any) -> str:
    """The text of a conversation."""
    return "".join([f"<{message['role']}>{message['content']}" for message in chat["messages"]])


def tokens(chat: Any) -> Any:
    """Its tokens, at most a row of them."""
    return np.frombuffer(template(chat).encode(), np.uint8)[:LENGTH].astype(np.int32)


def _place() -> Any:
    if FLAG not in os.environ.get("XLA_FLAGS", ""):  # read by JAX before its first computation
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={DEVICES}".strip()
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(jax.make_mesh((DEVICES,), ("data",)), PartitionSpec("data"))


def _packed(batches: Callable[[Any], Iterator[Any]]) -> Work:
    """Batches of rows of tokens, 0 where there are none; each waited for when the next one has been asked for."""
    import jax

    place = _place()

    def arrived() -> Iterator[Any]:
        before: Any = None
        for batch in batches(place):
            if before is not None:
                yield jax.block_until_ready(before)
            before = batch
        yield jax.block_until_ready(before)

    def checksum(given: Any) -> str:
        """How many there are of each token."""
        return in_order([sum(np.bincount(np.asarray(batch).reshape(-1), minlength=256)[1:] for batch in given)])

    return delivering(arrived, checksum=checksum)


def _ours(file: str, place: Any) -> Iterator[Any]:
    import distinput as di

    chats = di.data.JsonLinesDataset(file).as_text().as_rows(["messages"])
    packed = chats.map(lambda chat: {"ids": tokens(chat)}).pack(LENGTH).map(lambda row: row["ids"]).batch(ROWS)
    return (batch for batch, _ in di.interop.jax.batches(packed, place, tail="pad"))


def _loaded(file: str) -> list[Any]:
    with open(file) as lines:
        return list(map(json.loads, lines))


def _grain(file: str, place: Any) -> Iterator[Any]:
    import grain.python as grain
    import jax
    from grain.experimental import FirstFitPackIterDataset

    chats = grain.MapDataset.source(_loaded(file)).map(lambda chat: {"ids": tokens(chat)})
    packed = FirstFitPackIterDataset(chats.to_iter_dataset(), length_struct={"ids": LENGTH}, num_packing_bins=64)
    for batch in packed.batch(ROWS, drop_remainder=False):
        yield jax.device_put(_whole(batch["ids"]), place)


def _by_hand(file: str, folder: Path, place: Any) -> Iterator[Any]:
    import datasets
    import jax

    chats: Any = datasets.Dataset.from_json(file, cache_dir=str(folder / "cache"))
    rows, row, filled = [], np.zeros(LENGTH, np.int32), 0
    for chat in chats:
        ids = tokens(chat)
        if filled + len(ids) > LENGTH:
            rows.append(row)
            row, filled = np.zeros(LENGTH, np.int32), 0
        row[filled : filled + len(ids)] = ids
        filled += len(ids)
        if len(rows) == ROWS:
            yield jax.device_put(np.stack(rows), place)
            rows = []
    yield jax.device_put(_whole(np.stack([*rows, row])), place)


def _whole(rows: Any) -> Any:
    """With empty rows behind the last ones of a pass."""
    return np.concatenate([rows, np.zeros((-len(rows) % ROWS, LENGTH), np.int32)])
