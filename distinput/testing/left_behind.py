# SPDX-License-Identifier: Apache-2.0
"""Threads, processes and open files that something leaves behind."""

import contextlib
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

T = TypeVar("T")


def check_uses(uses: Mapping[str, Callable[[T], None]], factory: Callable[[], T], seconds: float) -> None:
    """Nothing is left behind after any use of what a factory makes.

    Args:
      uses: what is done, and in which words an error says so; the first is done once before anything is looked at.
      factory: makes what is used.
      seconds: how long what ends on its own may take.

    Raises:
      AssertionError: something is left.
    """
    next(iter(uses.values()))(factory())  # load now what is loaded once for the whole process
    frozen = gc.get_freeze_count()
    gc.collect()
    gc.freeze()  # so that each collection looks at new objects only
    try:
        for how, use in uses.items():
            _check_nothing_left_after(how, use, factory, seconds)
    finally:
        if not frozen:  # else somebody wants what is old to stay out of collections
            gc.unfreeze()


def _check_nothing_left_after(how: str, use: Callable[[T], None], factory: Callable[[], T], seconds: float) -> None:
    threads, files, processes = set(threading.enumerate()), _open_files(), children()
    use(factory())
    deadline = time.monotonic() + seconds
    while True:
        gc.collect()
        left = begun_since(threads) + list((_open_files() - files).elements())
        left += [f"process {pid}" for pid in children() - processes]
        if not left:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing left behind: after {how} there are still {left}")
        time.sleep(0.01)


def begun_since(before: Collection[threading.Thread]) -> list[str]:
    """The names of the threads that began since; one compiles kernels, for all, and takes as long as that takes."""
    return [each.name for each in threading.enumerate() if each not in before and each.name != "distinput-kernels"]


def children() -> set[str]:
    """The numbers of the processes that this one started and that have not ended; nothing where the system does not tell."""
    found: set[str] = set()
    for thread in _listed("/proc/self/task"):
        # Bytes, and no paths: a process with libraries loaded has a hundred threads.
        with contextlib.suppress(OSError), open(f"{thread}/children", "rb", 0) as told:  # or it has ended meanwhile
            found.update(told.read().decode().split())
    return found


def _open_files() -> "Counter[str]":
    """What this process has open, by name; nothing where the system does not tell."""
    found: Counter[str] = Counter()
    for descriptor in _listed("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            found[os.readlink(descriptor)] += 1
    return found


def _listed(folder: str) -> list[str]:
    """What a folder of the system holds; nothing where there is none."""
    with contextlib.suppress(FileNotFoundError):
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    return []
