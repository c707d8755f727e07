# SPDX-License-Identifier: Apache-2.0
"""Loaders of Ray Data, whose driver hands out the parts of all ranks, which are threads here."""

from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["dropping_split", "streaming_split"]

_LOCK = Lock()


def streaming_split(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """Every rank as much as comes, as without Ray Train."""
    with _LOCK:
        return _Batches(_splits(records, ranks, seed, equal=False)[rank], batch)


def dropping_split(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """Equally many records for each rank, as Ray Train splits."""
    with _LOCK:
        return _Batches(_splits(records, ranks, seed, equal=True)[rank], batch)


class _Batches:
    """The batches of a rank, anew for each pass."""

    def __init__(self, part: Any, batch: int) -> None:
        self._part, self._batch = part, batch

    def __iter__(self) -> Iterator[Any]:
        return iter(self._part.iter_batches(batch_size=self._batch))


@cache
def _splits(records: int, ranks: int, seed: int, *, equal: bool) -> Any:
    import ray.data

    if not ray.is_initialized():
        ray.init(num_cpus=max(2, ranks), include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data.range(records).random_shuffle(seed=seed).streaming_split(ranks, equal=equal)
