# SPDX-License-Identifier: Apache-2.0
"""Every dtype and shape goes into columns that Arrow has types for, and comes back bit for bit."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.arrow.record_batches import arrow_schema
from distinput.columns.column import Dense, Strings
from distinput.columns.ragged import Objects, Ragged
from distinput.errors import DataLossError
from distinput.formats.elements import LISTS, PLAIN, SHAPED, SPLIT, decoded, encoded, encoding_of, stored_spec
from distinput.testing.elements import exact
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

T, R = TensorSpec, RaggedTensorSpec
RT = di.RaggedTensor.from_row_lengths

DTYPES = [
    *[
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ],
    *["complex64", "complex128", "longdouble", "clongdouble", ">i4", ">f8", ">c8", "V3"],
    *["M8[ns]", "M8[D]", "m8[h]", ">M8[us]", "M8[10s]"],
]


def back(column: Any, leaf: TensorSpec) -> list[Any]:
    arrow_schema(Spec.of({"x": stored_spec(leaf)}))  # Arrow has types for it
    return list(decoded(encoded(column, leaf), leaf).values())


@pytest.mark.parametrize("name", DTYPES)
def test_values_of_every_dtype_are_encoded_and_decoded(name: str) -> None:
    values = np.frombuffer(np.random.default_rng(0).bytes(24 * np.dtype(name).itemsize), name)
    if name == "bool":
        values = np.arange(24) % 3 == 0
    dtype = values.dtype
    for shape in [(24,), (6, 4), (2, 3, 4), (0, 2)]:
        rows = values[: int(np.prod(shape))].reshape(shape)
        assert [exact(x) for x in back(Dense(rows), T(shape[1:], dtype))] == [exact(x) for x in rows]
    ragged = Ragged(Dense(values), np.array([5, 0, 7]), np.array([2, 0, 3]))
    assert [exact(x) for x in back(ragged, T([None], dtype))] == [exact(x) for x in ragged.values()]
    tensor = RT(values, [3, 0, 21])
    column = di.data.Dataset.from_tensors(tensor).node.fetch(np.zeros(1, np.int64), 0).columnar().columns[0]
    assert list(map(exact, back(column, R([None, None], dtype)))) == [exact(tensor)]


@pytest.mark.parametrize(
    "leaf, kind",
    [
        (T([], "i8"), PLAIN),
        (T([None, 3], "i8"), PLAIN),
        (T([2, None], "i8"), SHAPED),
        (T([0], "i8"), SHAPED),
        (T([2, 0], "i8"), SHAPED),
        (T(None, bytes), SHAPED),
        (R([None], "i8", 0), PLAIN),
        (R([2, None, 3], "i8", 1), LISTS),
        (R([None, None, None], "i8", 1), SPLIT),
        (R([None, None, 0], "i8", 1), SPLIT),
    ],
)
def test_the_spec_decides_the_encoding(leaf: TensorSpec, kind: str) -> None:
    assert encoding_of(leaf) == kind


@pytest.mark.parametrize(
    "rows, leaf",
    [
        ([np.zeros((2, 3), "f4"), np.ones((0, 3), "f4"), np.ones((4, 1), "f4")], T([None, None], "f4")),
        ([np.float32(1), np.ones((2, 2), "f4")], T(None, "f4")),
        ([b"a", np.array([[b"b", b""]], object)], T(None, bytes)),
        ([np.zeros((0, 2), "i8")] * 3, T([0, 2], "i8")),
        ([np.array([], object), np.array([b"", b"xy"], object)], T([None], bytes)),
        ([np.zeros((n, 2), ">c8") for n in range(3)], T([None, 2], ">c8")),
    ],
)
def test_rows_of_several_shapes(rows: list[Any], leaf: TensorSpec) -> None:
    assert list(map(exact, back(Objects(rows, leaf.dtype), leaf))) == list(map(exact, rows))
    assert back(Objects([], leaf.dtype), leaf) == []


def test_ragged_tensors_whose_values_differ_in_shape() -> None:
    from distinput.columns.ragged import column_of_ragged

    leaf = R([None, None, None, None], "f4", 2)
    for width in (0, 2):
        tensors = [RT(RT(np.zeros((3, width), "f4"), [1, 2]), [2]), RT(RT(np.zeros((0, width), "f4"), [0]), [1, 0])]
        assert list(map(exact, back(column_of_ragged(tensors), leaf))) == list(map(exact, tensors))


def test_text_is_kept_as_bytes() -> None:
    rows = [b"", b"\0a\0", "ä".encode()]
    assert back(Strings.of(rows), T([], bytes)) == rows


def test_numbers_that_arrow_has_are_not_copied() -> None:
    array = np.arange(6).reshape(3, 2)
    column: Any = decoded(encoded(Dense(array), T([2], "i8")), T([2], "i8"))
    assert np.shares_memory(column.array, array)


def test_a_shape_that_does_not_fit_is_damage() -> None:
    leaf = T([None, None], "i8")
    kept: Any = encoded(Objects([np.zeros((2, 3), int)], np.dtype(int)), leaf)
    for shape in ([2, 2], [-2, -3], [7]):
        kept["shape"] = Ragged(Dense(np.array(shape)), np.array([0]), np.array([len(shape)]))
        with pytest.raises(DataLossError, match="an array does not fit the shape that is kept with it"):
            decoded(kept, leaf)
