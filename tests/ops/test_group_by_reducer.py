# SPDX-License-Identifier: Apache-2.0
"""`group_by_reducer`: the answers of TensorFlow 2.21, and what is refused; the laws are in tests/laws."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

RANGE = di.data.Dataset.range
Reducer = di.data.experimental.Reducer
TOTAL = Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)


def grouped(ds: di.data.Dataset, key: Any, reducer: Any = TOTAL) -> di.data.Dataset:
    return ds.apply(di.data.experimental.group_by_reducer(key, reducer))


def test_results_come_in_the_order_of_their_keys() -> None:
    assert grouped(RANGE(10), lambda x: (x + 1) % 3 - 1).to_list() == [15, 18, 12]
    assert grouped(RANGE(0), lambda x: x % 3).to_list() == []


def test_the_key_is_told_and_a_tuple_is_taken_apart_at_the_end() -> None:
    reducer = Reducer(lambda k: (k, np.int64(0)), lambda s, x: (s[0], s[1] + x), lambda k, n: {"k": k, "n": n})
    ds = grouped(RANGE(10), lambda x: x % 3, reducer)
    assert ds.to_list() == [{"k": 0, "n": 18}, {"k": 1, "n": 12}, {"k": 2, "n": 15}]
    assert ds.element_spec == {"k": di.TensorSpec([], "int64"), "n": di.TensorSpec([], "int64")}
    assert ds.cardinality() == di.data.UNKNOWN_CARDINALITY


def test_a_tuple_is_one_argument_of_the_reduction() -> None:
    pairs = RANGE(10).map(lambda x: (x, x))
    reducer = Reducer(lambda _: np.int64(0), lambda total, pair: total + pair[0], lambda total: total)
    assert grouped(pairs, lambda a, b: a % 3, reducer).to_list() == [18, 12, 15]


def test_results_of_several_shapes_are_delivered() -> None:
    reducer = Reducer(lambda _: np.zeros(0, np.int64), lambda found, x: np.append(found, x), lambda found: found)
    ds = grouped(RANGE(5), lambda x: x % 2, reducer)
    assert ds.element_spec == di.TensorSpec([None], "int64")
    assert ds.to_list() == [[0, 2, 4], [1, 3]]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="Reducer: reduce_func must be a function, got 1"):
        Reducer(lambda key: key, 1, lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="group_by_reducer: reducer must be a Reducer, got "):
        grouped(RANGE(3), lambda x: x, len)
    with pytest.raises(TypeError, match="group_by_reducer: key_func must be a function, got 2"):
        grouped(RANGE(3), 2)
    with pytest.raises(TypeError, match="group_by_reducer: key_func must return an integer"):
        grouped(RANGE(3), lambda x: x / 2).to_list()
    changed = Reducer(lambda _: np.int64(0), lambda total, x: total + 0.5, lambda total: total)
    with pytest.raises(TypeError, match="group_by_reducer: the carried value must keep its dtype int64, got float64"):
        grouped(RANGE(3), lambda x: x, changed).to_list()


def test_an_error_of_the_end_names_the_key() -> None:
    def fails(total: Any) -> Any:
        raise ValueError(f"of {total}")

    reducer = Reducer(lambda _: np.int64(0), lambda total, x: total + x, fails)
    with pytest.raises(ValueError, match="of 4") as error:
        grouped(RANGE(3).map(lambda x: x + 4).take(1), lambda x: x, reducer).to_list()
    assert "on the value of key 4" in error.value.__notes__


def test_a_key_fits_into_int64() -> None:
    reducer = di.data.experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
    grouped = di.data.Dataset.range(3).apply(di.data.experimental.group_by_reducer(lambda x: np.uint64(2**63), reducer))
    with pytest.raises(
        InvalidArgumentError, match="group_by_reducer: a key must fit into int64, got 9223372036854775808"
    ):
        list(grouped)
