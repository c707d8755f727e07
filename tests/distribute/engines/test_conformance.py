# SPDX-License-Identifier: Apache-2.0
"""Every engine in real processes equals the reference: the conformance suite, and what happens when a worker fails."""

import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from distinput.testing.collectives import CHECKS, SLOW_CHECKS, Report, check_processes, mpiexec
from distinput.testing.collectives import FAULTS as WHAT
from distinput.testing.ports import free_ports
from tests.depth import cases, sampled
from tests.engines.installed import need
from tests.engines.processes import NURSERIES, start_in_nursery
from tests.patience import PATIENCE

TIMEOUT = 2.0
"""Seconds that the groups wait for what does not come."""


def run(engine: str, size: int, **arguments: object) -> Report:
    launcher = mpiexec(size) if engine == "mpi" else ()
    start = partial(start_in_nursery, engine) if engine in NURSERIES else None
    return check_processes(engine, size, launcher=launcher, start=start, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "engine, size", sampled([("torch", 3), ("mpi", 3), ("jax", 2)], [("torch", 2), ("mpi", 2), ("jax", 3)])
)
def test_conformance(engine: str, size: int) -> None:
    need(engine)
    report = run(engine, size, limit=90)
    assert report.problems == [], report.output
    assert [outcome.passed for outcome in report.outcomes] == [list(CHECKS)] * size, report.output
    assert set(report.codes) == {0}, report.output


# JAX's own client ends every process whose service is gone, so there rank 0 is not killed; see below.
FAULTS = [
    *(("torch", 3, fault, 2) for fault in ("close", "come_too_late", "exit", "freeze", "freeze_in_agreement")),
    *(
        ("torch", 3, fault, 2)
        for fault in ("cross", "kill", "kill_in_agreement", "kill_in_transfer", "raise", "raise_in_agreement")
    ),
    *(("torch", 3, fault, 0) for fault in ("exit", "freeze", "kill", "raise")),
    *(("mpi", 3, fault, 2) for fault in ("close", "exit", "freeze", "freeze_in_agreement", "raise")),
    *(("mpi", 3, fault, 0) for fault in ("freeze", "raise")),
    *(
        ("jax", 3, fault, 2)
        for fault in ("close", "come_too_late", "cross", "exit", "freeze", "kill", "kill_in_agreement", "raise")
    ),
    *(("jax", 3, fault, 0) for fault in ("exit", "freeze", "raise")),
]


@pytest.mark.slow
@pytest.mark.parametrize("engine, size, fault, victim", FAULTS[:: cases(2, 1)])
def test_one_worker_fails(engine: str, size: int, fault: str, victim: int) -> None:
    need(engine)
    timeout = TIMEOUT if WHAT[fault].waits else PATIENCE  # an end that is seen may take a moment on a busy machine
    report = run(engine, size, fault=fault, victim=victim, timeout=timeout)
    assert report.problems == [], report.output
    others = [outcome for outcome in report.outcomes if outcome.rank != victim]
    assert [outcome.passed for outcome in others] == [[fault]] * (size - 1), report.output
    blamed = [] if fault == "cross" else [victim]  # it takes two
    assert all(outcome.culprit == blamed for outcome in others), [outcome.message for outcome in others]
    if engine == "mpi":  # MPI's own end would wait for ever, so the job is ended
        assert report.codes != (0,)
    elif "freeze" not in fault or engine == "torch":  # a frozen service is more than JAX's own end can stand
        assert all(code == 0 for rank, code in enumerate(report.codes) if rank != victim), report.output
    assert None not in [code for rank, code in enumerate(report.codes) if rank != victim], report.output


@pytest.mark.slow
@pytest.mark.parametrize("engine, victim", [("mpi", 2), ("mpi", 0), ("jax", 0)])
def test_a_kill_that_ends_the_job(engine: str, victim: int) -> None:
    need(engine)
    report = run(engine, 3, fault="kill", victim=victim, timeout=PATIENCE)
    assert report.problems == [], report.output
    assert None not in report.codes, report.output
    assert any(report.codes), "the job must fail"


