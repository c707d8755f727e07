# SPDX-License-Identifier: Apache-2.0
"""Rows of tables in memory."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

import distinput as di

Dataset = di.data.Dataset

WANTED = [{"x": 1, "t": b"a"}, {"x": 2, "t": b"b"}, {"x": 3, "t": b"c"}]
TABLE = pa.table({"x": [1, 2, 3], "t": ["a", "b", "c"]})


def test_rows_are_reached_by_position() -> None:
    for table in (TABLE, pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])):
        dataset = Dataset.from_arrow(table)
        assert dataset[1] == {"x": 2, "t": b"b"}
        assert [int(row["x"]) for row in dataset.__getitems__([2, 0, 2])] == [3, 1, 3]
        assert dataset[1:] == WANTED[1:]
    with pytest.raises(Exception, match="position"):
        Dataset.from_arrow(lambda: TABLE.to_reader())[1]


def test_values_are_not_copied() -> None:
    values, fixed = np.arange(6), np.arange(12, dtype=np.float32)
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2, 3]), pa.array(values[:3]))
    table = pa.table({"x": values[:2], "f": pa.FixedSizeListArray.from_arrays(pa.array(fixed[:6]), 3), "l": lists})
    second = pa.table({"x": values[2:4], "f": pa.FixedSizeListArray.from_arrays(pa.array(fixed[6:]), 3), "l": lists})
    both = pa.concat_tables([table, second])
    chunks = Dataset.from_arrow(both)
    for row, element in enumerate(Dataset.from_arrow(both.select(["x", "f"])).batch(2)):
        assert element["x"].ctypes.data == values[2 * row :].ctypes.data
        assert element["f"].ctypes.data == fixed[6 * row :].ctypes.data
    assert np.shares_memory(next(iter(chunks))["l"], values)


@pytest.mark.needs("polars")
def test_values_of_polars_are_not_copied() -> None:
    import polars as pl

    frame = pl.DataFrame({"x": np.arange(200_000)})  # small frames are copied: they may belong to an array that changes
    batch = next(iter(Dataset.from_arrow(frame).batch(6)))
    assert batch["x"].ctypes.data == frame["x"].to_numpy().ctypes.data
    assert not batch["x"].flags.writeable


def test_chunks_are_sent_to_other_processes_without_what_is_around_them() -> None:
    table = pa.table({"x": np.arange(400_000), "t": [str(number % 100) for number in range(400_000)]})
    dataset = Dataset.from_arrow(pa.concat_tables([table.slice(0, 5), table.slice(100, 399_000)]))
    packed = pickle.dumps(dataset)
    assert len(packed) < 1.5 * table.nbytes
    again = pickle.loads(packed)
    assert again.element_spec == dataset.element_spec
    assert again[[0, 4, 5, -1]] == dataset[[0, 4, 5, -1]]
    with iter(dataset) as iterator:
        next(iterator)
        state = iterator.state()
    assert next(again.restore(state)) == {"x": 1, "t": b"1"}


def test_a_state_belongs_to_its_table() -> None:
    table = pa.concat_tables([TABLE, TABLE])
    iterator = iter(Dataset.from_arrow(table))
    next(iterator)
    state = iterator.state()
    assert Dataset.from_arrow(pa.concat_tables([TABLE, TABLE])).restore(state)
    with pytest.raises(di.errors.StateError):
        Dataset.from_arrow(pa.concat_tables([TABLE, TABLE.set_column(0, "x", pa.array([1, 2, 4]))])).restore(state)
