# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors against plain lists."""

import copy
import pickle
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.values.ragged_tensor import RaggedTensor

NUMBERS = st.integers(-(2**31), 2**31 - 1)
ROWS = st.lists(st.lists(NUMBERS, max_size=5), max_size=6)
DEEP = st.lists(ROWS, max_size=4)


def made(rows: list[Any], ragged_rank: int = 1) -> RaggedTensor:
    """Also of rows without values, which tell no depth."""
    inner = [x for row in rows for x in row]
    values = made(inner, ragged_rank - 1) if ragged_rank > 1 else np.array(inner, np.int64)
    return RaggedTensor.from_row_lengths(values, np.array(list(map(len, rows)), np.int64))


@given(ROWS)
def test_rows_of_lists(rows: list[list[int]]) -> None:
    ragged = made(rows)
    assert ragged.to_list() == rows
    assert [row.tolist() for row in ragged] == rows
    assert (len(ragged), ragged.nrows(), ragged.row_lengths().tolist()) == (len(rows), len(rows), list(map(len, rows)))
    assert ragged.row_splits.dtype == np.int64
    assert RaggedTensor.from_row_splits(ragged.values, ragged.row_splits).to_list() == rows
    assert (ragged.shape, ragged.ragged_rank, ragged.dtype) == ((len(rows), None), 1, np.int64)
    width = max(map(len, rows), default=0)
    assert ragged.to_padded(-1).tolist() == [row + [-1] * (width - len(row)) for row in rows]
    assert pickle.loads(pickle.dumps(ragged, 5)).to_list() == rows


@given(DEEP)
def test_rows_of_rows(rows: list[list[list[int]]]) -> None:
    ragged = made(rows, 2)
    assert ragged.to_list() == rows
    assert (ragged.shape, ragged.ragged_rank) == ((len(rows), None, None), 2)
    assert ragged.flat_values.tolist() == [x for row in rows for inner in row for x in inner]
    assert [splits[0] for splits in ragged.nested_row_splits] == [0, 0]
    high = max(map(len, rows), default=0)
    wide = max([len(inner) for row in rows for inner in row], default=0)
    full = [[inner + [0] * (wide - len(inner)) for inner in row] + [[0] * wide] * (high - len(row)) for row in rows]
    assert ragged.to_padded().shape == (len(rows), high, wide)
    assert ragged.to_padded().tolist() == full


@given(DEEP, st.data())
def test_rows_are_chosen_as_in_lists(rows: list[list[list[int]]], data: st.DataObject) -> None:
    ragged = made(rows, 2)
    start, stop = data.draw(st.integers(-6, 6)), data.draw(st.integers(-6, 6))
    step = data.draw(st.sampled_from([None, 1, 2, -1, -3]))
    assert ragged[start:stop:step].to_list() == rows[start:stop:step]
    if rows:
        number = data.draw(st.integers(-len(rows), len(rows) - 1))
        assert ragged[number].to_list() == rows[number]
        places = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1)))
        assert ragged[np.array(places, np.int64)].to_list() == [rows[i] for i in places]
        assert ragged[np.arange(len(rows)) % 2 == 0].to_list() == rows[::2]


