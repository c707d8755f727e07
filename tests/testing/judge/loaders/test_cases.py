# SPDX-License-Identifier: Apache-2.0
"""What is told of other loaders is found again, in the versions that it is told of."""

import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pytest

from distinput.testing.judge.loaders.known import CASES
from distinput.testing.judge.report import Verdict

FOUND: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "steps of ElasticIterator": ("0.2.18", {"steps": [3, 3, 2, 2]}),
    "restart after shuffle": ("5.2.0", {"lost": 71, "again": 7, "stops": {"30": [71, 7]}}),
    "steps of split_by_node": ("1.0.2", {"steps": [8, 1]}),
    "duplicates of DistributedSampler": ("2.13.0", {"lost": 0, "again": 2}),
}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_what_is_told_is_found(name: str) -> None:
    case = CASES[name]
    for package in case.known.packages:
        pytest.importorskip(package, reason=f"{package} is not installed")
    there, figures = FOUND[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, about themselves
        finding = case.finding()
    assert finding.verdict is not Verdict.NOT_JUDGED
    if version(case.known.packages[0]).partition("+")[0] == there:
        assert finding.verdict is Verdict.BROKEN
        assert {key: finding.figures[key] for key in figures} == figures


def test_cases_with_processes_are_for_the_page() -> None:
    assert set(CASES) - set(FOUND) == {"batches by workers"}
