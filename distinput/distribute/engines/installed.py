# SPDX-License-Identifier: Apache-2.0
"""Tells which engines can be used here and why others cannot, to choose an engine and to explain errors."""

import importlib.util
import re
from collections.abc import Mapping
from importlib import metadata

__all__ = ["MPIEXEC", "too_old", "why_unavailable"]

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
