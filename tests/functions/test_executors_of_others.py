# SPDX-License-Identifier: Apache-2.0
"""`map(executor=)` with the executors of Dask, loky, mpi4py, Ray and Python's interpreters, each in a program of its own."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engines.processes import mpiexec, start, wait_for

JOB = "tests.functions.executor_job"


def said(words: Sequence[str], folder: Path) -> tuple[int | None, str]:
    """How a job ended, and what it printed."""
    with (folder / "said").open("w+b") as file:
        (code,) = wait_for([start(words, {}, file)], 90)
        file.seek(0)
        return code, file.read().decode(errors="replace")


def told(words: Sequence[str], folder: Path) -> dict[str, Any]:
    """What came of the maps of a job."""
    code, text = said(words, folder)
    assert code == 0, text[-3000:]
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found


def right(found: dict[str, Any]) -> None:
    assert found["doubled"] == list(range(0, 400, 2))
    assert found["before"] == list(range(0, 14, 2))
    assert found["after"] == list(range(14, 60, 2))
    assert found["until"] == [2, 3, 4, 6, 12]
    assert "on element np.int64(5)" in found["error"]
    assert "in a worker of the executor" in found["error"]
    assert found["skipped"] == [2, 3, 4, 6, 12, -12, -6, -4]
    assert found["distinct"] == 100, "each element is a call of its own"
    assert found["abandoned"]["running"] == 0
    assert found["abandoned"]["sent"] <= 3 + 2 * found["workers"]


def test_dask(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    found = told([sys.executable, "-m", JOB, "dask", str(tmp_path)], tmp_path)
    right(found)
    assert found["processes"] > 0
    assert found["workers"] == 2
    assert found["filled"] == ""
    assert found["lost"] == list(range(0, 18, 2)), "Dask starts the worker anew, and what it had is called again"
    assert (tmp_path / "mark").exists()


def test_dask_on_threads(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    found = told([sys.executable, "-m", JOB, "dask on threads"], tmp_path)
    right(found)
    assert found["workers"] == 2
    assert "fill one array, buffer, over each other's results" in found["filled"]


def test_loky(tmp_path: Path) -> None:
    pytest.importorskip("loky", reason="loky is not installed; `make test` installs it")
    found = told([sys.executable, "-m", JOB, "loky", str(tmp_path)], tmp_path)
    right(found)
    assert 0 < found["processes"] <= 2
    assert found["workers"] == 2
    assert found["lost"] == list(range(0, 18, 2)), "a new pool takes the place of the broken one"
    assert (tmp_path / "mark").exists()


@pytest.mark.slow
def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="ray is not installed (`pip install 'distinput[ray]'`)")
    found = told([sys.executable, "-m", JOB, "ray", str(tmp_path)], tmp_path)
    right(found)
    assert found["processes"] > 0
    assert found["lost"] == list(range(0, 18, 2)), "what the worker had is sent again"
    assert (tmp_path / "mark").exists()


def test_mpi4py(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed (`pip install 'distinput[mpi]'`)")
    launched = (*mpiexec(), "-n", "3", sys.executable, "-m", "mpi4py.futures", "-m", JOB, "mpi")
    found = told(launched, tmp_path)
    right(found)
    assert 0 < found["processes"] <= 2
    assert found["workers"] == 2


@pytest.mark.skipif(sys.version_info < (3, 14), reason="InterpreterPoolExecutor came with Python 3.14")
def test_interpreters(tmp_path: Path) -> None:
    """NumPy decides whether it may be loaded there; where it may not, that is said."""
    code, text = said([sys.executable, "-m", JOB, "interpreters"], tmp_path)
    if code == 0:
        right(json.loads(text.strip().splitlines()[-1]))
    else:
        assert "UnavailableError: map: the executor lost" in text
        assert "interpreter" in text
