# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.options import as_policy

SkipErrors = di.data.SkipErrors


@pytest.mark.parametrize(
    "most, errors, elements, exceeded",
    [
        (None, 10**9, 0, False),
        (0, 0, 5, False),
        (0, 1, 10**6, True),
        (3, 3, 0, False),
        (3, 4, 10**6, True),
        (0.01, 10, 0, False),
        (0.01, 11, 0, True),
        (0.01, 11, 1089, False),
        (0.01, 11, 1088, True),
        (0.0, 1, 10**6, True),
    ],
)
def test_a_budget_is_a_count_or_a_share_of_errors(most: Any, errors: int, elements: int, exceeded: bool) -> None:
    assert SkipErrors(most).exceeded(errors, elements) is exceeded


@pytest.mark.parametrize("most", [-1, 1.5, -0.1, True, "3", float("nan")])
def test_a_budget_is_a_number_or_a_share(most: Any) -> None:
    with pytest.raises(
        di.errors.InvalidArgumentError, match="max_errors must be a whole number from 0 on, a share between"
    ):
        SkipErrors(most)


def test_other_arguments() -> None:
    with pytest.raises(
        di.errors.InvalidArgumentError, match="max_quarantined must be a whole number from 0 on, got -1"
    ):
        SkipErrors(max_quarantined=-1)
    with pytest.raises(di.errors.InvalidArgumentError, match="quarantine must be a local file, to which lines can be"):
        SkipErrors(quarantine="s3://bucket/bad.jsonl")


def test_how_it_is_spelled() -> None:
    assert as_policy("map", "skip") == SkipErrors()
    assert as_policy("map", SkipErrors(3)) == SkipErrors(3)
    assert as_policy("map", "raise") is None
    with pytest.raises(di.errors.InvalidArgumentError, match='map: on_error must be "raise", "skip" or SkipErrors'):
        as_policy("map", "ignore")


def test_numbers_of_numpy_and_paths_of_bytes_are_taken() -> None:
    assert SkipErrors(np.int64(3), max_quarantined=np.int32(4)) == SkipErrors(3, max_quarantined=4)
    assert SkipErrors(quarantine=b"errors.jsonl").quarantine == b"errors.jsonl"
    with pytest.raises(di.errors.InvalidArgumentError, match="quarantine must be a local file"):
        SkipErrors(quarantine=b"memory://errors")
