# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over a dataset of distinput, as users wrap it."""

from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import distinput as di

__all__ = ["epochs"]

SIZE = 12


class View(IterableDataset):  # type: ignore[misc, type-arg]
    """Iterates a dataset, or a shard of it in each worker.

    Args:
      dataset: what is iterated.
      sharded: each worker takes its own shard.
      tells: it says which pass it is.
      rank: of the process of the DataLoader, among so many `ranks` that share the elements.
      ranks: of which this is one.
    """

    def __init__(self, dataset: Any, *, sharded: bool, tells: bool, rank: int = 0, ranks: int = 1) -> None:
        self.dataset, self.sharded, self.tells, self.epoch = dataset, sharded, tells, 0
        self.rank, self.ranks = rank, ranks

    def __iter__(self) -> Any:
        info, dataset = get_worker_info(), self.dataset
        if self.sharded and info is not None:
            dataset = dataset.shard(self.ranks * info.num_workers, self.rank * info.num_workers + info.id)
        return dataset.iter_pass(self.epoch) if self.tells else iter(dataset)


def epochs(
    workers: int, method: str | None = None, *, sharded: bool = True, tells: bool = False, persistent: bool = False,
    reshuffle: bool = True, seed: int | None = 1, torch_seed: int | None = None, count: int = 2,
    rank: int = 0, ranks: int = 1, before: bool = False,
) -> list[list[int]]:  # fmt: skip
    """The elements of some epochs of a DataLoader, one by one."""
    dataset = di.data.Dataset.range(SIZE).shuffle(SIZE, seed=seed, reshuffle_each_iteration=reshuffle)
    if before:  # the share of the rank is taken where the dataset is made
        dataset, rank, ranks = dataset.shard(ranks, rank), 0, 1
    view = View(dataset, sharded=sharded, tells=tells, rank=rank, ranks=ranks)
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
