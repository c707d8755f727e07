# SPDX-License-Identifier: Apache-2.0
"""`rejection_resample`: the shares of what stays, and what is refused; the laws are in tests/laws."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

RANGE = di.data.Dataset.range


def parity(x: Any) -> Any:
    return x % 2


def rare(x: Any) -> Any:
    return np.int32(x % 10 == 0)


def shares(ds: di.data.Dataset) -> tuple[int, list[float]]:
    """How many elements stay, and the share of each class."""
    classes = [int(found) for found, _ in ds]
    counts = Counter(classes)
    return len(classes), [counts[c] / len(classes) for c in sorted(counts)]


@pytest.mark.parametrize("initial", [[0.9, 0.1], None])
def test_the_classes_are_distributed_as_wanted(initial: Any) -> None:
    count, found = shares(RANGE(20_000).rejection_resample(rare, [0.5, 0.5], initial, seed=1))
    assert abs(found[0] - 0.5) < 0.03
    assert 3900 < count < 4300  # all 2,000 elements of class 1 stay; the estimate begins even


def test_no_element_is_delivered_twice() -> None:
    found = [int(x) for _, x in RANGE(1000).rejection_resample(parity, [0.9, 0.1], [0.5, 0.5], seed=2)]
    assert found == sorted(set(found))


def test_elements_are_those_of_tensorflow_where_chance_has_no_part() -> None:
    # TensorFlow 2.21 answers so, with the dtype of what class_func returns.
    same = RANGE(4).rejection_resample(parity, [0.5, 0.5], [0.5, 0.5])
    assert same.to_list() == [(0, 0), (1, 1), (0, 2), (1, 3)]
    assert same.element_spec == (di.TensorSpec([], "int64"), di.TensorSpec([], "int64"))
    one = RANGE(8).rejection_resample(parity, [2.0, 0.0], [0.5, 0.5])
    assert one.to_list() == [(0, 0), (0, 2), (0, 4), (0, 6)]
    assert one.cardinality() == di.data.UNKNOWN_CARDINALITY
    pairs = RANGE(2).map(lambda x: (x, x)).rejection_resample(lambda x, _: x, [0.5, 0.5], [0.5, 0.5])
    assert pairs.to_list() == [(0, (0, 0)), (1, (1, 1))]


def test_a_seed_repeats_a_job_and_passes_differ() -> None:
    ds = RANGE(200).rejection_resample(rare, [0.5, 0.5], [0.9, 0.1], seed=5)
    first, second = ds.to_list(), ds.to_list()
    assert first != second
    assert RANGE(200).rejection_resample(rare, [0.5, 0.5], [0.9, 0.1], seed=5).to_list() == first


@pytest.mark.parametrize(
    "target, initial, says",
    [
        ([], None, "target_dist must be a vector of numbers, one for each class, got"),
        ([[1.0]], None, "target_dist must be a vector"),
        (["a"], None, "target_dist must be a vector"),
        ([-1.0, 2.0], None, "target_dist must hold numbers from 0 on, not all of them 0, got"),
        ([0.0, 0.0], None, "target_dist must hold numbers from 0 on, not all of them 0"),
        ([0.5, 0.5], [1.0], "initial_dist must have one share for each class of target_dist, got 1 and 2"),
        ([0.5, 0.5], [1.0, 0.0], "initial_dist must be greater than 0 for every class that target_dist wants"),
    ],
)
def test_distributions_are_checked(target: Any, initial: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"rejection_resample: {says}"):
        RANGE(3).rejection_resample(parity, target, initial)


def test_classes_are_checked() -> None:
    with pytest.raises(TypeError, match="class_func must be a function, got 3"):
        RANGE(3).rejection_resample(3, [1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="class_func must return an integer, got "):
        RANGE(3).rejection_resample(lambda x: x / 2, [1.0])
    ds = RANGE(8).filter(lambda x: x > 1).rejection_resample(lambda x: x, [0.5, 0.5, 0.5, 0.5])
    with pytest.raises(
        InvalidArgumentError, match=r"class_func must return a class from 0 to 3, got np\.int64"
    ) as error:
        ds.to_list()
    assert "on element np.int64(4)" in "".join(error.value.__notes__)
    with pytest.raises(TypeError, match="rejection_resample: seed must be an integer"):
        RANGE(3).rejection_resample(parity, [1.0], seed="1")  # type: ignore[arg-type]
