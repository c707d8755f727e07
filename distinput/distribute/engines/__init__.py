# SPDX-License-Identifier: Apache-2.0
"""Engines that move bytes between workers. Strategies ask for one by name and see only `Collectives`."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module

from distinput.distribute.collectives.agreements import Agreement
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.engines.installed import why_not
from distinput.errors import Aborted, CollectiveError, CollectiveTimeout, EngineMissing, Mismatch, PeerLost, Poisoned

__all__ = [
    "COLLECTIVES",
    "Aborted",
    "Agreement",
    "CollectiveError",
    "CollectiveTimeout",
    "Collectives",
    "EngineMissing",
    "Mismatch",
    "PeerLost",
    "Poisoned",
    "find_engine",
    "open_collectives",
]

COLLECTIVES: dict[str, str] = {
    "jax": "distinput.distribute.engines.jax:open_group",
    "local": "distinput.distribute.engines.local:open_group",
    "mpi": "distinput.distribute.engines.mpi:open_group",
    "torch": "distinput.distribute.engines.torch:open_group",
}


def open_collectives(
    engine: str,
    *,
    rank: int | None = None,
    size: int | None = None,
    address: str | None = None,
    timeout: float = 60.0,
    name: str = "distinput",
) -> Collectives:
    """The workers of this job, through an engine that is imported on first use; every worker calls this.

    Args:
      engine: a key of `COLLECTIVES`; see `find_engine`.
      rank: this worker; where the engine was started by a launcher or by the program it need not be given, and must
        not be another one.
      size: how many workers, likewise.
      address: `host:port` of rank 0, for the engines that need no launcher.
      timeout: seconds that this call, and then each call of the group, waits for the others.
      name: shown in messages; groups that are open at the same time have different ones.

    Raises:
      ValueError: an unknown engine, or a rank, size or address that cannot be.
      EngineMissing: its package is not installed; the message says what to install.
      CollectiveTimeout: the others did not come.
      CollectiveError: see its kinds.

    >>> with open_collectives("local") as group:
    ...     group.all_reduce([1.5, 2.5])
    array([1.5, 2.5])
    """
    if engine not in COLLECTIVES:
        raise ValueError(f"unknown engine {engine!r}; known are {', '.join(sorted(COLLECTIVES))}")
    if size is not None and (size < 1 or not 0 <= (rank or 0) < size):
        raise ValueError(f"engine {engine!r}: rank must be from 0 to size - 1, got rank {rank} of {size}")
    module, function = COLLECTIVES[engine].split(":")
    group: Collectives = getattr(import_module(module), function)(rank, size, address, timeout=timeout, name=name)
    return group


def find_engine(environment: Mapping[str, str] | None = None) -> str:
    """The engine for a job of several workers that does not name one.

    The one that the program has initialised; else MPI, if mpiexec started this process; else torch, which needs no
    launcher.

    Args:
      environment: instead of that of the process.

    Raises:
      EngineMissing: none can be used; the message says of each one what is there, why it is not taken, and the cure.
    """
    environment = os.environ if environment is None else environment
    for engine in ("torch", "jax"):
        # Only a program that imported it can have initialised it, and then asking costs nothing.
        if engine in sys.modules:
            module = COLLECTIVES[engine].split(":")[0]
            if import_module(module).is_running():
                return engine
    reasons = {engine: why_not(engine, environment) for engine in ("mpi", "torch", "jax")}
    for engine, reason in reasons.items():
        if not reason:
            return engine
    told = "; ".join(f"{engine!r}: {reason}" for engine, reason in reasons.items())
    raise EngineMissing(
        f"several workers need an engine, and there is none that can be used: {told}. The quickest way is "
        "`pip install 'distinput[torch]'`, which needs no launcher"
    )
