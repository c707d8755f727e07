# SPDX-License-Identifier: Apache-2.0
"""What does it cost to batch sequences of many lengths without padding?"""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled
from benchmarks.padded_batch import BATCH, sequences

QUESTION = "sequences of 10 to 2000 int32 in memory: ragged_batch(64), in order and shuffled"
NOTES = """
In order, a batch is a view of the values; only its row splits are computed. Shuffled, the values of a batch are gathered
when it is handed out; the limit does that in an order that it has beforehand. The table of `padded_batch` has the same
sequences with padding.
"""


def prepare(folder: Path, scale: float) -> None:
    """Nothing: the sequences are in memory."""


def cases(folder: Path, scale: float) -> list[Case]:
    """In order, and shuffled over all rows."""
    count = scaled(20_000, scale, 300)
    _, _, sizes = sequences(count)
    units = {"batch": -(-count // BATCH), "row": count, "byte": 4 * int(sizes.sum())}
    return [
        Case(
            "in order",
            units,
            [
                Contender("distinput", "ours", lambda: _ours(count, shuffled=False)),
                Contender("numpy, views", "limit", lambda: _views(count)),
                Contender("numpy, concatenate", "peer", lambda: _concatenated(count, shuffled=False), (), 3.0),
                Contender("pyarrow, slices", "peer", lambda: _slices(count), (), 3.0),
            ],
        ),
        Case(
            "shuffled",
            units,
            [
                Contender("distinput", "ours", lambda: _ours(count, shuffled=True)),
                Contender("copies of rows, compiled", "limit", lambda: _copied(count), ("numba",)),
                Contender("numpy, concatenate", "peer", lambda: _concatenated(count, shuffled=True), (), 1.0),
                Contender("pyarrow, take", "peer", lambda: _taken(count), (), 1.0),
            ],
        ),
    ]


def _ours(count: int, *, shuffled: bool) -> Work:
    import distinput as di

    flat, _, sizes = sequences(count)
    rows = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_row_lengths(flat, sizes))
    dataset = (_mixed(rows) if shuffled else rows).ragged_batch(BATCH)
    return delivering(lambda: dataset, plain=lambda batch: (batch.values, batch.row_splits))


def _mixed(dataset: Any) -> Any:
    return dataset.global_shuffle(seed=SEED, reshuffle_each_iteration=False)


def _order(count: int) -> Any:
    """The order of `_mixed`."""
    import distinput as di

    return np.array(_mixed(di.data.Dataset.range(count)).to_list())


def _groups(count: int) -> Iterator[slice]:
    return (slice(first, min(first + BATCH, count)) for first in range(0, count, BATCH))


def _views(count: int) -> Work:
    flat, _, sizes = sequences(count)
    splits = np.append(0, sizes.cumsum())

    def batches() -> Iterator[Any]:
        for rows in _groups(count):
            first, end = splits[rows.start], splits[rows.stop]
            yield flat[first:end], splits[rows.start : rows.stop + 1] - first

    return delivering(batches)


def _concatenated(count: int, *, shuffled: bool) -> Work:
    flat, starts, sizes = sequences(count)
    order = _order(count) if shuffled else np.arange(count)
    rows = [flat[start : start + size] for start, size in zip(starts[order], sizes[order], strict=True)]

    def batches() -> Iterator[Any]:
        for group in _groups(count):
            part = rows[group]
            yield np.concatenate(part), np.cumsum([0, *map(len, part)])

    return delivering(batches)


def _copied(count: int) -> Work:
    """A compiled loop that calls `memcpy` for each row of a batch, and does nothing else."""
    from numba import njit

    flat, starts, sizes = sequences(count)
    order = _order(count)
    copy = ctypes.CDLL(None).memcpy
    copy.argtypes, copy.restype = [ctypes.c_size_t] * 3, ctypes.c_size_t

    @njit("(int64[::1], int64[::1], int64)")  # type: ignore[untyped-decorator]
    def gather(addresses: Any, splits: Any, into: int) -> None:
        for i in range(addresses.size):
            copy(into + 4 * splits[i], addresses[i], 4 * (splits[i + 1] - splits[i]))

    def batches() -> Iterator[Any]:
        addresses, lengths = flat.ctypes.data + 4 * starts[order], sizes[order]
        for group in _groups(count):
            splits = np.zeros(group.stop - group.start + 1, np.int64)
            lengths[group].cumsum(out=splits[1:])
            values = np.empty(splits[-1], np.int32)
            gather(addresses[group], splits, values.ctypes.data)
            yield values, splits

    return delivering(batches)


def _lists(count: int) -> Any:
    import pyarrow as pa

    flat, _, sizes = sequences(count)
    return pa.LargeListArray.from_arrays(pa.array(np.append(0, sizes.cumsum())), pa.array(flat))


def _parts(lists: Any) -> tuple[Any, Any]:
    offsets = lists.offsets.to_numpy()
    return lists.flatten().to_numpy(), offsets - offsets[0]


def _slices(count: int) -> Work:
    lists = _lists(count)
    return delivering(lambda: (_parts(lists[group]) for group in _groups(count)))


def _taken(count: int) -> Work:
    lists, order = _lists(count), _order(count)
    return delivering(lambda: (_parts(lists.take(order[group])) for group in _groups(count)))
