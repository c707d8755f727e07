# SPDX-License-Identifier: Apache-2.0
"""What does it cost to pack sequences into rows of one length, and how full do the rows get?"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "sequences of log-normal lengths from 10 to 2000 int32: pack(2048), with segment ids and positions"
NOTES = """
The lengths have a median of 148 tokens, or of 403 in the second case, and a sigma of 1. `fill` is the part of all rows that
is not padding. Every contender must deliver every sequence once, whole, with its positions, in any row.
"""
LENGTH = 2048
BINS = 64
"""Open rows of Grain's packers; with more of them rows are fuller, and it takes longer."""


def prepare(folder: Path, scale: float) -> None:
    """Nothing: the sequences are in memory."""


def sequences(count: int, mean: float) -> tuple[Any, Any]:
    """Values [m] and lengths [count]; `mean` is that of the logarithm of the lengths."""
    random = np.random.default_rng(SEED)
    sizes = np.clip(random.lognormal(mean, 1, count), 10, 2000).astype(np.int64)
    return random.integers(1, 30_000, int(sizes.sum()), np.int32), sizes


def cases(folder: Path, scale: float) -> list[Case]:
    """Shorter and longer sequences."""
    return [
        _case(name, scaled(count, scale, 500), mean)
        for name, count, mean in (("short", 40_000, 5.0), ("long", 20_000, 6.0))
    ]


def _case(name: str, count: int, mean: float) -> Case:
    values, _ = sequences(count, mean)
    return Case(
        name,
        {"sequence": count, "token": len(values), "byte": 12 * len(values)},
        [
            Contender("distinput, best fit", "ours", lambda: _ours(count, mean, "best_fit")),
            Contender("numpy, writing as many bytes, warm", "limit", lambda: _writing(count, mean)),
            Contender("grain, first fit", "peer", lambda: _grain(count, mean, best=False), ("grain",), 10.0),
            Contender("grain, best fit", "peer", lambda: _grain(count, mean, best=True), ("grain",), 10.0),
        ],
    )


def _delivering(rows: Any) -> Work:
    """Rows as (tokens, segment ids, positions), compared by the sequences in them."""
    work = delivering(rows, plain=_sequences_of, checksum=in_any_order)
    return Work(work.once, work.check, partial(_fill, rows))


def _sequences_of(row: Any) -> tuple[Any, Any]:
    """For each sequence of a row, a number that depends on its tokens and positions, and its length."""
    tokens, segments, positions = row
    used = int((segments > 0).sum())
    starts = np.flatnonzero(np.diff(segments[:used], prepend=0))
    mixed = (tokens[:used].astype(np.uint64) + np.uint64(1)) * (
        positions[:used].astype(np.uint64) * np.uint64(2654435761) + np.uint64(1)
    )
    return np.add.reduceat(mixed, starts), np.diff(starts, append=used)


def _fill(rows: Any) -> dict[str, float]:
    used = total = 0
    for _, segments, _ in rows():
        used += int((segments > 0).sum())
        total += segments.size
    return {"fill": used / total}


def _ours(count: int, mean: float, strategy: str) -> Work:
    import distinput as di

    values, sizes = sequences(count, mean)
    rows = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_row_lengths(values, sizes))
    dataset = rows.pack(LENGTH, strategy)
    return _delivering(lambda: dataset)


def _grain(count: int, mean: float, *, best: bool) -> Work:
    import grain.experimental
    import grain.python as grain

    values, sizes = sequences(count, mean)
    parts = np.split(values, np.cumsum(sizes)[:-1])
    packer = grain.experimental.BestFitPackIterDataset if best else grain.experimental.FirstFitPackIterDataset
    source = grain.MapDataset.source([{"ids": part} for part in parts]).to_iter_dataset(
        grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    )
    packed = packer(source, length_struct={"ids": LENGTH}, num_packing_bins=BINS, shuffle_bins=False)

    def rows() -> Iterator[Any]:
        for row in packed:
            yield row["ids"], row["ids_segment_ids"], row["ids_positions"]

    return _delivering(rows)


def _writing(count: int, mean: float) -> Work:
    """The values, and two more numbers for each token, copied to memory that is warm: a million tokens at a time."""
    values, _ = sequences(count, mean)
    most = 1 << 20
    buffers = [np.empty(most, np.int32) for _ in range(3)]
    numbers = np.arange(most, dtype=np.int32)

    def once() -> None:
        for first in range(0, len(values), most):
            part = values[first : first + most]
            for buffer, source in zip(buffers, (part, numbers, numbers), strict=True):
                np.copyto(buffer[: len(part)], source[: len(part)])

    return Work(once)
