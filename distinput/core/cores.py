# SPDX-License-Identifier: Apache-2.0
"""The cores that this process may use."""

import os

__all__ = ["cores"]


def cores() -> int:
    """The cores that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
