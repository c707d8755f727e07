# SPDX-License-Identifier: Apache-2.0
"""The judge clears a right loader, and finds each that is wrong on purpose under the law that it breaks."""

import functools
import sys
import time
from typing import Any

import pytest

import distinput as di
from distinput.testing import judge
from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.report import Verdict
from tests.testing.judge import toys

IN_PROCESSES = ("rank killed", "worker killed")
RESTARTS = ("restart", "restart twice", "elastic restart")
RECORDS = 17  # 2 ranks: a last step of 1 row, so one rank has none


def judged(kind: type[toys.Right], **options: Any) -> Any:
    options = {"ranks": (1, 2, 3), "batch": 4, "leave_out": IN_PROCESSES, **options}
    return judge(toys.maker(kind), RECORDS, **options)


def test_a_right_loader_keeps_all_laws() -> None:
    report = judge(toys.right, RECORDS, ranks=(1, 2, 3), batch=4, leave_out=["worker killed"])
    assert report.ok, str(report)
    assert set(report.kept) == set(LAWS) - {"worker killed", "workers"}
    assert report.not_judged == ("workers",)


@pytest.mark.parametrize(
    "kind, broken, says",
    [
        (toys.Lost, {"exactly once", "partial batches", "elastic restart"}, "1 lost (5)"),
        (toys.Repeats, {"exactly once", "partial batches", "elastic restart"}, "1 delivered again"),
        (toys.Unequal, {"equal steps"}, "[3, 2] steps"),
        (toys.DropsTheTail, {"exactly once", "partial batches", "elastic restart"}, "never came"),
        (toys.PartialFirst, {"partial batches", "restart", "elastic restart"}, "4 in all are due"),
        (toys.EmptyLists, {"partial batches"}, "of 0 rows, is list"),
        (toys.Unseeded, {"exactly once", "same order", "restart", "elastic restart"}, "made again"),
        (toys.SeedIgnored, {"seeds"}, "two seeds give the same order"),
        (toys.EpochIgnored, {"epochs"}, "both epochs have the same order"),
        (toys.OneEpoch, {"epochs"}, "17 lost"),
        (toys.StepTooFar, {"restart", "elastic restart"}, "4 lost"),
        (toys.OtherOrder, {"restart"}, "in another order"),
        (toys.CountsFromTheRestart, {"restart twice"}, "and 1 steps later once more"),
        (toys.OfOneRank, {"restart", "elastic restart"}, "gone on with on"),
        (toys.Stops, {"exactly once", "partial batches"}, "OSError: the disk is gone"),
        (toys.Endless, {"exactly once", "partial batches"}, "had not ended"),
        (toys.LeavesAThread, {"nothing left"}, "left"),
        (toys.LeavesAFile, {"nothing left"}, "toys.py"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_is_wrong_is_found(kind: type[toys.Right], broken: set[str], says: str) -> None:
    report = judged(kind)
    assert broken <= set(report.broken), str(report)
    assert any(says in finding.says for finding in report.findings if finding.verdict is Verdict.BROKEN), str(report)
    for law in set(LAWS) - {*broken, *IN_PROCESSES, "epochs", "seeds"}:
        assert report[law].verdict is not Verdict.BROKEN or kind in (toys.Endless, toys.Stops), str(report)


def test_a_loader_that_says_no_breaks_nothing() -> None:
    report = judged(toys.Refuses)
    assert report.ok
    assert report.refused == ("elastic restart",)
    assert "saved on 1 ranks" in report["elastic restart"].says


def test_the_state_after_the_last_step_may_be_that_of_the_next_epoch() -> None:
    report = judged(toys.BeginsAnew, laws=["restart", "elastic restart"], leave_out=())
    assert report.ok, str(report)


def test_to_begin_anew_after_another_step_is_no_restart() -> None:
    report = judged(toys.Forgets, ranks=(1, 2), laws=["restart"], leave_out=(), stops=[1])
    assert report["restart"].figures["again"] == 4
    assert report["restart"].figures["jobs"] == 2


def test_a_loader_that_hangs_is_given_up() -> None:
    began = time.monotonic()
    report = judged(toys.Hangs, patience=0.5)
    assert report.broken == ("exactly once",)
    assert "no step for 0.5 seconds" in report["exactly once"].says
    assert "hung" in report["restart"].says
    assert time.monotonic() - began < 60


def test_the_figures_are_those_of_the_first_job_that_breaks_the_law() -> None:
    finding = judged(toys.Unequal)["equal steps"]
    assert finding.figures["steps"] == [3, 2]
    assert (finding.figures["job"]["ranks"], finding.figures["jobs"], finding.figures["of"]) == (2, 1, 3)


def test_names_of_records_may_be_anything_that_can_be_counted() -> None:
    names = ["a", "b", "c"]
    assert judge(lambda: [["a", "b"], ["c"]], names, ranks=1, batch=2, laws=["exactly once"]).ok
    assert not judge(lambda: [["a", "b"]], names, ranks=1, batch=2, laws=["exactly once"]).ok


def test_what_is_not_taken_is_not_judged() -> None:
    report = judge(lambda: [[0, 1], [2]], 3, ranks=1, batch=2)
    assert set(report.kept) == {"exactly once", "partial batches", "same order", "epochs", "nothing left"}
    assert not report.broken


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: judge(list, 3), "must take rank and ranks"),
        (lambda: judge(lambda path: [], 3, ranks=1), "it also wants 'path'"),
        (lambda: judge(list, 3, ranks=1, laws=["speed"]), "there is no law 'speed'; known are exactly once"),
        (lambda: judge(lambda rank, ranks: [], 3, ranks=0), "at least 1"),
        (lambda: judge(list, 3, ranks=1, stops=[2, 0]), r"stops must be at least 1, got \[2, 0\]"),
        (lambda: judge(lambda: [[0.5]], 1, ranks=1), "give ids="),
    ],
)
def test_wrong_words_are_refused(call: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_the_name_is_that_of_the_function() -> None:
    partial = functools.partial(toys.right, seed=1)
    assert judge(partial, 5, ranks=1, laws=["exactly once"]).name == "right(seed=1)"
    assert judge(partial, 5, ranks=1, laws=["exactly once"], name="mine", packages=["numpy", "none"]).versions["none"]


def test_the_version_of_distinput_is_that_of_the_code_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["distinput.testing.judge.judging"], "version", lambda package: "0.0.1")
    report = judge(toys.right, 3, ranks=1, laws=["exactly once"], packages=["distinput"])
    assert report.versions == {"distinput": di.__version__}


def test_what_was_not_tried_is_not_kept() -> None:
    """Nothing is known of a restart if there was none."""
    for records, stops in ((RECORDS, [99]), (RECORDS, []), (0, None)):
        report = judge(toys.maker(toys.StepTooFar), records, ranks=(1, 2), batch=4, stops=stops, laws=RESTARTS)
        assert set(report.not_judged) == set(RESTARTS), str(report)
