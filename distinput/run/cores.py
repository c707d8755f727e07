# SPDX-License-Identifier: Apache-2.0
"""The cores that this process may use, and whether it is a worker of PyTorch's DataLoader."""

import os
import sys
from dataclasses import dataclass

__all__ = ["LoaderWorker", "cores", "loader_worker"]


# ----------------------------------------------------------------------------
# The cores that this process may use.
# ----------------------------------------------------------------------------


def cores() -> int:
    """The cores that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ----------------------------------------------------------------------------
# The worker processes of PyTorch's DataLoader, seen from inside one of them; PyTorch is never imported for this.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoaderWorker:
    """A process that a DataLoader reads in.

    Args:
      number: which of them this is, from 0.
      count: how many the DataLoader has.
      lasts: True if it lives for all epochs (`persistent_workers=True`); otherwise every epoch has new workers.
      draw: a number that all workers of an epoch share and that PyTorch draws anew for each, as `torch.manual_seed` has it.
    """

    number: int
    count: int
    lasts: bool
    draw: int


def loader_worker() -> LoaderWorker | None:
    """The DataLoader worker that this process is; None in any other process."""
    ask = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    info = None if ask is None else ask()
    if info is None:
        return None
    return LoaderWorker(int(info.id), int(info.num_workers), _lasts(), int(info.seed) - int(info.id))


def _lasts() -> bool:
    """Read from the loop that every such process runs, since PyTorch tells it nowhere else."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return bool(frame.f_locals.get("persistent_workers", False))
