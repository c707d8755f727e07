# SPDX-License-Identifier: Apache-2.0
"""MPI as its programs expect it to be used; docs/conventions.md lists the lines."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conventions.imports import imported
from tests.engines.installed import need
from tests.engines.processes import mpiexec

ROOT = Path(__file__).parents[2]
MPI = ROOT / "distinput" / "distribute" / "engines" / "mpi.py"

PICKLING = {
    *("allgather", "allreduce", "alltoall", "bcast", "bsend", "gather", "ibsend", "irecv", "isend", "issend", "recv"),
    *("reduce", "scatter", "send", "sendrecv", "ssend"),
}


def test_arrays_are_sent_as_buffers() -> None:
    """The lower-case methods of mpi4py pickle what they send; only the upper-case ones are called."""
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(MPI.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert called & PICKLING == set()
    used = {
        node.attr for node in ast.walk(ast.parse(MPI.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert {"Iallgather", "Iallgatherv", "Iallreduce", "Ibcast", "Isend"} <= used


@pytest.mark.fresh_process
def test_mpi_is_not_started_by_an_import() -> None:
    assert "distinput" in imported()
    assert "mpi4py" not in imported()


def test_a_communicator_is_passed_in(tmp_path: Path) -> None:
    need("mpi")
    program = tmp_path / "turned.py"
    program.write_text(
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "import distinput as di\n"
        "from distinput.distribute.engines.mpi import group_of\n"
        "world = MPI.COMM_WORLD\n"
        "turned = world.Split(0, key=-world.rank)  # the last process of the job is the first one of the group\n"
        "with di.distribute.MultiWorkerMirroredStrategy(devices=['CPU:0'], collectives=group_of(turned)) as strategy:\n"
        "    ranks = strategy.gather(di.distribute.PerReplica([np.array([world.rank])]), axis=0)\n"
        "if world.rank == 0: print(ranks.tolist())\n"
    )
    command = [*mpiexec(), "-n", "2", sys.executable, str(program)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT, env=environ)
    assert run.stdout == "[1, 0]\n", run.stderr
