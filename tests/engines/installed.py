# SPDX-License-Identifier: Apache-2.0
"""Which engines can be tested here, and why others cannot."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

PACKAGES = {"jax": ("jax",), "mpi": ("mpi4py",), "torch": ("torch",)}


def missing(engine: str) -> str:
    """Why an engine cannot be tested, empty if it can."""
    lacks = [name for name in PACKAGES[engine] if importlib.util.find_spec(name) is None]
    if lacks:
        return f"engine {engine!r}: {', '.join(lacks)} is not installed; `make test` installs it"
    if engine == "mpi" and not Path(sys.executable).with_name("mpiexec").exists() and shutil.which("mpiexec") is None:
        return "engine 'mpi': there is no mpiexec; `make test` installs it"
    return ""


def need(engine: str) -> None:
    """Leave the test out, with the reason, where the engine cannot be tested."""
    if why := missing(engine):
        pytest.skip(why)
