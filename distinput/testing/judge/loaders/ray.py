# SPDX-License-Identifier: Apache-2.0
"""Loaders of Ray Data."""

import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["equal_split", "streaming_split"]

_MEMORY = 100 * 2**20
"""Bytes of its object store; it wants no less than 75 MiB."""

_ONE = threading.Lock()


def streaming_split(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int) -> Any:
    """`streaming_split` as it is by default."""
    return _Batches(_split(records, ranks, seed, epoch, equal=False)[rank], batch)


def equal_split(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int) -> Any:
    """With `equal=True`, as Ray Train gives it to its workers."""
    return _Batches(_split(records, ranks, seed, epoch, equal=True)[rank], batch)


class _Batches:
    """The batches of a part, as arrays."""

    def __init__(self, part: Any, batch: int) -> None:
        self._part, self._batch = part, batch

    def __iter__(self) -> Iterator[Any]:
        return iter(self._part.iter_batches(batch_size=self._batch, batch_format="numpy"))


def _split(records: int, ranks: int, seed: int, epoch: int, *, equal: bool) -> Any:
    with _ONE:  # all ranks, which are threads of one process, share the parts
        return _parts(records, ranks, seed, epoch, equal)


@cache
def _parts(records: int, ranks: int, seed: int, epoch: int, equal: bool) -> Any:
    import ray

    ray.init(address="local", num_cpus=2, object_store_memory=_MEMORY, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True  # without which its order differs from run to run
    context.enable_progress_bars = False
    shuffled = ray.data.range(records, override_num_blocks=5).random_shuffle(seed=1000 * seed + epoch)
    return shuffled.streaming_split(ranks, equal=equal)
