# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with loader workers, simulated in this process: what PyTorch tells them, and the order of their turns."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils.data._utils.worker as torch_worker

from distinput.interop.torch import IterableView

__all__ = ["as_worker", "loaded", "worker_iterators"]


@contextmanager
def as_worker(number: int, count: int, draw: int) -> Iterator[None]:
    """This process is a loader worker, for as long as the context lasts; with a count of 0 it is none."""
    before = torch_worker._worker_info
    torch_worker._worker_info = (
        torch_worker.WorkerInfo(id=number, num_workers=count, seed=draw + number, dataset=None) if count else None
    )
    try:
        yield
    finally:
        torch_worker._worker_info = before


def worker_iterators(view: IterableView, workers: int, draw: int = 0, states: Any = None) -> list[Any]:
    """The iterators of all workers of a pass, each of its own copy of the view, as processes have it; one without workers."""
    found = []
    for number in range(max(1, workers)):
        with as_worker(number, workers, draw):
            mine = copy.copy(view) if workers else view
            if workers:
                mine._begin_anew()
            if states is not None:
                mine.load_state_dict(states[number][0])
            iterator = iter(mine)
            if states is not None:
                iterator.load_state_dict(states[number][1])
            found.append((mine, iterator))
    return found


def loaded(view: IterableView, workers: int, draw: int = 0) -> Iterator[Any]:
    """The steps of a pass, in the order in which a DataLoader gives them."""
    iterators = [iterator for _, iterator in worker_iterators(view, workers, draw)]
    turn = 0
    while iterators:
        turn %= len(iterators)
        with as_worker(turn, workers, draw):
            try:
                step = next(iterators[turn])
            except StopIteration:
                del iterators[turn]
                continue
        turn += 1
        yield step
