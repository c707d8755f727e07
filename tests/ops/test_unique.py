# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import distinput as di
from tests.ops.iterating import plain

Dataset = di.data.Dataset


@pytest.mark.parametrize(
    "values, want",
    [
        (np.array([3, 1, 3, 2, 1]), [3, 1, 2]),
        (np.array([3, 1, 3], np.int32), [3, 1]),
        (["b", "a", "b", ""], [b"b", b"a", b""]),
        (np.array([[1, 2], [2, 1], [1, 2]]), [[1, 2], [2, 1]]),
        ([["a", "b"], ["ab", ""], ["a", "b"]], [[b"a", b"b"], [b"ab", b""]]),
    ],
)
def test_first_occurrences_in_order(values: object, want: list[object]) -> None:
    assert [plain(x) for x in Dataset.from_tensor_slices(values).unique()] == want


def test_values_of_different_shapes_differ() -> None:
    assert [plain(x) for x in Dataset.range(3).map(lambda x: np.zeros(int(x) % 2, np.int64)).unique()] == [[], [0]]


def test_a_number_is_the_same_whatever_its_block_looks_like() -> None:
    mixed = Dataset.range(3).map(lambda x: np.int64(1) if x % 2 else np.ones(1, np.int64))
    assert [plain(x) for x in mixed.concatenate(Dataset.range(3)).unique()] == [[1], 1, 0, 2]
    assert [plain(x) for x in Dataset.range(3).concatenate(mixed).unique()] == [0, 1, 2, [1]]


def test_one_component_only() -> None:
    with pytest.raises(TypeError, match=r"unique: elements must have a single component, got .*; map it to one first"):
        Dataset.range(3).enumerate().unique()


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool"])
def test_whole_numbers_and_strings_only(dtype: str) -> None:
    with pytest.raises(TypeError, match=f"unique: elements must be int32, int64 or strings, got {dtype}"):
        Dataset.from_tensor_slices(np.zeros(2, dtype)).unique()


def test_a_restart_remembers_what_was_seen() -> None:
    dataset = Dataset.from_tensor_slices(np.array([1, 2, 1, 2, 3, 1, 4])).unique()
    it = iter(dataset)
    next(it), next(it)
    assert [int(x) for x in dataset.restore(it.state())] == [3, 4]
