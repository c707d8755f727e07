# SPDX-License-Identifier: Apache-2.0
"""One worker dies, stands still, raises, or reads a damaged file: all others get an error that names it, and none hangs."""

import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.depth import cases, sampled
from tests.engines.processes import Outcome, mpiexec, run
from tests.engines.test_laws import write_files
from tests.patience import PATIENCE

AT_ONCE = 30.0
"""Seconds within which the others know of an end that can be seen, on a machine that is busy."""
TIMEOUT = 8.0
"""Of the strategy, where the others have to wait for it; a busy machine keeps a worker back for seconds."""
ENDLESS = 1_000_000

Record = Callable[[str, object], None]


def fault(
    engine: str,
    size: int,
    victim: int,
    act: str,
    folder: Path,
    *,
    timeout: float = PATIENCE,
    stuck: bool = False,
    launcher: Sequence[str] = (),
    **more: Any,
) -> tuple[Outcome, float]:
    """A training loop in which one worker fails, and when it did."""
    when = folder / f"when-{engine}-{victim}-{act}"
    when.unlink(missing_ok=True)
    given = {
        "kind": "filtered",
        "n": ENDLESS,
        "batch": 2 * size,
        "step": 0,
        "place": "next",
        "seconds": 0,
        "delay": 0.0,
    }
    given |= {"act": act, "victim": victim, "when": str(when), **more}
    left = [victim] if stuck else []
    outcome = run(engine, [1] * size, "loop", given, timeout=timeout, stuck=left, launcher=launcher)
    return outcome, float(when.read_text()) if when.exists() else 0.0


def latest(outcome: Outcome, when: float, victim: int, kinds: str, limit: float, record: Record) -> float:
    """How long the others waited for their errors, all of which name the victim."""
    longest = 0.0
    for worker, answer in enumerate(outcome.answers):
        if worker == victim:
            continue
        assert answer is not None, f"worker {worker} left no answer, {outcome.codes}:\n{outcome.output}"
        assert "error" in answer, f"worker {worker} ended without an error: {answer}"
        assert answer["error"] in kinds.split("|"), answer
        assert re.search(rf"\b(rank|worker) {victim}\b", answer["text"]), f"nobody is named: {answer}"
        assert outcome.codes[worker] == 1, f"worker {worker} hung or died: {outcome.codes}\n{outcome.output}"
        longest = max(longest, answer["at"] - when)
    assert longest <= limit, f"the error came after {longest:.2f} s"
    record("late" if kinds == "CollectiveTimeout" else "fault", longest)
    return longest


KILLS = [
    pytest.param("torch", 2, range(cases(2, 4)), id="torch-2"),
    pytest.param("torch", 3, range(4, cases(6, 10)), id="torch-3"),
    pytest.param("jax", 2, range(20, cases(21, 22)), id="jax-2"),
    pytest.param("jax", 3, range(22, 23), id="jax-3"),
]


@pytest.mark.parametrize("engine, size, seeds", KILLS)
def test_a_worker_is_killed_at_a_random_step(
    engine: str, size: int, seeds: range, tmp_path: Path, record_property: Record
) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        # On JAX worker 0 hosts the service whose end ends the others; that is tested below.
        victim = draw.randrange(1 if engine == "jax" else 0, size)
        act, place = draw.choice(["kill", "kill soon"]), draw.choice(["next", "reduce"])
        where = {"step": draw.randrange(40), "place": place, "delay": draw.random() / 50}
        outcome, when = fault(engine, size, victim, act, tmp_path, **where)
        assert outcome.codes[victim] == -9
        latest(outcome, when, victim, "PeerLost", AT_ONCE, record_property)


@pytest.mark.needs_engine("jax")
def test_on_jax_the_end_of_the_first_worker_is_the_end_of_all(tmp_path: Path, record_property: Record) -> None:
    outcome, when = fault("jax", 2, 0, "kill", tmp_path, step=5)
    assert outcome.codes[0] == -9
    assert outcome.codes[1] not in (0, None), "the other worker hung, or saw nothing"
    if outcome.answers[1] is not None:  # else the service's own client ended it
        assert outcome.answers[1]["error"] == "PeerLost"
        record_property("fault", outcome.answers[1]["at"] - when)


@pytest.mark.parametrize("size, seeds", [(2, range(30, cases(31, 32))), (3, range(32, cases(33, 34)))])
@pytest.mark.needs_engine("mpi")
def test_with_mpi_a_killed_worker_ends_the_job(
    size: int, seeds: range, tmp_path: Path, record_property: Record
) -> None:
    for seed in seeds:
        draw = random.Random(seed)
        victim = draw.randrange(size)
        where = {"step": draw.randrange(40), "place": draw.choice(["next", "reduce"])}
        outcome, when = fault("mpi", size, victim, "kill", tmp_path, **where)
        (code,) = outcome.codes
        assert code not in (0, None), outcome.output
        assert when > 0
        assert all(answer is None or answer.get("error") for answer in outcome.answers), outcome.answers
        assert "signal 9" in outcome.output, outcome.output
        record_property("job", outcome.seconds)


