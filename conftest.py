# SPDX-License-Identifier: Apache-2.0
"""What every docstring example may use, and where it runs."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# JAX reads this once, before its first computation: eight virtual devices on any machine.
_EIGHT = "--xla_force_host_platform_device_count=8"
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_EIGHT}".strip()

# What imports a package at the top has no examples to run where that package is not installed.
_WITHOUT_GRAIN = ["distinput/interop/grain.py"]
_WITHOUT_JAX = [
    "distinput/distribute/devices/jax*.py",
    "distinput/distribute/devices/pytrees.py",
    "distinput/distribute/tpu/*",
    "distinput/interop/jax/*",
    "tests/distribute/tpu/*",
    "tests/engines/jax_feed.py",
    "tests/engines/tpu_input.py",
    "tests/interop/jax/*",
]
_WITHOUT_RAY = ["distinput/interop/ray.py"]
_WITHOUT_TORCH = [
    "distinput/distribute/devices/pinned_copies.py",
    "distinput/distribute/devices/tensors.py",
    "distinput/distribute/devices/torch*.py",
    "distinput/interop/torch/*",
]
_WITHOUT_Z3 = ["tests/proofs/[!t]*.py", "tests/proofs/theorems.py"]  # its test files say why they are left out
collect_ignore_glob = [
    path
    for package, paths in (
        ("grain", _WITHOUT_GRAIN),
        ("jax", _WITHOUT_JAX),
        ("ray", _WITHOUT_RAY),
        ("torch", _WITHOUT_TORCH),
        ("z3", _WITHOUT_Z3),
    )
    if importlib.util.find_spec(package) is None
    for path in paths
]
# They import Keras, of which a process has one backend: tests run them in processes of their own.
collect_ignore_glob += ["distinput/interop/keras.py", "tests/interop/keras_loops.py"]


@pytest.fixture(autouse=True)
def _example(request: pytest.FixtureRequest) -> None:
    """Give a docstring example `distinput`, `di` and `np`, and an empty folder to write to."""
    if isinstance(request.node, pytest.DoctestItem):
        import numpy as np

        import distinput

        names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
        names.update(distinput=distinput, di=distinput, np=np)
        folder: Path = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)


@pytest.fixture(autouse=True)
def _open_tables() -> Iterator[None]:
    """What a test or an example registers is unknown to the next one."""
    from distinput.core.registry import Registry
    from distinput.data.dataset import Dataset
    from distinput.data.registration import OPS
    from distinput.distribute.devices import BACKENDS
    from distinput.distribute.engines import ENGINES
    from distinput.distribute.seats import SEATS
    from distinput.formats import FORMATS
    from distinput.rewrite.rules import FIRST, RULES
    from distinput.sharding.policies import POLICIES

    tables: list[Registry[Any]] = [BACKENDS, ENGINES, FORMATS, SEATS, OPS]
    known = [dict(table._known) for table in tables]
    rules, policies = (list(FIRST), list(RULES)), dict(POLICIES)
    yield
    for name in set(OPS) - set(known[-1]):
        delattr(Dataset, name)
    for table, names in zip(tables, known, strict=True):
        table._known = names
    FIRST[:], RULES[:] = rules
    for policy in set(POLICIES) - set(policies):
        del POLICIES[policy]