@pytest.mark.slow
def test_survivors_of_a_kill_go_on_where_mpi_is_told_to() -> None:
    need("mpi")
    launcher = mpiexec(3)
    if "--oversubscribe" not in launcher:
        pytest.skip("engine 'mpi': only Open MPI has --with-ft ulfm")
    launcher[1:1] = ["--with-ft", "ulfm"]
    report = check_processes("mpi", 3, fault="kill", timeout=PATIENCE, launcher=launcher)
    assert report.problems == [], report.output
    assert [(outcome.rank, outcome.culprit) for outcome in report.outcomes] == [(0, [2]), (1, [2])], report.output
    # Open MPI's own end after a loss seldom waits for ever, which the survivors then cut short: the job ends, but not well.
    assert report.codes != (None,), report.output


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
def test_who_does_not_wait_is_not_late(engine: str) -> None:
    need(engine)
    report = run(engine, 2, names=list(SLOW_CHECKS), timeout=4.0)  # a busy machine keeps a worker back for a second
    assert report.problems == [], report.output
    assert [outcome.passed for outcome in report.outcomes] == [list(SLOW_CHECKS)] * 2, report.output


NEVER_COMES = """
    from distinput.distribute.engines import CollectiveTimeout, open_collectives
    try:
        open_collectives(ENGINE, rank=0, size=2, address="127.0.0.1:" + PORT, timeout=2)
    except CollectiveTimeout as error:
        print(error)
"""


@pytest.mark.loads("torch")
def test_the_others_never_come(tmp_path: Path) -> None:
    need("torch")
    done = alone(NEVER_COMES.replace("ENGINE", "'torch'"), tmp_path)
    assert done.stdout.startswith("engine 'torch': rank 0 of 2 did not meet the others at 127.0.0.1:"), done.stderr
    assert "rank 1 did not come" in done.stdout


@pytest.mark.loads("jax")
def test_the_others_never_come_to_jax_which_ends_the_process(tmp_path: Path) -> None:
    need("jax")
    done = alone(NEVER_COMES.replace("ENGINE", "'jax'"), tmp_path)
    assert done.returncode != 0 or "did not meet the others" in done.stdout, done.stderr


@pytest.mark.loads("torch")
def test_torch_uses_a_program_s_own_process_group_and_leaves_it_alone(tmp_path: Path) -> None:
    need("torch")
    program = """
    import numpy as np, torch, torch.distributed as dist
    from distinput.distribute.engines import find_engine, open_collectives
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + PORT, rank=0, world_size=1)
    assert find_engine({}) == "torch"
    for _ in range(2):
        with open_collectives("torch") as group:
            assert group.all_reduce(np.arange(3)).tolist() == [0, 1, 2]
    try:
        open_collectives("torch", size=2)
    except ValueError as error:
        print(error)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.destroy_process_group()
    """
    done = alone(program, tmp_path)
    assert (
        done.stdout.strip() == "engine 'torch': torch.distributed was initialised with size 1, got size 2; leave it out"
    ), done.stderr


@pytest.mark.loads("torch")
def test_torch_opens_a_second_group_at_the_same_address(tmp_path: Path) -> None:
    need("torch")
    program = """
    from distinput.distribute.engines import Poisoned, open_collectives
    place = {"rank": 0, "size": 1, "address": "127.0.0.1:" + PORT}
    first = open_collectives("torch", **place)
    first.abort("on purpose")
    try:
        first.barrier()
    except Poisoned:
        first.close()
    with open_collectives("torch", **place) as second:
        second.barrier()
        print("opened again")
    """
    done = alone(program, tmp_path)
    assert done.stdout.strip() == "opened again", done.stderr


def test_mpi_without_mpiexec_is_one_worker(tmp_path: Path) -> None:
    need("mpi")
    program = """
    from distinput.distribute.engines import open_collectives
    from distinput.errors import EngineMissing
    with open_collectives("mpi") as group:
        print(group.size, group.all_reduce(3))
    try:
        open_collectives("mpi", size=2)
    except EngineMissing as error:
        print(error)
    """
    done = alone(program, tmp_path)
    assert done.stdout.splitlines() == [
        "1 3",
        (
            "engine 'mpi': mpi4py is installed, but mpiexec did not start this process, which should be one of 2; use "
            "`mpiexec -n 2 python ...`, or the engine 'torch', which needs no launcher"
        ),
    ], done.stderr


@pytest.mark.fresh_process
def test_a_program_that_forgets_to_close_ends(tmp_path: Path) -> None:
    need("torch")
    program = """
    from distinput.distribute.engines import open_collectives
    group = open_collectives("torch", rank=0, size=1, address="127.0.0.1:" + PORT)
    ahead = [group.agree([1]) for _ in range(4)]
    print("end")
    """
    done = alone(program, tmp_path)
    assert (done.stdout.strip(), done.returncode) == ("end", 0), done.stderr


def alone(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, that may use PORT."""
    file = folder / "program.py"
    file.write_text(f"PORT = '{free_ports(1)[0]}'\n" + textwrap.dedent(program), encoding="utf-8")
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False, timeout=300)
