# SPDX-License-Identifier: Apache-2.0
"""Neighbouring steps run as one."""

import numpy as np
import pytest

import distinput as di
from tests.rewrite.running import fires, ops_after

RANGE = di.data.Dataset.range


def test_maps_run_as_one_however_many_they_are() -> None:
    dataset = RANGE(5).map(lambda x: x + 1).map(lambda x: x * 2).map(lambda x: x - 1)
    assert ops_after(dataset, "map_of_map") == ["range", "fused_map"]
    assert dataset.to_list() == [1, 3, 5, 7, 9]


def test_maps_with_a_step_between_them_do_not() -> None:
    assert not fires(RANGE(5).map(abs).prefetch(1).map(abs), "map_of_map")


def test_an_error_names_the_function_that_raised_it() -> None:
    def second(x: int) -> int:
        if x == 3:
            raise KeyError("three")
        return x

    dataset = RANGE(5).map(lambda x: x + 1).map(second)
    iterator = iter(dataset)
    assert [next(iterator), next(iterator)] == [1, 2]
    with pytest.raises(KeyError, match="three") as raised:
        next(iterator)
    assert any("second" in note for note in raised.value.__notes__)


def test_maps_of_rows_run_as_one() -> None:
    dataset = RANGE(5).map_rows(lambda x: x + 1).map_rows(lambda x: x * 2)
    assert ops_after(dataset, "map_rows_of_map_rows") == ["range", "fused_map_rows"]


def test_zips_keep_the_nest_of_their_elements() -> None:
    a, b, c = RANGE(3), RANGE(10, 13), RANGE(20, 23)
    dataset = di.data.Dataset.zip({"x": di.data.Dataset.zip(a, (b, c)), "y": a})
    assert ops_after(dataset, "zip_of_zip") == ["range", "range", "range", "range", "zip"]
    assert dataset.to_list()[1] == {"x": (1, (11, 21)), "y": 1}
    assert not fires(di.data.Dataset.zip(a, b), "zip_of_zip")


def test_arrays_one_after_the_other_are_one_step() -> None:
    parts = [di.data.Dataset.from_tensor_slices(np.arange(n)) for n in (2, 0, 3)]
    dataset = parts[0].concatenate(parts[1]).concatenate(parts[2])
    assert ops_after(dataset, "concatenate_of_slices") == ["slices_in_turn"]
    assert dataset.to_list() == [0, 1, 0, 1, 2]
    assert not fires(parts[0].concatenate(RANGE(3)), "concatenate_of_slices")
