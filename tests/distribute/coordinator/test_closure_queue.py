# SPDX-License-Identifier: Apache-2.0
"""The order of closures, the limit of their number, and what the first error does to the others."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from distinput.distribute.coordinator.closures import Closure, ClosureQueue
from distinput.errors import CancelledError, FailedPreconditionError, UnavailableError
from tests.patience import wait_until


def put(queue: ClosureQueue, *names: str) -> list[Closure]:
    closures = [Closure(name, name) for name in names]
    for closure in closures:
        queue.put(closure)
    return closures


def take(queue: ClosureQueue) -> Closure:
    closure = queue.take(0)
    assert closure is not None
    return closure


def finish(queue: ClosureQueue, closure: Closure, error: BaseException | None = None) -> None:
    if error is None:
        closure.result._set(closure.name)
    else:
        closure.result._fail(error)
    queue.finish(closure, error)


class Waiting:
    """A call on a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.done = threading.Event()

        def run() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - looked at below
                self.error = error
            self.done.set()

        threading.Thread(target=run, daemon=True).start()

    def still(self) -> bool:
        time.sleep(0.03)
        return not self.done.is_set()

    def end(self) -> BaseException | None:
        assert self.done.wait(60), "it waits for ever"
        return self.error


def test_closures_come_in_the_order_in_which_they_were_put() -> None:
    queue = ClosureQueue()
    put(queue, "a", "b")
    put(queue, "c")
    assert [take(queue).name for _ in range(3)] == ["a", "b", "c"]


def test_a_closure_that_is_put_back_comes_first() -> None:
    queue = ClosureQueue()
    put(queue, "a", "b")
    queue.put_back(take(queue))
    assert [take(queue).name, take(queue).name] == ["a", "b"]
    assert queue.put_backs == 1


def test_a_full_queue_blocks_until_a_closure_is_taken() -> None:
    queue = ClosureQueue(limit=2)
    put(queue, "a", "b")
    third = Waiting(lambda: put(queue, "c"))
    assert third.still()
    take(queue)
    assert third.end() is None


def test_a_full_queue_raises_when_a_closure_fails() -> None:
    queue = ClosureQueue(limit=1)
    put(queue, "a")
    running = take(queue)
    put(queue, "b")
    third = Waiting(lambda: put(queue, "c"))
    assert third.still()
    finish(queue, running, KeyError("a"))
    assert isinstance(third.end(), KeyError)


def test_join_waits_for_those_that_run() -> None:
    queue = ClosureQueue()
    (closure,) = put(queue, "a")
    assert not queue.done()
    take(queue)
    join = Waiting(queue.join)
    assert join.still()
    assert not queue.done()
    finish(queue, closure)
    assert join.end() is None
    assert queue.done()


def test_join_does_not_wait_for_what_is_put_meanwhile() -> None:
    queue = ClosureQueue()
    put(queue, "a")
    first = take(queue)
    join = Waiting(queue.join)
    wait_until(lambda: queue._progress._waiters)  # type: ignore[attr-defined]  # it waits for "a" alone
    put(queue, "b")
    finish(queue, first)
    assert join.end() is None
    assert not queue.done()


def test_join_counts_a_closure_that_is_put_back() -> None:
    queue = ClosureQueue()
    put(queue, "a")
    first = take(queue)
    join = Waiting(queue.join)
    queue.put_back(first)
    assert join.still()
    finish(queue, take(queue))
    assert join.end() is None


@pytest.mark.parametrize("call", ["join", "done", "put"])
def test_the_first_error_is_raised_once_when_nothing_runs_any_more(call: str) -> None:
    queue = ClosureQueue()
    a, b, c, d = put(queue, "a", "b", "c", "d")
    for _ in range(3):
        take(queue)
    finish(queue, b, KeyError("b"))
    caller = Waiting(queue.join if call == "join" else queue.done if call == "done" else lambda: put(queue, "e"))
    assert caller.still(), "a and c are running"
    finish(queue, a, ValueError("a"))
    assert caller.still(), "c is running"
    finish(queue, c)
    assert isinstance(caller.end(), KeyError)
    assert c.result.fetch() == "c"
    with pytest.raises(CancelledError):
        d.result.fetch()
    queue.join()
    assert queue.done()
    put(queue, "f")
    assert take(queue).name == "f"


def test_no_closure_is_given_out_between_an_error_and_its_raising() -> None:
    queue = ClosureQueue()
    put(queue, "a")
    finish(queue, take(queue), KeyError("a"))
    lane = Waiting(lambda: queue.take(0))
    assert lane.still()
    queue.close()
    assert lane.end() is None


def test_a_closure_put_back_after_an_error_is_cancelled() -> None:
    queue = ClosureQueue()
    a, b = put(queue, "a", "b")
    take(queue)
    take(queue)
    finish(queue, a, KeyError("a"))
    queue.put_back(b)
    with pytest.raises(CancelledError):
        b.result.fetch()
    with pytest.raises(KeyError):
        queue.join()


def test_a_loss_for_good_is_raised_by_all_further_calls_even_while_closures_run() -> None:
    queue = ClosureQueue()
    put(queue, "a")
    take(queue)
    (waiting,) = put(queue, "b")
    join = Waiting(queue.join)
    queue.fail_for_good(lambda: UnavailableError("ps-0 is lost"))
    assert isinstance(join.end(), UnavailableError)
    with pytest.raises(CancelledError, match="ps-0 is lost"):
        waiting.result.fetch()
    for call in (queue.join, queue.done, lambda: put(queue, "c"), queue.join):
        with pytest.raises(UnavailableError, match="ps-0"):
            call()


def test_a_closed_queue_gives_out_nothing_and_takes_nothing() -> None:
    queue = ClosureQueue()
    (waiting,) = put(queue, "a")
    lane = Waiting(lambda: [queue.take(0), queue.take(0)])
    assert lane.still()
    queue.close()
    assert lane.end() is None
    with pytest.raises(FailedPreconditionError, match="it was closed"):
        put(queue, "b")
    assert waiting.name == "a"


def test_closing_cancels_what_waits() -> None:
    queue = ClosureQueue()
    (waiting,) = put(queue, "a")
    queue.close()
    assert queue.take(0) is None
    with pytest.raises(CancelledError, match="closed"):
        waiting.result.fetch()


def test_news_wake_one_lane_and_leave_the_work_to_the_others() -> None:
    queue = ClosureQueue(lanes=2)
    queue.tell(1)
    put(queue, "a")
    assert queue.take(1) is None
    taken = queue.take(1)
    assert taken is not None
    assert taken.name == "a"


def test_without_lanes_all_calls_raise() -> None:
    queue = ClosureQueue(lanes=2)
    queue.lane_ended("worker-0 did not come back")
    assert queue.done()
    queue.lane_ended("worker-1 did not come back")
    with pytest.raises(UnavailableError, match="no worker is left; the last one: worker-1 did not come back"):
        queue.done()


def test_the_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="queue_limit must be at least 1, got 0"):
        ClosureQueue(limit=0)
