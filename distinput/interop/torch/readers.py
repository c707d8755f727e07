# SPDX-License-Identifier: Apache-2.0
"""Who reads a view: what wraps it into batches or shards of its own, seen from the frames of the call."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["ViewReader", "reader", "starts_worker"]

_SHARDERS = ("DataLoaderDispatcher", "IterableDatasetShard")
_OF_WORKERS = "MultiProcessingDataLoaderIter"
_FETCHER = "_IterableDatasetFetcher"
_DEPTH = 100


@dataclass(frozen=True)
class ViewReader:
    """What reads a view.

    Args:
      collates: a DataLoader makes batches of the elements, since it was not given `batch_size=None`.
      sharder: the class of Accelerate that shards the elements for the processes; empty: none.
      unordered: a DataLoader delivers the steps of its workers in the order in which they are ready.
    """

    collates: bool = False
    sharder: str = ""
    unordered: bool = False


def reader() -> ViewReader:
    """What called a method of a view; PyTorch and Accelerate tell it nowhere else."""
    collates = unordered = False
    for caller in _callers():
        name = type(caller).__name__
        if name == _FETCHER:
            collates = collates or bool(getattr(caller, "auto_collation", False))
        elif name.endswith(_OF_WORKERS):
            unordered = unordered or not getattr(caller, "_in_order", True)
        elif name in _SHARDERS:
            return ViewReader(collates, name, unordered)
    return ViewReader(collates, unordered=unordered)


def starts_worker() -> bool:
    """True while a DataLoader starts a loader worker, in its process and in a forked worker; not for other processes."""
    return any(type(caller).__name__.endswith(_OF_WORKERS) for caller in _callers())


def _callers() -> Iterator[Any]:
    """The objects of these classes whose methods are being called, the innermost first.

    The locals of all other frames are left alone: before Python 3.13 a look at them keeps what they hold alive until they end.
    """
    frame, depth = sys._getframe(2), 0
    while frame is not None and depth < _DEPTH:
        owner = frame.f_code.co_qualname.rpartition(".")[0].rpartition(".")[2]
        if owner == _FETCHER or owner in _SHARDERS or owner.endswith(_OF_WORKERS):
            yield frame.f_locals.get("self")
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
