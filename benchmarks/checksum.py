# SPDX-License-Identifier: Apache-2.0
"""Checksums over delivered values, equal for equal values whatever library holds them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["arrays_of", "in_any_order", "in_order"]

Array = np.ndarray[Any, np.dtype[Any]]


def arrays_of(value: Any) -> Iterator[Array]:
    """The leaves of a nest as arrays: keys of dicts in sorted order, replicas one after the other, strings as bytes."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from arrays_of(value[key])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_of(item)
    elif isinstance(value, bytes | np.ndarray | np.generic | int | float):
        yield np.asarray(value, object if isinstance(value, bytes) else None)
    elif hasattr(value, "numpy"):
        yield from arrays_of(value.numpy())
    else:
        yield from arrays_of(value.values)  # what differs from replica to replica


def in_order(batches: Iterable[Any]) -> str:
    """Over values, dtypes, shapes and order."""
    digest = hashlib.blake2b(digest_size=8)
    for batch in batches:
        for array in arrays_of(batch):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            if array.dtype == object:
                items = array.reshape(-1).tolist()
                digest.update(np.fromiter(map(len, items), np.int64, len(items)).tobytes())
                digest.update(b"".join(items))
            else:
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def in_any_order(batches: Iterable[Any]) -> str:
    """Over the rows, each bound together over all leaves, in whatever order and batches they come."""
    total, rows = 0, 0
    for batch in batches:
        mixed = np.zeros(1, np.uint64)  # an array, for its sums wrap around in silence
        for index, array in enumerate(arrays_of(batch)):
            mixed = _mix(mixed + _row_hashes(array) * np.uint64(2 * index + 3))
            rows += len(array) if index == 0 else 0
        total = (total + int(mixed.sum(dtype=np.uint64))) % 2**64
    return f"{rows} rows {total:016x}"


def _row_hashes(array: Array) -> Array:
    """[n, ...] of numbers -> [n] of uint64: the row's bytes as 64-bit words, times odd numbers, summed."""
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), np.uint8)
    padded[:, : raw.shape[1]] = raw
    words = padded.view(np.uint64)
    factors = np.random.default_rng(1).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    hashes: Array = _mix((words * factors).sum(axis=1, dtype=np.uint64))
    return hashes


def _mix(words: Any) -> Any:
    words = (words ^ (words >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return words ^ (words >> np.uint64(29))
