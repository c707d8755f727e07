# SPDX-License-Identifier: Apache-2.0
"""Call a function for many files, several at a time where each call makes a request over the network."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from distinput.core.pool import mapped
from distinput.files.paths import local_path

__all__ = ["ask_each"]

T = TypeVar("T")

_AT_A_TIME = 16


def ask_each(ask: Callable[[str], T], paths: Sequence[str]) -> Iterator[T]:
    """`ask(path)` for each path, in order; lazily if all files are local, concurrently otherwise.

    >>> list(ask_each(len, ["a", "bc"]))
    [1, 2]
    """
    if len(paths) < 2 or all(local_path(path) is not None for path in paths):
        return map(ask, paths)
    return iter(mapped(ask, paths, _AT_A_TIME, "distinput-ask"))
