# SPDX-License-Identifier: Apache-2.0
"""Counter-based randomness: every random choice is a function of (seed, epoch, position), so it can be made again.

The mixing function is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import local
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
Words = np.ndarray[Any, np.dtype[np.uint64]]


_GLOBAL: tuple[int, "count[int]"] | None = None
"""The seed that the user set for all steps without one, and how many have drawn from it since."""

_HERE = local()


def set_global_seed(seed: int | None) -> None:
    """Have ops that are given no seed draw theirs from this one, in order; None: from the operating system, as at first."""
    global _GLOBAL
    _GLOBAL = None if seed is None else (seed, count())


def fresh_seed() -> int:
    """A seed for an op that was given none: from the global seed if there is one, or else from the operating system."""
    if _GLOBAL is None or getattr(_HERE, "unseeded", False):
        return unrelated()
    seed, drawn = _GLOBAL
    return key_of(seed, next(drawn)) >> 1


def unrelated() -> int:
    """A number from the operating system, of 63 bits."""
    return int.from_bytes(os.urandom(8), "little") >> 1


@contextmanager
def unseeded() -> Iterator[None]:
    """Within it, on this thread, no seeds are drawn from the global one: for functions that run while a pipeline does."""
    before = getattr(_HERE, "unseeded", False)
    _HERE.unseeded = True
    try:
        yield
    finally:
        _HERE.unseeded = before


def _mix(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)


def key_of(*parts: int) -> int:
    """One 64-bit key from integers of any size, such as a seed and an epoch."""
    key = 0
    for part in parts:
        rest = int(part)
        negative = rest < 0
        rest = abs(rest)
        key = _mix((key + _GOLDEN + negative) & _MASK)
        while True:
            key = _mix((key ^ (rest & _MASK)) + _GOLDEN & _MASK)
            rest >>= 64
            if not rest:
                break
    return key


def words_at(key: int, start: int, count: int) -> Words:
    """The random words of positions start to start + count."""
    return words_of(key, np.arange(start, start + count, dtype=np.uint64))


def words_of(key: int, positions: np.ndarray[Any, Any]) -> Words:
    """The random words of these positions."""
    with np.errstate(over="ignore"):
        word = positions.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(key)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))


def uniform_at(key: int, start: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers in [0, 1) of positions start to start + count."""
    return (words_at(key, start, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
