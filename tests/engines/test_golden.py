# SPDX-License-Identifier: Apache-2.0
"""The golden cases of several workers, answered by processes: as the runner starts them, under mpiexec, and on JAX."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from distinput.testing.ports import free_ports
from tests.depth import DEEP
from tests.engines.processes import environments, mpiexec, start, wait_for
from tests.golden import workers
from tests.golden.families import Case, group, load

FOLDER = Path(__file__).parents[1] / "golden"
CASES = [case for case in load(FOLDER / "public.jsonl") if group(case) == "mw"]
SHAPES = sorted({(case["workers"], case["replicas_per_worker"]) for case in CASES})
SHARE_ON_JAX = 5
"""One of so many cases: the key-value store is slower, and what is above it is the same."""
SECONDS = 100


def runner() -> tuple[Any, Any, Any]:
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    import adapter
    import engine
    import golden_common

    return adapter, engine, golden_common


def wrong(cases: list[Case], answers: dict[str, Any]) -> list[str]:
    """What the answers do not have that the cases ask for."""
    _, _, golden_common = runner()
    found = []
    for case in cases:
        # Where TensorFlow's answer is a defect, ours is the one without it.
        expect = workers.without_phantom_steps(case) if "quirk" in case else case["expect"]
        try:
            golden_common.compare_expect(answers.get(case["id"], {}), expect, spec_exact=case.get("spec_exact", True))
        except golden_common.Mismatch as mismatch:
            found.append(f"{case['id']}: {mismatch}")
    return found


def started(engine: str, cases: list[Case], size: int, replicas: int, folder: Path) -> dict[str, Any]:
    """The answers of `size` processes, each of which is golden_worker.py."""
    todo, out = folder / "cases.json", folder / "out"
    todo.write_text(json.dumps(cases), encoding="utf-8")
    words = [
        sys.executable,
        str(Path(__file__).with_name("golden_worker.py")),
        engine,
        str(todo),
        str(replicas),
        str(out),
    ]
    with (folder / "said").open("wb") as said:
        if engine == "mpi":
            processes = [start([*mpiexec(), "-n", str(size), *words], {}, said)]
        else:
            processes = [start(words, place, said, engine) for place in environments(size)]
        codes = wait_for(processes, SECONDS)
    assert set(codes) == {0}, f"{codes}:\n{(folder / 'said').read_text(errors='replace')}"
    answers = [(folder / f"out{rank}").read_text(encoding="utf-8").splitlines() for rank in range(size)]
    _, merger, _ = runner()
    return {case["id"]: merger.merge_mw([json.loads(lines[i]) for lines in answers]) for i, case in enumerate(cases)}


def of_shape(shape: tuple[int, int]) -> list[Case]:
    return [case for case in CASES if (case["workers"], case["replicas_per_worker"]) == shape]


def test_the_cases_are_of_two_and_three_workers() -> None:
    assert {size for size, _ in SHAPES} == {2, 3}
    assert len(CASES) > 70


# The runner is kept as it was received, and leaves the files of its workers for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.needs_engine("torch")
@pytest.mark.loads("torch")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_on_torch_as_the_runner_starts_them(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ports = free_ports(shape[0])

    class OnFreePort(socket.socket):
        """A socket of the runner, which asks for any port, and closes it before a worker listens there."""

        def bind(self, address: Any) -> None:
            super().bind((address[0], ports.pop()) if address == ("127.0.0.1", 0) else address)

    monkeypatch.setattr(socket, "socket", OnFreePort)
    adapter, _, _ = runner()
    cases = of_shape(shape)
    assert wrong(cases, adapter.run_group(cases, *shape, timeout=SECONDS)) == []


@pytest.mark.needs_engine("mpi")
@pytest.mark.parametrize("shape", SHAPES if DEEP else SHAPES[-1:], ids=str)
def test_under_mpiexec(shape: tuple[int, int], tmp_path: Path) -> None:
    cases = of_shape(shape)
    assert wrong(cases, started("mpi", cases, *shape, tmp_path)) == []


@pytest.mark.needs_engine("jax")
@pytest.mark.parametrize("shape", [(2, 2), (3, 1)], ids=str)
def test_on_jax_that_the_program_initialised(shape: tuple[int, int], tmp_path: Path) -> None:
    cases = of_shape(shape)[::SHARE_ON_JAX]
    assert wrong(cases, started("jax", cases, *shape, tmp_path)) == []
