# SPDX-License-Identifier: Apache-2.0
"""Loaders of others that need processes or threads for their ranks, before the judge: it finds what is to be judged."""

import warnings

import pytest

from distinput.testing import judge
from distinput.testing.judge.loaders.known import made
from distinput.testing.judge.loaders.records import files

_HERE = "distinput.testing.judge.loaders"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "module, make, play",
    [
        ("streaming", f"{_HERE}.libraries:streaming", "processes"),
        ("lance", f"{_HERE}.libraries:lance_batches", "in turn"),
        ("ray", f"{_HERE}.libraries:streaming_split", "threads"),
        ("ray", f"{_HERE}.libraries:dropping_split", "threads"),
    ],
    ids=["MosaicML Streaming", "Lance", "Ray Data", "Ray Data, equal"],
)
def test_ranks_at_once_are_judged(module: str, make: str, play: str) -> None:
    pytest.importorskip(module, reason=f"left out: {module} is not installed")
    files()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, about themselves
        report = judge(made(make), 17, ranks=2, batch=4, laws=["exactly once", "equal steps"], patience=120, play=play)
    assert not report.not_judged, str(report)
    print(report)
