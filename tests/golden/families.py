# SPDX-License-Identifier: Apache-2.0
"""Which golden families distinput answers today: the one place to change when another one is taken in."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

# Moving a family into coverage is moving its word up one line.
COVERED = ("coll", "cs", "data", "dist", "fromfn", "mw", "obj", "ps", "shard", "var")
NOT_YET: tuple[str, ...] = ()

Case = dict[str, Any]


def group(case: Case) -> str:
    """The first part of a case's family: `dist` of `dist.partial`."""
    return str(case["family"].split(".")[0])


@cache
def load(path: Path) -> tuple[Case, ...]:
    """All cases of a golden file."""
    with path.open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines if line.strip())


def is_covered(case: Case) -> bool:
    """True for a case of a covered family."""
    return group(case) in COVERED


def covered(cases: tuple[Case, ...]) -> Iterator[Case]:
    """The cases that must pass: a covered family, and not one of TensorFlow's defects."""
    return (case for case in cases if is_covered(case) and "quirk" not in case)


def quirks(cases: tuple[Case, ...]) -> Iterator[Case]:
    """The cases of covered families that record a defect of TensorFlow."""
    return (case for case in cases if is_covered(case) and "quirk" in case)


def summary_lines(path: Path, passed: int, failed: int) -> list[str]:
    """What the test report says about the golden answers."""
    cases = load(path)
    missing = Counter(group(case) for case in cases if not is_covered(case))
    number = sum(1 for _ in covered(cases))
    defects = sum(1 for _ in quirks(cases))
    counts = ", ".join(f"{name} {count}" for name, count in sorted(missing.items())) or "none"
    return [
        f"golden: {passed + failed} of {number} covered cases run, {passed} passed, {failed} failed",
        f"golden: {defects} defects of TensorFlow in these families not copied; docs/tensorflow.md says what we do instead",
        f"golden: not yet covered: {sum(missing.values())} of {len(cases)} cases: {counts}",
    ]
