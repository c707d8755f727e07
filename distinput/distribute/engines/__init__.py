# SPDX-License-Identifier: Apache-2.0
"""Engines move bytes between workers. Strategies ask for one by name and see only `Collectives`."""

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Protocol

from distinput.distribute.collectives.agreements import Agreement as Agreement
from distinput.distribute.collectives.channel import Channel as Channel
from distinput.distribute.collectives.collectives import Collectives as Collectives
from distinput.errors import Aborted as Aborted
from distinput.errors import CollectiveError as CollectiveError
from distinput.errors import CollectiveTimeout as CollectiveTimeout
from distinput.errors import EngineMissing as EngineMissing
from distinput.errors import Mismatch as Mismatch
from distinput.errors import PeerLost as PeerLost
from distinput.errors import Poisoned as Poisoned
from distinput.names.lazy import Registry

# ---- Tells which engines can be used here and why others cannot, to choose an engine and to explain errors

MPIEXEC = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Variables that mpiexec sets for the processes it starts."""

_PACKAGES = {"jax": "jax", "mpi": "mpi4py", "torch": "torch"}
_MINIMUM = {"jax": (0, 6), "mpi": (4, 1), "torch": (2, 6)}


def too_old(engine: str) -> str:
    """Why the version of an engine's package is too old; empty if it is not."""
    package, minimum = _PACKAGES[engine], _MINIMUM[engine]
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:  # perhaps built by hand; what it lacks will show
        return ""
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if found >= minimum:
        return ""
    return f"{package} {version} is installed, {'.'.join(map(str, minimum))} or newer is needed"


def why_unavailable(engine: str, environment: Mapping[str, str]) -> str:
    """Why an engine that the program has not started is not chosen; empty if it can be.

    Args:
      engine: "torch", "mpi" or "jax".
      environment: the variables of this process.
    """
    package = _PACKAGES[engine]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed (`pip install 'distinput[{engine}]'`)"
    if old := too_old(engine):
        return f"{old} (`pip install -U 'distinput[{engine}]'`)"
    if engine == "jax":
        return (
            "jax is installed, but has no coordinator: call jax.distributed.initialize first, or choose it by "
            "CommunicationOptions(implementation='jax')"
        )
    if engine == "mpi" and not any(name in environment for name in MPIEXEC):
        return "mpi4py is installed, but mpiexec did not start this process"
    return ""


# ---- Engines move bytes between workers. Strategies ask for one by name and see only `Collectives`


class OpenGroup(Protocol):
    """The entry point of an engine: every worker of a job calls it once, and gets the group of all workers.

    It finds the other workers, makes a `Channel` to them, and returns `Collectives(channel, name, timeout)`.

    Args:
      rank: this worker, from 0; None where the caller leaves it to the engine to know.
      size: how many workers, likewise.
      address: `host:port` of rank 0, None where the caller knows of none.
      timeout: seconds to wait for the others, here and in each call of the group.
      name: shown in messages; groups that are open at the same time have different ones.

    Raises:
      EngineMissing: a package that it needs is not installed; the message says what to install.
      ValueError: the engine knows another rank or size, or needs what was not given.
      CollectiveTimeout: the others did not come.
    """

    def __call__(
        self, rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str
    ) -> Collectives:
        """The group of this job."""


ENGINES: Registry[OpenGroup] = Registry(
    "engine",
    {
        "jax": "distinput.distribute.engines.jax:open_group",
        "local": "distinput.distribute.engines.local:open_group",
        "mpi": "distinput.distribute.engines.mpi:open_group",
        "torch": "distinput.distribute.engines.torch:open_group",
    },
)
"""The engines by name; `register_engine` adds one."""


def register_engine(name: str, open_group: str | OpenGroup) -> None:
    """Register an engine under a name, for `open_collectives` and `CommunicationOptions(implementation=name)`.

    Every worker registers it before it opens a group. `distinput.testing.check_collectives` tests a new engine.

    Args:
      name: lower-case letters, digits and underscores.
      open_group: an `OpenGroup`, or `package.module:attribute` of one, which is imported when it is first used.

    Raises:
      ValueError: the name or the place is malformed, or another engine has the name.
      TypeError: `open_group` can be neither called nor imported.

    >>> register_engine("threads", "distinput.distribute.engines.local:open_group")
    >>> with open_collectives("threads") as group:
    ...     group.size
    1
    """
    ENGINES.register(name, open_group)


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
      engine: one of `ENGINES`; see `find_engine`.
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
    if size is not None and (size < 1 or not 0 <= (rank or 0) < size):
        raise ValueError(f"engine {engine!r}: rank must be from 0 to size - 1, got rank {rank} of {size}")
    return ENGINES.find(engine)(rank, size, address, timeout=timeout, name=name)


def engine_runs(engine: str) -> bool:
    """True if the program has initialised an engine, "torch" or "jax", for its own use."""
    # Only a program that imported it can have initialised it, and then asking costs nothing.
    return engine in sys.modules and bool(import_module(f"distinput.distribute.engines.{engine}").is_running())


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
        if engine_runs(engine):
            return engine
    reasons = {engine: why_unavailable(engine, environment) for engine in ("mpi", "torch", "jax")}
    for engine, reason in reasons.items():
        if not reason:
            return engine
    told = "; ".join(f"{engine!r}: {reason}" for engine, reason in reasons.items())
    raise EngineMissing(
        f"several workers need an engine, and there is none that can be used: {told}. The quickest way is "
        "`pip install 'distinput[torch]'`, which needs no launcher"
    )
