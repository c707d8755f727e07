# SPDX-License-Identifier: Apache-2.0
"""Asking many files the same question, several at a time where each answer takes a request over the network."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from distinput.files.paths import local_path

__all__ = ["ask_each"]

T = TypeVar("T")

_AT_A_TIME = 16


def ask_each(ask: Callable[[str], T], paths: Sequence[str]) -> Iterator[T]:
    """`ask(path)` of each path, in order; local files are asked when their answer is wanted.

    >>> list(ask_each(len, ["a", "bc"]))
    [1, 2]
    """
    if len(paths) < 2 or all(local_path(path) is not None for path in paths):
        return map(ask, paths)
    pool = ThreadPoolExecutor(_AT_A_TIME, "distinput-ask")
    try:
        return iter(list(pool.map(ask, paths)))
    finally:
        pool.shutdown(cancel_futures=True)
