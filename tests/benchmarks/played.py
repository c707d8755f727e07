# SPDX-License-Identifier: Apache-2.0
"""A benchmark whose contenders agree, differ, fail or are missing, for the tests of the harness."""

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import Case, Contender, Work, delivering

QUESTION = "played"


def prepare(folder: Path, scale: float) -> None:
    pass


def cases(folder: Path, scale: float) -> list[Case]:
    ours = Contender("ours", "ours", lambda: counting(6))
    return [
        Case("agree", {"row": 6}, [ours, Contender("same", "peer", lambda: counting(6), reach=0.001)]),
        Case("differ", {"row": 6}, [ours, Contender("other", "peer", lambda: counting(7))]),
        Case("limit fails", {"row": 6}, [ours, Contender("broken", "limit", broken)]),
        Case("peer fails", {"row": 6}, [ours, Contender("dies", "peer", dying)]),
        Case("missing", {"row": 6}, [ours, Contender("absent", "peer", broken, ("no_such_package",))]),
    ]


def counting(n: int) -> Work:
    print("noise on the standard output")
    return delivering(lambda: iter([np.arange(n)]))


def broken() -> Work:
    raise RuntimeError("the limit is broken")


def dying() -> Work:
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)
