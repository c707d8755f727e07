# SPDX-License-Identifier: Apache-2.0
"""Protocols of arrays and tables that other packages speak; docs/conventions.md lists the lines."""

import array
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di

Dataset = di.data.Dataset
VALUES = np.arange(6.0).reshape(3, 2)


class WithInterface:
    """`__array_interface__` and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> Any:
        return self.values.__array_interface__


class WithArray:
    """`__array__(dtype, copy)` and nothing else."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(VALUES, dtype, copy=copy)


class WithDlpack:
    """`__dlpack__` and `__dlpack_device__`, and nothing else."""

    def __dlpack__(self, **options: Any) -> Any:
        return VALUES.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return VALUES.__dlpack_device__()


@pytest.mark.parametrize(
    "given, want",
    [
        (WithInterface(VALUES), VALUES),
        (WithArray(), VALUES),
        (WithDlpack(), VALUES),
        (memoryview(VALUES), VALUES),
        (array.array("d", [1.0, 2.0]), np.array([1.0, 2.0])),
    ],
    ids=["__array_interface__", "__array__", "__dlpack__", "memoryview", "array.array"],
)
def test_arrays_of_every_protocol_are_taken(given: Any, want: Any) -> None:
    assert np.array_equal(np.array(Dataset.from_tensor_slices(given).to_list()), want)
    assert np.array_equal(next(iter(Dataset.from_tensors(given))), want)
    made = Dataset.range(1).map(lambda _: given)
    assert np.array_equal(next(iter(made)), want)


class Stream:
    """`__arrow_c_stream__` and nothing else."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_capsules_are_taken_and_given() -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    taken = Dataset.from_arrow(Stream(table))
    assert taken.to_list() == [{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}, {"a": 3, "b": b"z"}]
    again = pa.table(taken)  # by __arrow_c_stream__ alone
    assert again.column_names == ["a", "b"]
    assert again["a"].to_pylist() == [1, 2, 3]
    assert pa.schema(taken).names == ["a", "b"]  # by __arrow_c_schema__
    record = pa.record_batch({"a": [4, 5]})
    assert Dataset.from_arrow(record).to_list() == [{"a": 4}, {"a": 5}]
    column = pa.array([[1], [2, 3]])
    ragged = di.RaggedTensor.from_list([[1], [2, 3]])
    assert pa.array(ragged).to_pylist() == column.to_pylist()  # by __arrow_c_array__


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_frames_of_other_packages_need_no_glue(name: str) -> None:
    package = pytest.importorskip(name)
    if name == "duckdb":
        frame = package.sql("select * from (values (1, 2.5::double), (2, 3.5)) t(a, b) order by a")
    else:
        frame = package.DataFrame({"a": [1, 2], "b": [2.5, 3.5]})
    rows = [{key: float(value) for key, value in row.items()} for row in Dataset.from_arrow(frame)]
    assert rows == [{"a": 1.0, "b": 2.5}, {"a": 2.0, "b": 3.5}]
    if name == "polars":
        assert package.DataFrame(Dataset.from_arrow(frame)).shape == (2, 2)


def test_bfloat16_passes_through() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -2.0, 3.0], ml_dtypes.bfloat16)
    batches = Dataset.from_tensor_slices(values).shuffle(3, seed=1).batch(2)
    assert batches.element_spec.dtype == ml_dtypes.bfloat16
    assert sorted(float(x) for batch in batches for x in batch) == [-2.0, 1.5, 3.0]
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    step = next(iter(strategy.experimental_distribute_dataset(batches)))
    assert strategy.gather(step, axis=0).dtype == ml_dtypes.bfloat16
