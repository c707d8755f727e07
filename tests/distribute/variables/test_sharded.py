# SPDX-License-Identifier: Apache-2.0
"""A variable of several parts acts as one."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.seats import Pickled
from distinput.distribute.seats.threads import ThreadSeats
from distinput.distribute.variables import ShardedVariable
from distinput.distribute.variables.sharded import number_of_parts, part_sizes
from distinput.errors import InvalidArgumentError

FixedShards = di.distribute.experimental.partitioners.FixedShardsPartitioner


def sharded(value: Any, parts: int = 3, servers: int = 2) -> Any:
    strategy = di.distribute.ParameterServerStrategy(
        variable_partitioner=FixedShards(parts), seats=ThreadSeats(1, servers, packing=Pickled())
    )
    with strategy.scope():
        return di.Variable(value, name="table")


@given(rows=st.integers(1, 60), parts=st.integers(1, 60))
def test_sizes_differ_by_at_most_one_and_larger_ones_come_first(rows: int, parts: int) -> None:
    sizes = part_sizes(rows, parts)
    assert (sum(sizes), len(sizes)) == (rows, parts)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


def test_the_parts_are_on_the_servers_in_turn() -> None:
    table = sharded(np.arange(10.0), 4)
    assert [part.shape.as_list() for part in table.variables] == [[3], [3], [2], [2]]
    assert [part.name for part in table] == [f"table/part_{i}:0" for i in range(4)]
    assert [part.device for part in table] == [f"/job:ps/replica:0/task:{i % 2}/device:CPU:0" for i in range(4)]
    np.testing.assert_array_equal(table.numpy(), np.arange(10.0))
    assert (table.name, table.shape.as_list(), table.dtype) == ("table", [10], np.float64)


@pytest.mark.parametrize("value", [3.0, np.zeros((0, 2)), [1.0]])
def test_what_cannot_be_split_is_whole(value: Any) -> None:
    assert not isinstance(sharded(value), ShardedVariable)


@pytest.mark.parametrize("wanted", [[], [0], [1, 2], [0, 1]])
def test_only_the_first_axis_is_split(wanted: list[int]) -> None:
    with pytest.raises(ValueError, match="must return a list/tuple whose elements are 1 besides the first"):
        number_of_parts(lambda **_: wanted, (4, 4), np.dtype("float64"))


def test_a_partitioner_gets_shape_and_dtype_by_name() -> None:
    seen: dict[str, Any] = {}

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        seen.update(shape=shape.as_list(), dtype=dtype)
        return [9, 1]

    assert number_of_parts(partitioner, (4, 2), np.dtype("float32")) == 4
    assert seen == {"shape": [4, 2], "dtype": np.float32}


@given(data=st.data())
def test_it_acts_as_the_whole_variable_does(data: st.DataObject) -> None:
    rows, parts = data.draw(st.integers(2, 9)), data.draw(st.integers(2, 5))
    start = np.arange(rows * 2, dtype=np.int64).reshape(rows, 2)
    whole, split = di.Variable(start), sharded(start, parts)
    assert isinstance(split, ShardedVariable)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(
            st.sampled_from(["assign", "assign_add", "assign_sub", "add", "sub", "max", "min", "update", "nd"])
        )
        if kind.startswith("assign"):
            value = np.full((rows, 2), data.draw(st.integers(-5, 5)), np.int64)
            for variable in (whole, split):
                assert getattr(variable, kind)(value) is variable
            continue
        indices = data.draw(st.lists(st.integers(0, rows - 1), max_size=6))
        if kind in ("update", "nd"):
            indices = list(dict.fromkeys(indices))  # a row that is named twice may get either value
        if kind == "nd":
            where = np.array([[i, i % 2] for i in indices], np.int64).reshape(-1, 2)
            for variable in (whole, split):
                variable.scatter_nd_update(where, np.arange(len(indices)))
            continue
        values = 3 + np.arange(len(indices) * 2, dtype=np.int64).reshape(-1, 2)
        for variable in (whole, split):
            getattr(variable, f"scatter_{kind}")(di.IndexedSlices(values, np.array(indices, np.int64)))
    np.testing.assert_array_equal(split.numpy(), whole.numpy())
    np.testing.assert_array_equal(split + 1, whole + 1)
    chosen = data.draw(st.lists(st.integers(0, rows - 1), max_size=6))
    np.testing.assert_array_equal(
        split.sparse_read(np.array(chosen, np.int64)), whole.numpy()[np.array(chosen, np.int64)]
    )
    np.testing.assert_array_equal(split[1:], whole[1:])


def test_a_row_that_is_not_there_is_refused() -> None:
    table = sharded(np.zeros(4))
    for index in (-1, 4):
        with pytest.raises(InvalidArgumentError, match=rf"index {index} is not in \[0, 4\)"):
            table.sparse_read([index])
        with pytest.raises(InvalidArgumentError):
            table.scatter_add(di.IndexedSlices([1.0], [index]))


def test_a_scalar_goes_to_all_rows_named() -> None:
    table = sharded(np.zeros(4))
    table.scatter_add(di.IndexedSlices(2.0, [0, 3, 3]))
    np.testing.assert_array_equal(table, [2, 0, 0, 4])


def test_the_shape_must_fit() -> None:
    with pytest.raises(ValueError, match="Shape mismatch"):
        sharded(np.zeros(4)).assign(np.zeros(5))


def test_it_is_saved_and_restored_whole() -> None:
    table, other = sharded(np.arange(5.0), 2), sharded(np.zeros(5), 4)
    other._restored(table._saved())
    np.testing.assert_array_equal(other, np.arange(5.0))


@pytest.mark.parametrize(
    "parts, error, text",
    [
        ([], TypeError, "non-empty list"),
        ([1], TypeError, "non-empty list"),
        ([di.Variable([1.0]), di.Variable([1])], ValueError, "same dtype"),
        ([di.Variable([[1.0]]), di.Variable([1.0])], ValueError, "same shapes"),
    ],
)
def test_parts_must_fit_together(parts: list[Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ShardedVariable(parts)


def test_a_deep_copy_is_a_variable_of_its_own() -> None:
    table = sharded(np.zeros(4))
    made = deepcopy(table)
    made.assign_add(np.ones(4))
    np.testing.assert_array_equal(table, np.zeros(4))
    assert len(made.variables) == len(table.variables)


def test_slices_are_read_but_not_written() -> None:
    table = sharded(np.arange(4.0))
    np.testing.assert_array_equal(table[1:3], [1.0, 2.0])
    with pytest.raises(NotImplementedError, match="a ShardedVariable is not assigned to by slices"):
        table[1:3].assign([0.0, 0.0])


@pytest.mark.parametrize("saved", [(6,), (3, 3), (1, 5), (2, 2, 2)])
@pytest.mark.parametrize("restored", [(), (6,), (3, 3), (2, 2, 2), (1, 1, 1, 1, 1, 1)])
def test_a_checkpoint_does_not_know_the_parts(saved: tuple[int, ...], restored: tuple[int, ...], tmp_path: Any) -> None:
    values = np.arange(12, dtype=np.float32).reshape(6, 2)

    def split(sizes: tuple[int, ...], rows: Any) -> Any:
        if not sizes:
            return di.Variable(rows)
        return ShardedVariable([di.Variable(part) for part in np.split(rows, np.cumsum(sizes)[:-1])])

    path = di.train.Checkpoint(v=split(saved, values)).save(str(tmp_path / "c"))
    assert di.train.list_variables(path) == [("v", [6, 2])]
    found = split(restored, np.zeros_like(values))
    di.train.Checkpoint(v=found).restore(path)
    np.testing.assert_array_equal(np.asarray(found), values)
    with pytest.raises(InvalidArgumentError, match="shape"):
        di.train.Checkpoint(v=split((2, 2), values[:4])).restore(path)


@pytest.mark.parametrize(
    "method, indices, values",
    [("scatter_add", [0, 1], [[1.0]] * 3), ("scatter_nd_add", [[0, 0]], [1.0, 2.0]), ("scatter_nd_add", 0, 1.0)],
)
def test_rows_that_do_not_fit_their_places_are_refused(method: str, indices: Any, values: Any) -> None:
    parts = [di.Variable([[1.0], [2.0]]), di.Variable([[3.0]])]
    given = (di.IndexedSlices(values, indices),) if method == "scatter_add" else (indices, values)
    with pytest.raises(di.errors.InvalidArgumentError, match=method):
        getattr(ShardedVariable(parts), method)(*given)
