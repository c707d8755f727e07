# SPDX-License-Identifier: Apache-2.0
"""Law 8: nothing is left behind, however an iteration ends."""

import contextlib
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from distinput.data.dataset import Dataset
from distinput.testing.laws.trace import MOST, until_error

__all__ = ["check_nothing_left"]


def check_nothing_left(factory: Callable[[], Dataset], *, seconds: float = 5.0) -> None:
    """Law 8: no thread, process or open file is left behind, however an iteration ends.

    A pass is run to its end (or its error), closed after one element, closed before the first, abandoned after one element,
    and abandoned before the first.

    Args:
      factory: makes the pipeline.
      seconds: how long what ends on its own may take.

    Raises:
      AssertionError: something is left.

    >>> import distinput as di
    >>> check_nothing_left(lambda: di.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    """
    _run_out(factory())  # load now what is loaded once for the whole process
    gc.collect()
    gc.freeze()  # so that each collection looks at new objects only
    try:
        for how, use in (
            ("the end", _run_out),
            ("close after one element", lambda ds: _close_after(ds, 1)),
            ("close before the first element", lambda ds: _close_after(ds, 0)),
            ("an iterator abandoned after one element", lambda ds: _abandon_after(ds, 1)),
            ("an iterator abandoned before the first element", lambda ds: _abandon_after(ds, 0)),
        ):
            _check_nothing_left_after(how, use, factory, seconds)
    finally:
        gc.unfreeze()


def _check_nothing_left_after(
    how: str, use: Callable[[Dataset], None], factory: Callable[[], Dataset], seconds: float
) -> None:
    threads, files, processes = set(threading.enumerate()), _open_files(), _children()
    use(factory())
    left: list[str] = []
    deadline = time.monotonic() + seconds
    while True:
        gc.collect()
        left = [thread.name for thread in threading.enumerate() if thread not in threads]
        left += list((_open_files() - files).elements())
        left += [f"process {pid}" for pid in _children() - processes]
        if not left:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing left behind: after {how} there are still {left}")
        time.sleep(0.01)


def _run_out(dataset: Dataset) -> None:
    with iter(dataset) as elements:
        for _ in until_error(elements, MOST):
            pass


def _close_after(dataset: Dataset, count: int) -> None:
    with iter(dataset) as elements:
        for _ in until_error(elements, count):
            pass


def _abandon_after(dataset: Dataset, count: int) -> None:
    elements = iter(dataset)
    for _ in until_error(elements, count):
        pass
    del elements


def _children() -> set[str]:
    """The processes that this one started and that have not ended; nothing where the system does not tell."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found.update(thread.read_text().split())
    return found


def _open_files() -> "Counter[str]":
    """What this process has open, by name; nothing where the system does not tell."""
    found: Counter[str] = Counter()
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return found
    for name in os.listdir(folder):
        try:
            target = os.readlink(os.path.join(folder, name))
        except OSError:  # the descriptor of the listing itself
            continue
        found[target] += 1
    return found
