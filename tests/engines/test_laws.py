# SPDX-License-Identifier: Apache-2.0
"""Laws 7, 9 and 10 on real processes: few cases, each equal to what threads of one process deliver."""

import json
import sys
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from tests.depth import sampled
from tests.distribute.workers import on_workers
from tests.engines.processes import run
from tests.engines.programs import PROGRAMS

ENGINES = ("torch", "mpi", "jax")
SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "torch": ((0, 1), (1, 4), (7, 3), (23, 5), (64, 16)),
    "mpi": ((0, 1), (1, 4), (7, 3), (23, 5), (64, 16)),
    "jax": ((1, 4), (23, 5)),
}
"""For each engine, numbers of rows and global batch sizes."""


def emulated(replicas: Sequence[int], program: str, given: Any) -> list[Any]:
    """What the program gives on threads of this process."""
    results = on_workers(replicas, lambda strategy, worker: PROGRAMS[program](strategy, worker, given))
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def global_steps(results: Sequence[Sequence[Any]]) -> list[list[int]]:
    """The rows of all workers in each step; they must have taken as many steps."""
    assert len({len(steps) for steps in results}) == 1, "workers took different numbers of steps"
    return [[row for worker in step for part in worker for row in part] for step in zip(*results, strict=True)]


def write_files(folder: Path, rows: Sequence[int]) -> list[str]:
    """TFRecord files with so many rows each; the rows are numbered through."""
    paths, number = [], 0
    for i, count in enumerate(rows):
        paths.append(str(folder / f"{i}.tfrecord"))
        with di.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(count):
                writer.write(str(number).encode())
                number += 1
    return paths


@pytest.mark.parametrize(
    "engine, replicas",
    sampled(
        [*product(ENGINES, [(1, 1, 1)]), ("torch", (2, 2))],
        [*product(ENGINES, [(1, 1)]), ("mpi", (2, 2)), ("jax", (2, 2))],
    ),
)
def test_every_record_once_and_all_in_step(engine: str, replicas: tuple[int, ...], tmp_path: Path) -> None:
    cases = [
        {"kind": kind, "n": n, "batch": batch}
        for kind in ("counted", "shuffled", "filtered", "balanced", "uneven functions")
        for n, batch in SIZES[engine]
    ]
    files = write_files(tmp_path, (5, 0, 17, 1))
    cases.append({"kind": "files", "n": 23, "batch": 4 * len(replicas), "files": files})
    results = run(engine, replicas, "deliver", cases).results
    assert results == emulated(replicas, "deliver", cases)
    for i, case in enumerate(cases):
        n = case["n"]
        rows = sorted(chain(*global_steps([result[i] for result in results])))
        expected = list(range(n))
        if case["kind"] == "shuffled":
            expected = [2 * x for x in expected]
        if case["kind"] == "uneven functions":
            expected = list(range(2 * n))
        assert rows == expected, case


@pytest.mark.needs_engine("torch")
def test_workers_that_torchrun_starts() -> None:
    """It says who the workers are in variables of its own, and its agent keeps the store that they meet over."""
    replicas = (2, 1)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(len(replicas)))
    cases = [{"kind": kind, "n": 23, "batch": 5} for kind in ("balanced", "uneven functions")]
    outcome = run("torch", replicas, "deliver", cases, launcher=torchrun)
    assert outcome.results == emulated(replicas, "deliver", cases)


@pytest.mark.parametrize("engine, replicas", sampled(product(ENGINES, [(3, 1, 2)]), product(ENGINES, [(1, 3)])))
def test_workers_of_different_sizes(engine: str, replicas: tuple[int, ...]) -> None:
    cases = [{"kind": "balanced", "n": n, "batch": batch} for n, batch in SIZES[engine]]
    results = run(engine, replicas, "deliver", cases).results
    assert results == emulated(replicas, "deliver", cases)
    for i, case in enumerate(cases):
        n, batch = case["n"], case["batch"]
        steps = global_steps([result[i] for result in results])
        assert steps == [list(range(at, min(at + batch, n))) for at in range(0, n, batch)]
        for step in zip(*[result[i] for result in results], strict=True):
            sizes = [len(part) for worker in step for part in worker]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    "engine, first, second",
    sampled(
        [("torch", (2, 1), (1, 2, 1)), ("mpi", (1, 1, 1), (1, 1)), ("jax", (1, 1), (1, 1, 1))],
        [("torch", (1, 1, 1), (1, 1)), ("mpi", (1, 1), (2, 2, 2))],
    ),
)
def test_a_state_goes_on_on_another_number_of_workers(engine: str, first: Any, second: Any) -> None:
    kinds = ("balanced",) if len({*first, *second}) > 1 and (len({*first}) > 1 or len({*second}) > 1) else ()
    cases = [
        {"kind": kind, "n": n, "batch": batch, "at": at}
        for kind in kinds or ("shuffled", "filtered", "balanced")
        for n, batch in SIZES[engine]
        for at in sorted({0, -(-n // batch) // 2, -(-n // batch)})
    ]
    begun = run(engine, first, "begin", cases).results
    for i, case in enumerate(cases):
        states = [result[i][1] for result in begun]
        # Behind a filter one place can be told in several ways: a worker that was held up sends what it has, a shorter block.
        told = [json.loads(state)["step"] if case["kind"] == "filtered" else state for state in states]
        assert len(set(told)) == 1, "the state is the same on every worker"
        assert max(map(len, states)) < 2000
        case["state"] = states[-1]
    rest = run(engine, second, "go_on", cases).results
    for i, case in enumerate(cases):
        n, batch, at = case["n"], case["batch"], case["at"]
        steps = global_steps([result[i][0] for result in begun]) + global_steps([result[i] for result in rest])
        whole = di.data.Dataset.range(n)
        whole = whole.shuffle(7, seed=3).map(lambda x: x * 2) if case["kind"] == "shuffled" else whole
        assert [sorted(step) for step in steps] == [sorted(b.tolist()) for b in whole.batch(batch)], (case, at)


@pytest.mark.parametrize(
    "engine, replicas",
    sampled(
        [*product(ENGINES, [(2, 1)]), ("torch", (1, 1, 1))],
        [*product(ENGINES, [(1, 1)]), ("mpi", (1, 1, 1)), ("jax", (1, 1, 1))],
    ),
)
def test_numbers_are_those_of_one_process(engine: str, replicas: tuple[int, ...]) -> None:
    results = run(engine, replicas, "numbers").results
    assert results == emulated(replicas, "numbers", None)
    total = sum(replicas)
    assert all(result["sum"] == 1.5 * total * (total + 1) / 2 for result in results)
    assert all("all values must have the same size and shape" in result["refused"] for result in results)
