# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over a data set of distinput, as users wrap it."""

from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import distinput as di

__all__ = ["epochs"]

SIZE = 12


class View(IterableDataset):  # type: ignore[misc, type-arg]
    """Iterates a data set, or a shard of it in each worker.

    Args:
      dataset: what is iterated.
      sharded: each worker takes its own shard.
      tells: it says which pass it is.
    """

    def __init__(self, dataset: Any, *, sharded: bool, tells: bool) -> None:
        self.dataset, self.sharded, self.tells, self.epoch = dataset, sharded, tells, 0

    def __iter__(self) -> Any:
        info, dataset = get_worker_info(), self.dataset
        if self.sharded and info is not None:
            dataset = dataset.shard(info.num_workers, info.id)
        return dataset.iter_pass(self.epoch) if self.tells else iter(dataset)


def epochs(
    workers: int, method: str | None = None, *, sharded: bool = True, tells: bool = False, persistent: bool = False,
    reshuffle: bool = True, seed: int | None = 1, torch_seed: int | None = None, count: int = 2,
) -> list[list[int]]:  # fmt: skip
    """The elements of some epochs of a DataLoader, one by one."""
    dataset = di.data.Dataset.range(SIZE).shuffle(SIZE, seed=seed, reshuffle_each_iteration=reshuffle)
    view = View(dataset, sharded=sharded, tells=tells)
    loader = DataLoader(
        view, batch_size=None, num_workers=workers, persistent_workers=persistent, multiprocessing_context=method
    )
    if torch_seed is not None:
        torch.manual_seed(torch_seed)
    found = []
    for epoch in range(count):
        view.epoch = epoch
        found.append([int(x) for x in loader])
    return found
