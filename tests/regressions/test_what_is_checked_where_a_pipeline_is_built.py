# SPDX-License-Identifier: Apache-2.0
"""What specs, and elements in memory, tell of a mistake is told where the pipeline is built, as TensorFlow does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di

D = di.data.Dataset
LONG = D.range(6).batch(2).take(2)


@pytest.mark.parametrize(
    "build, error, says",
    [
        (lambda: D.range(2).concatenate(D.from_tensors(1.0)), TypeError, "same dtypes, got int64 and float32"),
        (lambda: D.range(2).concatenate(D.zip(D.range(2), D.range(2))), TypeError, "same structure of elements"),
        (lambda: D.range(2).concatenate(3), TypeError, "concatenate: dataset must be a Dataset, got 3"),
        (
            lambda: D.range(2).unbatch(),
            ValueError,
            "unbatch: All components must have at least one dimension, got scalar",
        ),
        (
            lambda: D.from_tensors(([1, 2], [1, 2, 3])).unbatch(),
            ValueError,
            "unbatch: all components must have the same first",
        ),
        (
            lambda: D.range(2).window(2).unbatch(),
            ValueError,
            "got a dataset in the element; flat_map or zip it first",
        ),
        (
            lambda: D.range(2).rebatch(2),
            ValueError,
            "rebatch: All components must have at least one dimension, got scalar",
        ),
        (lambda: LONG.flat_map(lambda x: x), TypeError, "flat_map: the function must return a dataset, got ndarray"),
        (
            lambda: LONG.interleave(lambda x: [x]),
            TypeError,
            "interleave: the function must return a dataset, got tuple",
        ),
        (
            lambda: LONG.scan(np.int32(0), lambda s, x: (s + x.sum(), x)),
            TypeError,
            "must keep its dtype int32, got int64",
        ),
        (lambda: LONG.scan(0, lambda s, x: s), TypeError, "scan: scan_func must return"),
        (lambda: D.range(2).enumerate().sparse_batch(2, []), TypeError, "sparse_batch: elements must be single arrays"),
        (
            lambda: LONG.sparse_batch(2, [3, 3]),
            ValueError,
            "sparse_batch: row_shape must have the rank of the elements",
        ),
        (lambda: D.range(4).batch(2).ragged_batch(2).sparse_batch(2, [9]), TypeError, "elements must be single arrays"),
    ],
)
def test_a_mistake_is_told_when_it_is_made(build: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        build()


def test_no_file_is_looked_at_and_no_function_is_asked_for_elements_that_are_not_there() -> None:
    absent = di.data.ParquetDataset("nowhere.parquet")
    assert absent.concatenate(absent).unbatch().cardinality is not None
    called: list[Any] = []

    def note(x: Any) -> Any:
        called.append(x)
        return x

    mapped = D.range(3).map(note)
    mapped.unbatch()
    mapped.concatenate(D.from_tensors("a"))
    mapped.flat_map(note)
    mapped.filter(note)
    mapped.scan(0, lambda s, x: note(x))
    D.range(0).flat_map(note)
    D.from_generator(lambda: iter([note(1)]), "int64").flat_map(note)
    assert called == []


def test_an_error_of_the_function_itself_waits_for_the_iteration() -> None:
    for build in (
        lambda: D.range(3).flat_map(lambda x: D.range(1 // x)),
        lambda: D.range(3).scan(np.int64(0), lambda s, x: (1 // x, x)),
    ):
        ds = build()
        with pytest.raises((RuntimeWarning, ZeroDivisionError)):
            ds.to_list()


def test_many_datasets_one_after_the_other_are_built_in_no_time() -> None:
    ds = D.range(1)
    for number in range(1, 3000):
        ds = ds.concatenate(D.range(number, number + 1))
    assert ds.node.known_spec is not None


def test_a_check_of_scan_leaves_the_initial_state_as_it_is() -> None:
    def add(state: Any, x: Any) -> Any:
        state += x
        return state, state.copy()

    assert D.range(1, 4).scan(np.zeros(1, np.int64), add).to_list() == [[1], [3], [6]]
