# SPDX-License-Identifier: Apache-2.0
"""`import distinput` is light: what is heavy, or may be missing, is loaded when it is first needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.import_time import load_elsewhere

# fsspec itself may be loaded (it is small); its remote parts, and these, may not.
HEAVY = (
    "dask",
    "distributed",
    "fsspec.implementations",
    "hypothesis",
    "jax",
    "llvmlite",
    "mpi4py",
    "numba",
    "pyarrow.dataset",
    "pytest",
    "ray",
    "tensorflow",
    "torch",
    "tqdm",
)


@pytest.fixture(scope="module")
def modules() -> list[str]:
    return load_elsewhere()["modules"]


@pytest.mark.parametrize("name", HEAVY)
def test_import_leaves_it_alone(name: str, modules: list[str]) -> None:
    assert [module for module in modules if module == name or module.startswith(f"{name}.")] == []


def test_the_figure_is_printed() -> None:
    script = Path(__file__).parent / "import_time.py"
    run = subprocess.run(
        [sys.executable, script, "--runs", "1"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "ms more" in run.stdout


def test_nothing_starts_at_import() -> None:
    program = "import threading, distinput; print(threading.active_count())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "1"
