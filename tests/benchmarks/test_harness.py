# SPDX-License-Identifier: Apache-2.0
import gc
import weakref
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.checksum import in_any_order, in_order
from benchmarks.figures import goals, summary, table
from benchmarks.harness import (
    FEWEST_ROUNDS,
    BenchmarkError,
    Case,
    Measured,
    Work,
    delivering,
    find_case,
    measure,
    timed,
)
from benchmarks.run import without_missing
from tests.benchmarks import played


def case(name: str) -> Case:
    return find_case(played, name, Path(), 1.0)


def measured(name: str, rounds: int = 1) -> dict[str, Any]:
    return measure("tests.benchmarks.played", case(name), Path(), 1.0, rounds, 0.0)


def test_contenders_that_agree_are_timed_in_every_round() -> None:
    result = measured("agree", rounds=3)
    assert [(c["name"], c["kind"], len(c["seconds"])) for c in result["contenders"]] == [
        ("ours", "ours", 3),
        ("same", "peer", 3),
    ]
    assert all(seconds > 0 for c in result["contenders"] for seconds in c["seconds"])


def test_other_values_are_an_error() -> None:
    with pytest.raises(BenchmarkError, match="differ: other delivered other values than ours"):
        measured("differ")


def test_a_limit_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)broken: failed at 'load'.*the limit is broken"):
        measured("limit fails")


def test_a_peer_that_fails_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    result = measured("peer fails")
    assert [c["name"] for c in result["contenders"]] == ["ours"]
    assert "left out: dies: failed at 'load':\n  last words" in capfd.readouterr().err


def test_a_peer_that_is_not_installed_is_left_out() -> None:
    kept, missing = without_missing(case("missing"), wants_peers=True)
    assert ([c.name for c in kept.contenders], missing) == (["ours"], {"no_such_package"})


def test_ratios_are_taken_within_a_round() -> None:
    result = {
        "case": "c",
        "units": {"row": 10},
        "contenders": [
            {
                "name": "ours",
                "kind": "ours",
                "reach": None,
                "reach_cpu": None,
                "most": {"b": 7, "seconds": 0.01},
                "seconds": [1, 10, 1],
                "cpu": [1, 1, 1],
                "facts": {"b": 7},
            },
            {
                "name": "x",
                "kind": "peer",
                "reach": 2.5,
                "reach_cpu": 3,
                "most": {},
                "seconds": [2, 30, 4],
                "cpu": [2, 2, 2],
                "facts": {},
            },
        ],
    }
    assert [(goal.beside, goal.reached) for goal in goals(result)] == [
        ("x", True),
        ("x", False),
        ("ours", True),
        ("ours", False),
    ]
    (entry,) = summary(result)
    assert (entry["ratio"], entry["ratio_low"], entry["ratio_high"], entry["cpu_ratio"]) == (3, 2, 4, 2)
    lines = table("title", [result]).splitlines()
    assert [word.strip() for word in lines[3].split("|")] == [
        *["c", "100 ms/row", "x (peer)", "400 ms/row", "3x", "2x .. 4x", "2x", "2.5x yes, 3x of cpu no"]
    ]
    assert lines[4:] == [
        "  c: ours b 7, to reach at most 7 yes",
        "  c: ours 100 ms/row, to reach at most 10 ms/row no",
        "  c: ours 10 row/s",
        "  c: ours b 7",
    ]


def test_what_a_pass_returns_is_kept_until_the_clock_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[int] = []  # that have passed
    monkeypatch.setattr(harness, "perf_counter", lambda: len(seconds))

    class Iterator:
        """As tf.data's: destroying it takes long."""

        def __init__(self) -> None:
            weakref.finalize(self, seconds.append, 1)

        def __iter__(self) -> "Iterator":
            return self

        def __next__(self) -> None:
            raise StopIteration

    times = timed(delivering(Iterator), 0.0)
    gc.collect()
    assert (times.seconds, len(seconds)) == (0, 1)


def test_a_pass_is_repeated_and_may_bring_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    monkeypatch.setattr(harness, "perf_counter", lambda: 5 * len(passes))

    def once() -> Measured:
        passes.append(1)
        return Measured(3.0)

    assert timed(Work(once), 20).seconds == 3.0
    assert len(passes) == 4


def test_times_of_a_part_stand_for_the_whole() -> None:
    assert timed(Work(lambda: Measured(3.0), share=0.25), 0.0).seconds == 12.0


def test_no_round_begins_when_the_time_is_over_but_for_the_fewest() -> None:
    result = measure("tests.benchmarks.played", case("agree"), Path(), 1.0, 9, 0.0, until=perf_counter())
    assert result["rounds"] == FEWEST_ROUNDS < 9
    assert [len(contender["seconds"]) for contender in result["contenders"]] == [FEWEST_ROUNDS] * 2


def test_a_peer_that_takes_long_is_timed_once_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "LONG_SECONDS", 0.0)
    result = measure("tests.benchmarks.played", case("agree"), Path(), 1.0, 9, 0.0, until=perf_counter())
    assert [len(contender["seconds"]) for contender in result["contenders"]] == [FEWEST_ROUNDS, 1]
    (entry,) = summary(result)
    assert entry["ratio_low"] == entry["ratio"] == entry["ratio_high"] > 0
    whole = measure("tests.benchmarks.played", case("agree"), Path(), 1.0, 4, 0.0)
    assert [len(contender["seconds"]) for contender in whole["contenders"]] == [4, 4]


def test_checksums_in_order() -> None:
    batch = {"b": (np.arange(4), np.array([b"x", b"yz"], object)), "a": b"bytes"}
    same = {"a": b"bytes", "b": [np.arange(4), np.array([b"x", b"yz"], object)]}
    others = [
        {**same, "a": b"byte"},
        {**same, "b": [np.arange(4)[::-1], np.array([b"x", b"yz"], object)]},
        {**same, "b": [np.arange(4, dtype=np.int32), np.array([b"x", b"yz"], object)]},
        {**same, "b": [np.arange(4), np.array([b"xy", b"z"], object)]},
        {**same, "b": [np.arange(4).reshape(2, 2), np.array([b"x", b"yz"], object)]},
    ]
    assert in_order([batch]) == in_order([same])
    assert in_order([batch]) not in [in_order([other]) for other in others]
    assert in_order([np.arange(4)]) != in_order([np.arange(2), np.arange(2, 4)])


def test_checksums_in_any_order() -> None:
    images, labels = np.arange(60, dtype=np.uint8).reshape(6, 10), np.arange(6)
    order = [3, 1, 5, 0, 2, 4]
    whole = in_any_order([(images, labels)])
    mixed = images[order], labels[order]
    assert whole == in_any_order([(mixed[0][:4], mixed[1][:4]), (mixed[0][4:], mixed[1][4:])])
    assert whole != in_any_order([(images[order], labels)])  # rows belong together
    assert whole != in_any_order([(images[:5], labels[:5])])
    assert whole != in_any_order([(images[[0, 0, 2, 3, 4, 5]], labels[[0, 0, 2, 3, 4, 5]])])
