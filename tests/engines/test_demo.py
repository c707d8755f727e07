# SPDX-License-Identifier: Apache-2.0
"""`distinput demo --workers`: a job of real processes loses one, says so, and goes on to the same result without it."""

import re

import pytest

from distinput.cli import main


def said(output: str, name: str) -> list[str]:
    """What the output says after each line that begins with this name."""
    return re.findall(rf"^  {name}(?: {{2,}}| )(.*)$", output, re.MULTILINE)


@pytest.mark.parametrize(
    "engine, workers",
    [
        pytest.param("torch", 3, marks=pytest.mark.loads("torch")),
        ("mpi", 3),
        pytest.param("jax", 2, marks=pytest.mark.loads("jax")),
    ],
)
def test_every_check_passes(engine: str, workers: int, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["demo", "--quick", "--workers", str(workers), "--engine", engine])
    run = capfd.readouterr()
    assert status == 0, run.out + run.err
    assert re.search(r"^All 9 checks passed, in \d+\.\d seconds\.$", run.out, re.MULTILINE), run.out
    assert run.err == ""
    assert [line for line in run.out.splitlines() if len(line) > 100 or not line.isascii()] == []
    assert said(run.out, "records delivered") == [f"{3 * 1437:,} in 69 steps and 3 epochs"]
    assert said(run.out, "killed")[0].startswith(f"worker {workers - 1}, process ")
    ours, alone = said(run.out, "accuracy")[0].split(" %")[:2]
    assert float(ours) == float(alone) > 90
    if engine == "mpi":
        assert re.search(r"ended by mpiexec after \d+\.\d\d s with status [1-9]", run.out)
        assert "on signal 9" in " ".join(run.out.split())
    else:
        errors = re.findall(r"^  worker (\d), \d+\.\d\d s later +PeerLost: ", run.out, re.MULTILINE)
        assert [int(worker) for worker in errors] == list(range(workers - 1))
