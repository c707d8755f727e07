# SPDX-License-Identifier: Apache-2.0
"""Groups beside one another, and the end of a group."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from distinput.distribute.engines import Collectives
from distinput.testing.collectives.outcome import raises
from distinput.testing.collectives.parts import Check

__all__ = ["GROUPS"]


def _two_groups_in_opposite_order(group: Collectives) -> None:
    with group.dup("first") as first, group.dup("second") as second:
        pairs = [(first, 1), (second, 10)]
        met = threading.Barrier(2)

        def work(pair: tuple[Collectives, int]) -> list[int]:
            mine, factor = pair
            met.wait(10)
            return [int(mine.all_reduce(factor * i)) for i in range(5)]

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(work, pairs if group.rank % 2 else pairs[::-1]))
        if not group.rank % 2:
            results.reverse()
        assert results == [[i * group.size for i in range(5)], [10 * i * group.size for i in range(5)]]
        # And from one thread: a group that waits does not hold up the other one.
        if group.rank == 0:
            later = first.agree([1])
            assert second.all_reduce(1).item() == group.size
            assert later.result() == [group.size]
        else:
            assert second.all_reduce(1).item() == group.size
            assert first.agree([1]).result() == [group.size]


def _one_thread_at_a_time(group: Collectives) -> None:
    with group.dup("busy") as busy:
        errors: list[BaseException] = []
        if group.rank == 0 and group.size > 1:
            thread = threading.Thread(target=busy.barrier)
            thread.start()
            time.sleep(0.2)
            errors.append(raises(RuntimeError, busy.barrier))
            group.barrier()
            thread.join()
            assert "dup" in str(errors[0])
        else:
            group.barrier()
            busy.barrier()


def _a_closed_group_says_so(group: Collectives) -> None:
    other = group.dup("closed")
    other.barrier()
    other.close()
    other.close()
    assert "closed" in str(raises(RuntimeError, other.barrier))
    group.barrier()


def _a_timeout_must_be_a_time(group: Collectives) -> None:
    raises(ValueError, lambda: group.barrier(timeout=-1))
    raises(ValueError, lambda: group.barrier(timeout=float("nan")))
    group.barrier()


GROUPS: tuple[Check, ...] = (
    _two_groups_in_opposite_order,
    _one_thread_at_a_time,
    _a_closed_group_says_so,
    _a_timeout_must_be_a_time,
)