@pytest.mark.needs_engine("mpi")
def test_with_mpi_that_tolerates_faults_the_others_are_told(tmp_path: Path, record_property: Record) -> None:
    size, victim = 3, 1
    if "--oversubscribe" not in mpiexec():
        pytest.skip("engine 'mpi': only Open MPI has --with-ft ulfm")
    launcher = (*mpiexec(), "--with-ft", "ulfm", "-n", str(size), sys.executable)
    outcome, when = fault("mpi", size, victim, "kill", tmp_path, step=5, place="next", launcher=launcher)
    outcome = Outcome(outcome.answers, [1] * size, outcome.output, outcome.seconds)  # mpiexec has one code for all
    latest(outcome, when, victim, "PeerLost", AT_ONCE, record_property)


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
def test_a_worker_that_is_late_is_waited_for(engine: str, tmp_path: Path) -> None:
    outcome, when = fault(engine, 2, 1, "stop", tmp_path, step=3, seconds=1, n=100, place="reduce")
    assert when > 0
    assert outcome.results == [25, 25]


@pytest.mark.parametrize(
    "engine, victim", sampled([("torch", 2), ("mpi", 1), ("jax", 1)], [("torch", 0), ("torch", 1)])
)
def test_a_worker_that_stands_still_is_given_up(
    engine: str, victim: int, tmp_path: Path, record_property: Record
) -> None:
    size = 3 if engine == "torch" else 2
    stands = TIMEOUT + 5.0  # as long as the others may take to say so; engines whose end waits for it take as long
    outcome, when = fault(
        engine, size, victim, "stop", tmp_path, step=6, seconds=stands, timeout=TIMEOUT, stuck=True, place="reduce"
    )
    if engine == "mpi":  # one code for all: that of a job that failed
        outcome = Outcome(outcome.answers, [1] * size, outcome.output, outcome.seconds)
    latest(outcome, when, victim, "CollectiveTimeout", TIMEOUT + AT_ONCE, record_property)


@pytest.mark.parametrize(
    "engine, victim, kind",
    sampled(
        [("torch", 0, "filtered"), ("torch", 1, "counted"), ("mpi", 1, "filtered"), ("jax", 0, "counted")],
        [("torch", 0, "counted"), ("torch", 1, "filtered"), ("mpi", 1, "counted"), ("jax", 0, "filtered")],
    ),
)
def test_an_exception_in_the_loop_of_one_worker(
    engine: str, victim: int, kind: str, tmp_path: Path, record_property: Record
) -> None:
    outcome, when = fault(engine, 2, victim, "raise", tmp_path, kind=kind, step=7, place="reduce")
    if engine == "mpi":
        outcome = Outcome(outcome.answers, [1, 1], outcome.output, outcome.seconds)
    latest(outcome, when, victim, "Aborted", AT_ONCE, record_property)
    assert "the disk is full" in outcome.answers[1 - victim]["text"]  # type: ignore[index]
    assert outcome.answers[victim]["error"] == "OSError"  # type: ignore[index]


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
def test_a_worker_that_leaves_early(engine: str, tmp_path: Path, record_property: Record) -> None:
    outcome, when = fault(engine, 2, 1, "leave", tmp_path, step=2)
    if engine == "mpi":
        outcome = Outcome(outcome.answers, [1, 0], outcome.output, outcome.seconds)
    latest(outcome, when, 1, "Aborted|PeerLost", AT_ONCE, record_property)


@pytest.mark.parametrize(
    "engine, victim, kind",
    sampled(
        [("torch", 0, "counted"), ("torch", 2, "filtered"), ("mpi", 1, "counted"), ("jax", 1, "filtered")],
        [("torch", 0, "filtered"), ("torch", 2, "counted"), ("mpi", 1, "filtered"), ("jax", 1, "counted")],
    ),
)
def test_a_poison_record_of_one_worker(
    engine: str, victim: int, kind: str, tmp_path: Path, record_property: Record
) -> None:
    size = 3 if engine == "torch" else 2
    outcome, when = fault(engine, size, victim, "poison", tmp_path, kind=kind, step=9)
    if engine == "mpi":
        outcome = Outcome(outcome.answers, [1] * size, outcome.output, outcome.seconds)
    latest(outcome, when, victim, "Aborted|AbortedError", AT_ONCE, record_property)
    assert outcome.answers[victim]["error"] == "ValueError"  # type: ignore[index]
    others = [answer["text"] for worker, answer in enumerate(outcome.answers) if worker != victim and answer]
    assert all("record 17 makes no sense" in text for text in others), others


@pytest.mark.parametrize("engine, victim", [("torch", 0), ("torch", 1), ("mpi", 0), ("jax", 1)])
def test_a_file_of_one_worker_is_cut_short(engine: str, victim: int, tmp_path: Path, record_property: Record) -> None:
    files = write_files(tmp_path, (40, 40))
    cut = Path(files[victim])  # worker w reads file w
    content = cut.read_bytes()
    cut.write_bytes(content[: len(content) * 3 // 4 + 5])  # in the middle of a record
    outcome, _ = fault(engine, 2, victim, "none", tmp_path, kind="files", files=files, n=80, batch=4)
    first, second = outcome.answers
    assert first is not None, outcome.output
    assert second is not None, outcome.output
    mine, other = (first, second) if victim == 0 else (second, first)
    assert mine["error"] == "DataLossError", mine
    assert other["error"] == "AbortedError", other
    assert f"worker {victim} of 2" in other["text"]
    assert str(cut) in other["text"], "the others are told the file"
    assert re.search(r"(record|offset|at) \d+", other["text"]), "and where in it"
    record_property("fault", abs(other["at"] - mine["at"]))
