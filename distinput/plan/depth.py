# SPDX-License-Identifier: Apache-2.0
"""Deep trees: a loop of a thousand turns, each of which adds a step, makes a tree of a thousand floors."""

import sys
from typing import Any

__all__ = ["allow_depth"]

_SHALLOW, _FRAMES = 48, 16
"""Floors for which Python's own limit is enough, and frames for each floor: those of a stream and of who reads it."""


def allow_depth(node: Any) -> None:
    """Raise Python's limit of recursion to what a tree needs; most trees need nothing.

    Steps look at their inputs, and streams read from streams, so a program needs more frames the deeper its tree is.

    Args:
      node: the root of the tree.
    """
    depth = _depth(node)
    if depth > _SHALLOW and sys.getrecursionlimit() < (wanted := 1000 + _FRAMES * depth):
        sys.setrecursionlimit(wanted)


def _depth(node: Any) -> int:
    """The steps on the longest way from the root to a source, found once for each step."""
    waiting = [node]
    while waiting:
        known = vars(waiting[-1])
        if "_depth" in known:
            waiting.pop()
            continue
        inputs = waiting[-1].inputs
        missing = [source for source in inputs if "_depth" not in vars(source)]
        if missing:
            waiting += missing
        else:
            known["_depth"] = 1 + max([vars(source)["_depth"] for source in inputs], default=0)
            waiting.pop()
    found: int = vars(node)["_depth"]
    return found
