# SPDX-License-Identifier: Apache-2.0
"""Programs that meet between devices are started one after the other where devices share threads.

The devices of a CPU run on one pool of threads, and a device that waits for the others keeps its thread. Two programs that do
not depend on each other could so use up all threads while one device has not begun: neither would ever end. On accelerators
each device takes its programs in order, and nothing is waited for.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import jax

from distinput.distribute.tpu.mesh import ReplicaMesh

__all__ = ["in_turn"]

T = TypeVar("T")

_lock = Lock()
_last: list[Any] = []


def in_turn(mesh: ReplicaMesh, start: Callable[[], T]) -> T:
    """Start a program when the one before has ended, if its devices are those of a CPU.

    Args:
      mesh: the devices.
      start: starts the program and returns its results, which need not be there yet.
    """
    if mesh.devices.size == 1 or mesh.devices[0, 0].platform != "cpu":
        return start()
    with _lock:
        for array in _last:
            if not array.is_deleted():
                array.block_until_ready()
        _last.clear()
        made = start()
        # One result is enough to wait for all devices, and the smallest keeps the least memory in use.
        arrays = [x for x in jax.tree.leaves(made) if isinstance(x, jax.Array)]
        if arrays:
            _last.append(min(arrays, key=lambda x: x.nbytes))
    return made