@given(ROWS)
def test_sparse_places(rows: list[list[int]]) -> None:
    sparse = made(rows).to_sparse()
    assert sparse.indices.tolist() == [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    assert sparse.to_dense().tolist() == made(rows).to_padded().tolist()


@given(ROWS)
def test_arrow_keeps_rows(rows: list[list[int]]) -> None:
    assert pa.array(made(rows)).to_pylist() == rows


def test_arrow_arrays_of_numbers_share_the_memory() -> None:
    ragged = made([[1, 2], [3]])
    array = pa.array(ragged)
    assert array.type == pa.large_list(pa.int64())
    assert np.shares_memory(array.values.to_numpy(), ragged.values)


@pytest.mark.parametrize(
    "rows, dtype",
    [([[b"a", b"bb"], []], object), ([["x"], ["y", "z"]], object), ([[1.5], []], np.float32), ([[True], []], bool)],
)
def test_values_of_lists_have_the_dtypes_of_leaves(rows: Any, dtype: Any) -> None:
    ragged = RaggedTensor.from_list(rows)
    assert ragged.dtype == dtype
    assert [[x.decode() if isinstance(x, bytes) else x for x in row] for row in ragged.to_list()] == [
        [x.decode() if isinstance(x, bytes) else x for x in row] for row in rows
    ]
    assert pa.array(ragged).to_pylist() == ragged.to_list()


@pytest.mark.parametrize("number", [0.1, 16777217.0, 1e40])
def test_floats_of_a_stated_dtype_are_never_float32(number: float) -> None:
    """As in `tf.ragged.constant(rows, tf.float64)`."""
    assert RaggedTensor.from_list([[number, 1], []], "float64").to_list() == [[number, 1.0], []]
    assert RaggedTensor.from_list([np.ones(1), [number]], "float64").to_list() == [[1.0], [number]]
    assert RaggedTensor.from_list([[[number]]], "complex128", 1).values.tolist() == [[number]]
    assert RaggedTensor.from_list([[0.1]], "float32").to_list() == [[np.float32(0.1)]]


def test_rows_of_arrays_keep_their_inner_shape() -> None:
    ragged = RaggedTensor.from_list([np.ones((2, 3)), np.zeros((0, 3)), np.full((1, 3), 7)])
    assert (ragged.shape, ragged.ragged_rank) == ((3, None, 3), 1)
    assert ragged.to_padded(9)[2].tolist() == [[7, 7, 7], [9, 9, 9]]
    assert ragged.to_sparse().indices[-1].tolist() == [2, 0, 2]
    assert pa.array(ragged).to_pylist()[2] == [[7, 7, 7]]


def test_the_depth_of_lists_is_told_by_all_of_them() -> None:
    assert RaggedTensor.from_list([[], [[1], []]]).to_list() == [[], [[1], []]]
    assert RaggedTensor.from_list([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1).shape == (2, None, 2)
    assert RaggedTensor.from_list([]).to_list() == []
    with pytest.raises(TypeError, match="every row must be a list or an array, got 1"):
        RaggedTensor.from_list([[1], 1])
    with pytest.raises(TypeError, match="one level"):
        RaggedTensor.from_list([[1, [2]]])
    with pytest.raises(InvalidArgumentError, match="ragged_rank must be from 1 to the depth of the lists, 1, got 2"):
        RaggedTensor.from_list([[1]], ragged_rank=2)


def test_padding_is_cut_off_where_the_shape_is_smaller() -> None:
    ragged = RaggedTensor.from_list([[1, 2, 3], [4]])
    assert ragged.to_padded(0, [None, 2]).tolist() == [[1, 2], [4, 0]]
    assert ragged.to_padded(0, [3, 1]).tolist() == [[1], [4], [0]]
    assert ragged.to_tensor(b"?"[0], shape=[1, None]).tolist() == [[1, 2, 3]]
    with pytest.raises(InvalidArgumentError, match="rank 2, got \\[3\\]"):
        ragged.to_padded(0, [3])


def test_functions_of_values() -> None:
    ragged = RaggedTensor.from_list([[1, 2], [], [3]])
    assert (ragged + 1).to_list() == [[2, 3], [], [4]]
    assert (2 - ragged * ragged).to_list() == [[1, -2], [], [-7]]
    assert (ragged == RaggedTensor.from_list([[1, 0], [], [3]])).to_list() == [[True, False], [], [True]]
    assert (ragged == 3).values.tolist() == [False, False, True]
    assert [x.to_list() for x in np.divmod(ragged, 2)] == [[[0, 1], [], [1]], [[1, 0], [], [1]]]
    assert ragged.astype("float64").dtype == np.float64
    assert ragged.with_values([7, 8, 9]).to_list() == [[7, 8], [], [9]]
    with pytest.raises(ValueError, match="rows of the same lengths"):
        _ = ragged + RaggedTensor.from_list([[1], [2], [3]])
    with pytest.raises(ValueError, match="takes ragged tensors and scalars"):
        _ = ragged + np.arange(3)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(ragged == ragged)
    with pytest.raises(ValueError, match="to_padded"):
        np.asarray(ragged)


def test_it_cannot_be_changed() -> None:
    ragged = RaggedTensor.from_list([[1, 2], [3]])
    with pytest.raises(AttributeError, match="values cannot be set"):
        ragged.values = np.arange(3)  # type: ignore[misc]
    assert copy.copy(ragged) is ragged
    assert not np.shares_memory(copy.deepcopy(ragged).values, ragged.values)
    assert np.shares_memory(ragged[1:].values, ragged.values)


@pytest.mark.parametrize("splits", [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3]])
def test_splits_must_fit_the_values(splits: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match="row_splits must not fall, and go from 0 to the 3 values"):
        RaggedTensor.from_row_splits([1, 2, 3], splits)


@pytest.mark.parametrize("lengths", [[], [2], [-1, 4], [4]])
def test_lengths_must_fit_the_values(lengths: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match="row_lengths must be at least 0 and sum to the 3 values"):
        RaggedTensor.from_row_lengths([1, 2, 3], lengths)


def test_a_row_that_is_not_there() -> None:
    with pytest.raises(IndexError, match="row 2 is out of range for 2 rows"):
        RaggedTensor.from_list([[1], [2]])[2]
    assert RaggedTensor.from_list([[1], [2, 3]])[1, 1] == 3


@pytest.mark.parametrize("value", [-1, 300, 1.5, np.int64(300), np.nan, "x", np.float64(-0.5)])
def test_rows_are_filled_up_with_numbers_of_their_dtype_only(value: Any) -> None:
    rows = RaggedTensor.from_list([[1], [1, 2]], "uint8")
    with pytest.raises(
        InvalidArgumentError, match=rf"default_value must be a number of uint8, .*, got {re.escape(repr(value))}"
    ):
        rows.to_padded(value)
    assert rows.to_padded(np.float64(7)).tolist() == [[1, 7], [1, 2]]


def test_integers_of_lists_fit_into_the_dtype() -> None:
    with pytest.raises(InvalidArgumentError, match="the integer 1099511627776 does not fit into int32"):
        RaggedTensor.from_list([[1 << 40], []], "int32")


def test_no_rows_are_taken() -> None:
    rows = RaggedTensor.from_list([[1], [2, 3]])
    for none in (rows.take([]), rows[[]]):
        assert (none.to_list(), none.dtype) == ([], rows.dtype)
