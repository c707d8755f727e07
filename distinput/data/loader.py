# SPDX-License-Identifier: Apache-2.0
"""Iterating a dataset in worker processes of PyTorch's DataLoader: pass numbers, and warnings of silent mistakes."""

import os
import sys
import warnings

from distinput.errors import InputWarning
from distinput.plan.families import walk_made
from distinput.plan.node import Node, walk
from distinput.run.threads import LoaderWorker, loader_worker

_NEAR = 6
"""Frames between a method of a dataset and the DataLoader that calls it, at most."""

_DRAWS = 1 << 31
"""Range of the pass numbers that are drawn for an epoch of a DataLoader."""


def first_pass(node: Node, begun: int) -> int:
    """The number of the first pass in this process, if the program does not give one.

    A DataLoader starts new workers for each epoch, each a copy of the process that has counted `begun` passes. To give epochs
    different orders, and all workers of an epoch the same one, the number is one that PyTorch draws for the epoch. Other
    processes that share the elements draw different numbers: then all epochs have the same order, and the first worker warns.

    Args:
      node: the pipeline.
      begun: the number of passes that the parent process had begun.
    """
    worker = loader_worker()
    if worker is None or worker.lasts or not _reshuffles(node):
        return begun
    if not _is_shared(node, worker):
        return begun + worker.draw % _DRAWS
    if not worker.number:
        _warn(
            "every epoch of this DataLoader will have the same order: it starts its workers anew for each epoch, and a number "
            "that PyTorch draws for the epoch is another one in the other processes that share the elements; give the "
            "DataLoader persistent_workers=True, or say which pass it is: dataset.iter_pass(epoch)"
        )
    return begun


def look_around(node: Node) -> None:
    """Warn, in the first worker of a DataLoader, that every worker delivers all elements.

    Args:
      node: the pipeline, made by another process.
    """
    worker = loader_worker()
    if worker is None or worker.number:
        return
    if worker.count > 1 and not any(_divides(step) for step in walk(node)):
        _warn(
            f"each of the {worker.count} workers of this DataLoader reads the whole dataset, so unless you divide its elements "
            f"yourself each one is delivered {worker.count} times; let each worker iterate "
            "dataset.shard(info.num_workers, info.id), where info is torch.utils.data.get_worker_info()"
        )


def look_again(node: Node, number: int) -> None:
    """Warn, in the first worker of a DataLoader, that a pass is repeated because its number was set in another process.

    Args:
      node: the pipeline.
      number: the number of the pass, the same as that of the previous one.
    """
    worker = loader_worker()
    if worker is not None and not worker.number and worker.lasts and _reshuffles(node):
        _warn(
            f"iter_pass: pass {number} begins again in a worker of a DataLoader with persistent_workers=True, which does not "
            "see what the main process sets later, so every epoch will have the same order; such a worker counts the "
            "passes itself: iterate the dataset without a number"
        )


def look_at_positions(node: Node) -> None:
    """Warn that a DataLoader takes elements by position from a dataset that has another order in every pass.

    Args:
      node: the pipeline.
    """
    worker = loader_worker()
    if _is_in_loader() and _reshuffles(node) and (worker is None or not worker.number):
        warnings.warn(
            "a DataLoader reads this dataset by position, in the order of its first pass, so every epoch has the same order; "
            "give it interop.torch.IterableView(dataset) and batch_size=None, or leave the shuffle to the DataLoader "
            "(shuffle=True)",
            InputWarning,
            stacklevel=6,
        )


def advice() -> str:
    """What to add to an error of a dataset that a DataLoader cannot read as it is; empty for anybody else."""
    if not _is_in_loader():
        return ""
    return (
        " A DataLoader reads such a dataset through a view: torch.utils.data.DataLoader(interop.torch.IterableView(dataset), "
        "batch_size=None), or interop.torch.Loader(dataset)"
    )


def _is_in_loader() -> bool:
    """True if PyTorch's DataLoader or a sampler of it made this call."""
    if "torch.utils.data" not in sys.modules:
        return False
    frame, depth = sys._getframe(2), 0
    while frame is not None and depth < _NEAR:
        if frame.f_globals.get("__name__", "").startswith("torch.utils.data."):
            return True
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return False


def _reshuffles(node: Node) -> bool:
    return any(step.reshuffles for step in walk_made(node))


def _is_shared(node: Node, worker: LoaderWorker) -> bool:
    """True if processes other than the workers of this DataLoader, such as ranks of a job, may share the elements."""

    def shares(step: Node) -> int:
        return int(getattr(step, "num_shards", 1)) * max(map(shares, step.inputs), default=1)

    elsewhere = any(getattr(step, "num_shards", 1) > 1 and step.origin.process != os.getpid() for step in walk(node))
    several = os.environ.get("WORLD_SIZE", "1") not in ("", "1")  # set by torchrun
    return elsewhere or several or shares(node) not in (1, worker.count)


def _divides(step: Node) -> bool:
    """True if the step was made for one of several workers, or in this worker, which knows its number."""
    return getattr(step, "num_shards", 1) != 1 or step.origin.process == os.getpid()


def _warn(text: str) -> None:
    warnings.warn(text, InputWarning, stacklevel=5)  # at the line that iterates
