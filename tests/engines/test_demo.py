# SPDX-License-Identifier: Apache-2.0
"""`distinput demo --workers`: a job of real processes loses one, says so, and goes on to the same result without it."""

import os
import re
import subprocess
import sys

import pytest


def demo(engine: str, workers: int) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "distinput", "demo", "--quick", "--workers", str(workers), "--engine", engine]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=110, env=dict(os.environ))


def said(output: str, name: str) -> list[str]:
    """What the output says after each line that begins with this name."""
    return re.findall(rf"^  {name}(?: {{2,}}| )(.*)$", output, re.MULTILINE)


@pytest.mark.parametrize("engine, workers", [("torch", 3), ("mpi", 3), ("jax", 2)])
def test_every_check_passes(engine: str, workers: int) -> None:
    run = demo(engine, workers)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"^All 9 checks passed, in \d+\.\d seconds\.$", run.stdout, re.MULTILINE), run.stdout
    assert run.stderr == ""
    assert [line for line in run.stdout.splitlines() if len(line) > 100 or not line.isascii()] == []
    assert said(run.stdout, "records delivered") == [f"{3 * 1437:,} in 69 steps and 3 epochs"]
    assert said(run.stdout, "killed")[0].startswith(f"worker {workers - 1}, process ")
    ours, alone = said(run.stdout, "accuracy")[0].split(" %")[:2]
    assert float(ours) == float(alone) > 90
    if engine == "mpi":
        assert re.search(r"ended by mpiexec after \d+\.\d\d s with status [1-9]", run.stdout)
        assert "on signal 9" in " ".join(run.stdout.split())
    else:
        errors = re.findall(r"^  worker (\d), (\d+\.\d\d) s later +PeerLost: ", run.stdout, re.MULTILINE)
        assert [int(worker) for worker, _ in errors] == list(range(workers - 1))
        assert all(float(seconds) < 10 for _, seconds in errors)
