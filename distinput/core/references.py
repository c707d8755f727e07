# SPDX-License-Identifier: Apache-2.0
"""Reference counts as evidence that nobody else holds an object, which is what decides whether memory is used again.

On CPython with its global lock the count is exact, and an object that only one place refers to can only be reached through
that place. Free-threaded builds (PEP 703) share counts between threads and settle them later, and other interpreters keep none:
there nothing is ever taken for unheld, so buffers are not recycled, and what users may still change is copied.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["alone", "calibrated", "counts_are_exact"]


def counts_are_exact() -> bool:
    """Whether reference counts can be relied on: on CPython while its global lock is enabled."""
    return sys.implementation.name == "cpython" and bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def alone(held: list[Any]) -> bool:
    """Whether nothing but this list refers to its only item; always False where counts are not exact."""
    return sys.getrefcount(held[0]) == _ALONE


def calibrated(count: Callable[[Any], int], make: Callable[[int], Any]) -> int:
    """What `count` says of an object of `make` that nobody else holds, both called by `map`; -1 where counts are not exact.

    How many references an interpreter itself keeps during a call differs by version, so it is asked.
    """
    return list(map(count, map(make, [0])))[0] if counts_are_exact() else -1  # noqa: RUF015 - as `owned` is called


_ALONE = calibrated(lambda held: sys.getrefcount(held[0]), lambda _: [np.empty(1)])
