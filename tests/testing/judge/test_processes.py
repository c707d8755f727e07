# SPDX-License-Identifier: Apache-2.0
"""Ranks in processes of their own, and what becomes of them when they hang, die or are killed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from distinput.testing import judge
from distinput.testing.judge import traces
from distinput.testing.judge.delivery import UnknownBatch, ids_of
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.play import Play, PlayTask
from distinput.testing.judge.processes import Played, play_away
from tests.depth import cases
from tests.patience import PATIENCE, wait_until
from tests.testing.judge import toys

pytestmark = pytest.mark.usefixtures("nothing_in_the_folder_of_temporary_files")


@pytest.fixture
def nothing_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Whatever a test does, no file is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


def played(make: object, how: str, ranks: int = 2, patience: float = 30.0, **options: object) -> Played:
    job = Job(17, ranks, 4)
    play = Play(job, job.all_ranks, **options)  # type: ignore[arg-type]
    return play_away(PlayTask(Maker(make, 17), ids_of, play), how, patience, lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["processes", "threads"])
def test_ranks_that_are_played_at_once_keep_all_laws(how: str) -> None:
    make = toys.of_the_environment if how == "processes" else toys.right
    report = judge(make, 17, ranks=2, batch=4, stops=[1], leave_out=["worker killed"], play=how)
    assert report.ok, str(report)
    assert set(report.kept) == set(LAWS) - {"worker killed", "workers"}


@pytest.mark.parametrize("how", ["processes", "threads"])
def test_ranks_may_wait_for_each_other(how: str) -> None:
    report = judge(toys.in_step, 17, ranks=3, batch=2, laws=["exactly once", "equal steps"], play=how)
    assert report.kept == ("exactly once", "equal steps"), str(report)


def test_a_rank_that_hangs_is_named() -> None:
    report = judge(
        toys.hangs_on_rank_1, 17, ranks=2, batch=4, laws=["exactly once", "same order"], patience=8, play="processes"
    )
    assert report["exactly once"].says.startswith("rank 1 of 17 records, 2 ranks, batches of 4: no step for 8 seconds")
    assert "hung" in report["same order"].says


def test_a_process_that_does_not_end_is_named() -> None:
    report = judge(toys.never_leaves, 17, ranks=1, batch=4, laws=["exactly once"], patience=8, play="processes")
    assert "the process did not end for 8 seconds after its last step" in report["exactly once"].says


@pytest.mark.parametrize("how", ["processes", "threads"])
def test_a_rank_that_dies_is_named_and_the_others_are_not_waited_for(how: str) -> None:
    report = judge(toys.dies_on_rank_1, 17, ranks=2, batch=4, laws=["exactly once"], play=how)
    assert report.broken == ("exactly once",)
    assert "died of SIGKILL" in report["exactly once"].says


def test_who_waits_for_a_rank_that_died_is_stopped() -> None:
    walks = played(toys.dies_in_step, "processes").walks
    assert walks[0].whole.error == "stopped, as rank 1 died of SIGKILL"
    assert [walk.whole.died for walk in walks] == [True, True]


def test_an_exit_is_told_with_the_last_line_that_was_printed() -> None:
    (walk,) = played(toys.leaves_early, "processes", ranks=1).walks
    assert walk.whole.error == "died with exit status 5: enough of it"


def test_what_a_loader_prints_disturbs_nobody() -> None:
    report = judge(toys.prints_rubbish, 17, ranks=2, batch=4, laws=["exactly once", "equal steps"], play="processes")
    assert report.kept == ("exactly once", "equal steps"), str(report)


def test_an_error_on_all_ranks_before_a_step_is_a_refusal() -> None:
    report = judge(toys.refuses_at_once, 17, ranks=2, batch=4, laws=["exactly once"], play="processes")
    assert report.refused == ("exactly once",)
    assert "rank 0 raised ValueError: not today after 0 steps" in report["exactly once"].says


def test_batches_of_other_processes_must_tell_their_records_too() -> None:
    with pytest.raises(UnknownBatch, match="give ids="):
        judge(toys.of_floats, 17, ranks=1, laws=["exactly once"], play="processes")


@pytest.mark.skipif(not traces.MEMORY.is_dir(), reason="this system does not tell which shared memory there is")
def test_what_processes_leave_is_told_and_removed() -> None:
    before = traces.memory()
    left = played(toys.leaves_much, "processes", ranks=1).left
    assert [each.split()[0] for each in left] == ["process", "shared"], left
    assert traces.living("no such mark", [int(left[0].split()[1])]) == {}  # which is a session of its own
    assert left[1].split()[2] not in traces.memory() - before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system does not tell which processes there are")
def test_ranks_end_with_the_judge(tmp_path: Path) -> None:
    program = "from tests.testing.judge import toys; from distinput.testing import judge\n"
    program += "judge(toys.hangs_on_rank_1, 17, ranks=2, laws=['exactly once'], play='processes')"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "DISTINPUT_OF_TEST": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    mark = f"DISTINPUT_OF_TEST={tmp_path}"
    wait_until(lambda: len(list(tmp_path.glob("judge-*/[01]"))) == 2)
    process.kill()
    process.wait()
    wait_until(lambda: not traces.living(mark, ()))
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_a_loader_that_cannot_be_made_elsewhere_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"new processes \(threads\), but make_loader cannot be made in another process"
    ):
        judge(toys.maker(toys.Right), 17, ranks=2, play="threads")
    with pytest.raises(ValueError, match="cannot be played 'at once'; known are in turn, processes, threads"):
        judge(toys.right, 17, ranks=2, play="at once")


def test_a_state_that_holds_in_one_process_is_found() -> None:
    report = judge(toys.of_this_process, 17, ranks=2, batch=4, laws=["restart", "rank killed"])
    assert report.kept == ("restart",)
    assert "after step 1 of rank 1, gone on with: step" in report["rank killed"].says


def test_a_function_that_cannot_be_pickled_is_not_judged() -> None:
    report = judge(toys.maker(toys.Right), 17, ranks=2, batch=4, laws=["rank killed"])
    assert "make it a function of a module" in report["rank killed"].says
    assert report.ok


@pytest.mark.parametrize(
    "make, says",
    [
        (toys.with_workers, "without an error: "),
        (toys.says_so, "RuntimeError: a worker has died"),
        (toys.waits_forever, "no step for 8 seconds"),
    ][: cases(2, 3)],
)
def test_a_worker_that_is_killed(make: object, says: str) -> None:
    patience = 8 if make is toys.waits_forever else PATIENCE
    report = judge(make, 17, ranks=1, batch=2, workers=[2], laws=["worker killed"], patience=patience)
    assert says in report["worker killed"].says
    assert report.ok == (make is toys.says_so)


def test_a_loader_that_has_no_workers_may_say_so() -> None:
    report = judge(toys.without_workers, 17, ranks=1, batch=2, workers=[2], laws=["workers", "worker killed"])
    assert report.refused == ("workers", "worker killed"), str(report)
    assert "ValueError: no workers here" in report["worker killed"].says


def test_other_steps_with_workers_are_found() -> None:
    report = judge(toys.with_workers, 17, ranks=1, batch=2, workers=[1, 2], laws=["workers"])
    assert "with 2 workers instead of none, step 1 of rank 0 is" in report["workers"].says
