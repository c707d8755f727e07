# SPDX-License-Identifier: Apache-2.0
"""The reference engine, in threads: the whole suite, and what the suite does not show."""

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from distinput.distribute.collectives.channel import CallRecord
from distinput.distribute.engines import (
    Aborted,
    Collectives,
    CollectiveTimeout,
    Mismatch,
    PeerLost,
    Poisoned,
    open_collectives,
)
from distinput.distribute.engines.local import open_groups
from distinput.errors import AbortedError, DistinputError
from distinput.testing.collectives import CHECKS, FAULTS, IN_THREADS, check_threads, fault_threads
from tests.depth import sampled


@contextmanager
def groups_of(size: int, timeout: float = 60.0) -> Iterator[list[Collectives]]:
    groups = open_groups(size, timeout=timeout)
    try:
        yield groups
    finally:
        for group in groups:
            group.close()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_conformance(size: int) -> None:
    with groups_of(size) as groups:
        report = check_threads(groups)
    assert report.problems == []
    assert [outcome.passed for outcome in report.outcomes] == [list(CHECKS)] * size


# Where the others have to wait for the error, one size shows what the others do.
SIZES = [(each, size) for each in IN_THREADS for size in (sampled([3], [2, 5]) if FAULTS[each].waits else [2, 3, 5])]


@pytest.mark.parametrize("fault, size", SIZES)
def test_faults(fault: str, size: int) -> None:
    with groups_of(size, timeout=2.0 if FAULTS[fault].waits else 60.0) as groups:
        report = fault_threads(groups, fault)
    assert report.problems == []
    assert [outcome.passed for outcome in report.outcomes] == [[fault]] * (size - 1)
    assert all(outcome.culprit == [size - 1] for outcome in report.outcomes)


@pytest.mark.parametrize("size", [2, 3])
def test_workers_that_wait_for_one_another_in_different_calls(size: int) -> None:
    with groups_of(size) as groups:
        report = fault_threads(groups, "cross")
    assert report.problems == []
    found = rf"rank {size - 1}(, which waits for it| waits) in agree, at suite\.py"  # whoever has noticed it first
    assert [re.search(found, outcome.message) is not None for outcome in report.outcomes] == [True] * len(
        report.outcomes
    )


def test_a_broken_engine_is_seen_by_the_suite() -> None:
    with groups_of(2) as groups:
        channel = groups[1]._channel
        real = channel.all_reduce
        channel.all_reduce = lambda values, op: real(values + 1, op)  # type: ignore[method-assign]
        report = check_threads(groups, ["all_reduce_large"])
    assert report.problems != []


def test_names_of_errors() -> None:
    assert issubclass(CollectiveTimeout, TimeoutError)
    assert issubclass(Aborted, PeerLost)
    assert issubclass(Aborted, AbortedError)
    assert issubclass(Poisoned, DistinputError)


def test_a_mismatch_shows_who_called_what() -> None:
    def call(group: Collectives) -> str:
        calls = [lambda: group.all_reduce(np.zeros(3), "max"), lambda: group.all_gather(np.zeros((4, 2), "f4"))]
        with pytest.raises(Mismatch) as caught:
            calls[group.rank == 2]()
        return re.sub(r", at test_local.*", "", str(caught.value).split("they called\n")[1])

    with groups_of(3) as groups, ThreadPoolExecutor(3) as pool:
        texts = set(pool.map(call, groups))
    expected = """\
  ranks 0-1: all_reduce max <f8 3
  rank 2: all_gather float32 *,2, given <f4 4,2
Nothing was sent, and the group 'distinput' can be used; make the calls equal"""
    assert texts == {expected}


def test_the_reason_of_an_abort_reaches_those_who_wait_and_those_who_come_later() -> None:
    aborted = threading.Event()
    with groups_of(3) as groups, ThreadPoolExecutor(3) as pool:

        def call(group: Collectives) -> Aborted | None:
            if group.rank == 1:
                time.sleep(0.1)
                group.abort("part-7 is damaged")
                aborted.set()
                return None
            if group.rank == 2:
                aborted.wait(60)
            with pytest.raises(Aborted) as caught:
                group.barrier()
            with pytest.raises(Poisoned, match="part-7 is damaged"):
                group.agree([1])
            return caught.value

        first, none, last = pool.map(call, groups)
        assert none is None
        for error in (first, last):
            assert error is not None
            assert (error.rank, error.reason) == (1, "part-7 is damaged")
        with pytest.raises(Poisoned, match="part-7 is damaged"):
            groups[1].barrier()


def test_an_abort_ends_the_waiting_of_other_threads_of_this_worker() -> None:
    with groups_of(2) as groups:
        threading.Timer(0.1, groups[0].abort, ["enough"]).start()
        begin = time.monotonic()
        with pytest.raises(Poisoned, match="enough"):
            groups[0].barrier()
        assert time.monotonic() - begin < 30


def test_what_ends_a_group_ends_its_dups() -> None:
    with groups_of(2) as groups, ThreadPoolExecutor(2) as pool:
        dups = list(pool.map(lambda group: group.dup("control"), groups))
        with pytest.raises(CollectiveTimeout, match=r"rank 0 waited 0\.3 s for rank 1"):
            dups[0].barrier(timeout=0.3)
        with pytest.raises(Poisoned):
            groups[0].barrier()
        with pytest.raises(Aborted, match="rank 0 gave up"):
            groups[1].barrier()
        for dup in dups:
            dup.close()


def test_results_do_not_change_with_what_was_given() -> None:
    def call(group: Collectives) -> list[float]:
        mine = np.zeros(3000)
        gathered = group.all_gather(mine)
        mine[:] = 7
        group.barrier()
        return [float(part.sum()) for part in gathered]

    with groups_of(2) as groups, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(call, groups)) == [[0, 0], [0, 0]]


@pytest.mark.parametrize("count", [0, 1, 26])
def test_an_agreement_carries_so_many(count: int) -> None:
    with groups_of(2) as groups, ThreadPoolExecutor(2) as pool:
        assert (
            list(pool.map(lambda group: group.agree(range(count)).result(), groups))
            == [[2 * i for i in range(count)]] * 2
        )


@pytest.mark.parametrize("values", [range(27), [0.5], ["1"], [1 << 63]])
def test_an_agreement_refuses(values: list[int]) -> None:
    with groups_of(1) as (group,), pytest.raises(ValueError, match="agree: "):
        group.agree(values)


def test_an_interrupted_call_uses_the_group_up() -> None:
    with groups_of(2) as groups:

        class Stop(BaseException):
            pass

        def interrupted(_: float) -> bool:
            raise Stop

        handle = groups[0]._channel.all_gather(CallRecord(0, "barrier").encode())
        handle.wait = interrupted  # type: ignore[method-assign]
        groups[0]._channel.all_gather = lambda _: handle  # type: ignore[method-assign]
        with pytest.raises(Stop):
            groups[0].barrier()
        with pytest.raises(Poisoned, match="interrupted by Stop"):
            groups[0].barrier()
        groups[1].barrier()  # rank 0 had come already
        with pytest.raises(Aborted, match="interrupted by Stop"):
            groups[1].barrier()


def test_a_group_of_one_needs_nobody() -> None:
    with open_collectives("local", rank=0, size=1) as group:
        assert group.all_reduce([1, 2]).tolist() == [1, 2]
        assert repr(group) == "<Collectives 'distinput' rank 0 of 1, open>"
    assert repr(group) == "<Collectives 'distinput' rank 0 of 1, closed>"
