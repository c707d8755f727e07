# SPDX-License-Identifier: Apache-2.0
"""Columns become Arrow arrays of the same values, views and gathered rows included, and come back as they were."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput
from distinput.arrow.arrow import to_column
from distinput.arrow.record_batches import column_to_arrow, to_arrow
from distinput.columns.block import Block
from distinput.columns.column import Dense
from distinput.columns.regroup import column_of
from distinput.errors import InvalidArgumentError
from distinput.values.nest import LEAF, structure_of

ROWS: dict[str, list[Any]] = {
    "numbers": [np.int16(i) for i in range(5)],
    "texts": [b"a", b"", b"bcd", b"e", b"fg"],
    "matrices": [np.full((2, 3), i, np.float32) for i in range(5)],
    "lengths": [np.arange(i % 3) for i in range(5)],
    "texts of one shape": [np.array([b"a", str(i).encode()], object) for i in range(5)],
    "texts of some lengths": [np.array([b"x"] * (i % 3), object) for i in range(5)],
}


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@given(st.sampled_from(sorted(ROWS)), st.lists(st.integers(0, 4), max_size=6))
def test_rows_go_to_arrow_and_back(kind: str, rows: list[int]) -> None:
    column = column_of(list(ROWS[kind])).take(np.array(rows, np.int64))
    array = column_to_arrow(column)
    array.validate(full=True)
    assert array.to_pylist() == [plain(ROWS[kind][i]) for i in rows]
    assert [plain(value) for value in to_column(array, "x").values()] == array.to_pylist()


@given(st.sampled_from(sorted(ROWS)), st.integers(0, 5), st.integers(0, 5), st.integers(1, 3))
def test_views_go_to_arrow(kind: str, start: int, stop: int, step: int) -> None:
    array = column_to_arrow(column_of(list(ROWS[kind])).rows(start, stop, step))
    array.validate(full=True)
    assert array.to_pylist() == [plain(value) for value in ROWS[kind][start:stop:step]]


def test_numbers_are_not_copied() -> None:
    values = np.arange(6).reshape(3, 2)
    array = column_to_arrow(Dense(values))
    assert array.type == pa.list_(pa.int64(), 2)
    assert array.values.buffers()[1].address == values.ctypes.data


def test_texts_behind_others_begin_at_the_first_byte() -> (
    None
):  # `if_else` of pyarrow 17 makes invalid arrays of others
    made = column_to_arrow(column_of([b"ab", b"c", b"de"]).rows(1, 3))
    assert made.to_pylist() == [b"c", b"de"]
    assert np.frombuffer(made.buffers()[1], np.int64).tolist() == [0, 1, 3]


def test_rows_of_several_shapes_become_lists() -> None:
    column = column_of([np.ones((1, 2)), np.ones((2, 1))])
    assert column_to_arrow(column).to_pylist() == [[[1.0, 1.0]], [[1.0], [1.0]]]


def names(element: Any) -> list[str]:
    block = Block.of_elements(structure_of(element) if isinstance(element, dict | tuple) else LEAF, [element])
    return list(to_arrow(block).schema.names)


def test_columns_are_named_by_keys_or_paths() -> None:
    assert names(1) == ["value"]
    assert names({"b": 1, "a": 2}) == ["a", "b"]
    assert names((1, b"")) == ["[0]", "[1]"]
    deep = names({"a": {"b": 1, "c": 2}})
    assert len(set(deep)) == 2
    assert ["b" in deep[0], "c" in deep[1]] == [True, True]


@pytest.mark.parametrize("unit", ["datetime64[25s]", "timedelta64[25s]", "datetime64[7D]", "timedelta64[1000us]"])
def test_times_that_count_several_units_at_once_have_no_type(unit: str) -> None:  # pyarrow drops the 25
    times = np.array([1, 2], unit)
    slices, lists = distinput.data.Dataset.from_tensor_slices(times), distinput.data.Dataset.from_tensors(times)
    for dataset in (slices, lists, slices.batch(2), slices.ragged_batch(2)):
        with pytest.raises(InvalidArgumentError, match="for which Arrow has no type; cast it with map"):
            dataset.to_arrow()
    ragged = next(iter(distinput.data.Dataset.range(1, 3).map(lambda n: times[: int(n)]).ragged_batch(2)))
    with pytest.raises(TypeError, match="Arrow has no type for"):
        pa.array(ragged)
    unit_alone = np.datetime_data(np.dtype(unit))[0]
    assert slices.map(lambda one: one.astype(f"{unit[: unit.index('[')]}[{unit_alone}]")).to_arrow().num_rows == 2


def test_ragged_rows_of_the_other_byte_order_are_those_of_this_one() -> None:
    rows = distinput.RaggedTensor.from_row_lengths(np.arange(3).astype(np.arange(1).dtype.newbyteorder()), [2, 1])
    nested = distinput.RaggedTensor.from_row_lengths(rows, [1, 1])
    for value in (rows, nested):
        for ds in (
            distinput.data.Dataset.from_tensors({"x": value}),
            distinput.data.Dataset.from_tensor_slices({"x": value}),
        ):
            assert ds.to_arrow()["x"].to_pylist() in (value.to_list(), [value.to_list()])
