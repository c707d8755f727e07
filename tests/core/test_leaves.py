# SPDX-License-Identifier: Apache-2.0
"""What users hand in becomes the leaf that TensorFlow would make of it."""

import array
import ctypes
import math
import re
from collections import deque
from datetime import date, time
from pathlib import Path
from typing import Any
from uuid import UUID

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import (
    STRING,
    as_dtype,
    as_eager_leaf,
    as_leaf,
    as_python,
    cast_within,
    dtype_name,
    dtype_of,
    shape_of,
    zero,
)


@pytest.mark.parametrize(
    "value, dtype, wanted",
    [
        (True, "bool", True),
        (3, "int32", 3),
        (-(1 << 31), "int32", -(1 << 31)),
        (1 << 31, "int64", 1 << 31),
        (1.5, "float32", 1.5),
        (2j, "complex128", 2j),
        (np.float64(1.5), "float64", 1.5),
        (np.array(7, np.int16), "int16", 7),
        ([1, 2], "int32", [1, 2]),
        ([1, 1 << 31], "int64", [1, 1 << 31]),
        ((1.5, 2), "float32", [1.5, 2.0]),
        ([True, False], "bool", [True, False]),
        ([np.float64(1), 2.0], "float64", [1.0, 2.0]),
        ([np.float32(1), 1], "float32", [1.0, 1.0]),
        ([1, np.float32(1)], "float32", [1.0, 1.0]),
        ([[np.float16(1), 2.5], [True, 3]], "float16", [[1.0, 2.5], [1.0, 3.0]]),
        ([np.array([1, 2], np.float32), [3, 4.5]], "float32", [[1.0, 2.0], [3.0, 4.5]]),
        ([[np.array([1, 2], np.float16)], [[np.float32(3), 4.5]]], "float32", [[[1.0, 2.0]], [[3.0, 4.5]]]),
        ([np.int32(1), np.float32(2)], "float32", [1.0, 2.0]),
        ([np.int64(1), np.float64(2)], "float64", [1.0, 2.0]),
        ([np.int64(1), 2.5], "float32", [1.0, 2.5]),
        ([np.int8(1), 2, True], "int8", [1, 2, 1]),
        ([np.uint8(1), 300], "int32", [1, 300]),
        ([np.int32(1), 1 << 40], "int64", [1, 1 << 40]),
        ([np.int64(1), 2], "int64", [1, 2]),
        ([np.uint64(1), 2], "uint64", [1, 2]),
        ([np.uint64(1), -2], "int64", [1, -2]),
        ([[np.uint64(1)], [np.int64(-2)]], "int64", [[1], [-2]]),
        ([np.int8(1), np.int8(2)], "int8", [1, 2]),
        ([np.complex64(1), 2], "complex128", [1, 2]),
        ([[1], [2]], "int32", [[1], [2]]),
        (range(3), "int32", [0, 1, 2]),
        ([], "float32", []),
        ([[], []], "float32", [[], []]),
        (["a", b"b"], "object", [b"a", b"b"]),
        ([["a"], ["b"]], "object", [[b"a"], [b"b"]]),
        (np.array(["a", "é"]), "object", [b"a", "é".encode()]),
        ([np.array(["a"]), np.array(["b"])], "object", [[b"a"], [b"b"]]),
    ],
)
def test_numbers_and_lists_get_their_dtype(value: Any, dtype: str, wanted: Any) -> None:
    leaf = as_leaf(value)
    assert isinstance(leaf, np.generic | np.ndarray)
    assert (str(leaf.dtype), leaf.tolist()) == (dtype, wanted)
    assert dtype_of(leaf) == leaf.dtype
    assert shape_of(leaf) == np.shape(wanted)


@pytest.mark.parametrize(
    "value", ["é", "é".encode(), np.str_("é"), np.bytes_("é".encode()), np.array("é"), bytearray("é".encode())]
)
def test_text_becomes_bytes_of_utf_8(value: Any) -> None:
    leaf = as_leaf(value)
    assert type(leaf) is bytes
    assert leaf == "é".encode()
    assert (dtype_of(leaf), shape_of(leaf)) == (STRING, ())


def test_arrays_of_others_are_read_by_their_protocol() -> None:
    class Theirs:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.arange(2, dtype=np.uint8)

    leaf = as_leaf(Theirs())
    assert (leaf.dtype, leaf.tolist()) == (np.uint8, [0, 1])


@pytest.mark.parametrize(
    "value, cure",
    [
        (1 << 63, r"give np.uint64\(\.\.\.\) of it"),
        ((1 << 64) - 1, "give np.uint64"),
        (1 << 64, "no dtype holds it: give a float, or text"),
        (-(1 << 63) - 1, "no dtype holds it"),
    ],
)
def test_integers_beyond_int64_are_refused(value: int, cure: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"the integer {value} does not fit into int64; {cure}"):
        as_leaf(value)


@pytest.mark.parametrize(
    "value, message",
    [
        (None, "cannot make an array of a NoneType; elements are nests"),
        ({1}, r"cannot make an array of a set; .*; a set has no order: give sorted\(\.\.\.\) of it"),
        (deque([1]), r"cannot make an array of a deque; .*; give list\(\.\.\.\) of it"),
        ({1: 2}.keys(), r"cannot make an array of a dict_keys; .* sorted\(\.\.\.\) of it"),
        (map(int, "1"), r"cannot make an array of a map; .*; give list\(\.\.\.\) of it"),
        (Path("a"), r"cannot make an array of a \w*Path; .*; give str\(\.\.\.\) of it"),
        (time(1), r"cannot make an array of a time; .*; give str\(\.\.\.\) of it"),
        (UUID(int=1), r"cannot make an array of a UUID; .*; give str\(\.\.\.\) of it"),
        ([[1], [1, 2]], "its members must agree in shape"),
        ([[1], 2], "its members must agree in shape"),
        (["a", 1], r"may hold only str or bytes, got 1 \(int\); numbers and text do not go into one array"),
        ([1, "a"], r"may hold only str or bytes, got 1 \(int\); numbers and text"),
        ([[1.5, 2.5], [b"a", b"b"]], r"may hold only str or bytes, got 1.5 \(float\); numbers and text"),
        ([np.int64(1), "a"], r"may hold only str or bytes, got (np.int64\()?1\)? \(int64\); numbers and text"),
        ([1, None], r"got 1 \(int\); None is no value: put another one in its place, such as float\('nan'\)"),
        (["a", None], r"got None \(NoneType\); None is no value: .* or '' among text"),
        ([{"a": 1}, {"a": 2}], r"got {'a': 1} \(dict\); rows are a dict of lists here, {'name': \[...\]}, of which"),
        (np.array([object()]), r"may hold only str or bytes, got <object .* \(object\); give numbers, text"),
        (np.array([1, 2.5], object), r"got 1 \(int\); these are numbers alone: give the array with a dtype of theirs"),
        ([Path("a"), Path("b")], r"got \w*Path\('a'\) .*; give str\(\.\.\.\) of it"),
        (np.array([date(2020, 1, 1)]), r"got datetime.date\(2020, 1, 1\) .*; give np.datetime64"),
        (type("LazyFrame", (), {})(), r"cannot make an array of a LazyFrame; .* give \.collect\(\) of it"),
    ],
)
def test_what_is_no_array_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_leaf(value)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["2020-01-02T03:04:05.000000006", "NaT"], "M8[ns]"),
        np.array([[90], [-1]], "m8[ns]"),
        np.array([3], "m8[Y]"),
        np.array(["20000-01-01"], "M8[s]"),
        np.datetime64(5, "ps"),
        np.timedelta64(7, "M"),
    ],
)
def test_times_that_python_does_not_have_do_not_become_integers(value: Any) -> None:
    made = np.array(as_python(value), object).reshape(-1)
    assert [type(item) for item in made] == [value.dtype.type] * value.size
    assert [str(item) for item in made] == [str(item) for item in np.ravel(value)]


def test_other_arrays_are_as_numpys_own_lists() -> None:
    for value in (np.array(["2020-01-02", "NaT"], "M8[s]"), np.array([1.5]), np.int8(3), np.array([b"a"], object)):
        assert as_python(value) == value.tolist()


@pytest.mark.parametrize("given", ["string", str, bytes, object, "S3", np.dtype("U5")])
def test_every_kind_of_text_is_one_dtype(given: Any) -> None:
    assert as_dtype(given) is STRING
    assert dtype_name(as_dtype(given)) == "string"


@pytest.mark.parametrize(
    "value, message",
    [
        (
            [np.float32(1), (1 << 24) + 1],
            "the integer 16777217 beside floats would become 16777216, the nearest float32",
        ),
        (
            [np.int64((1 << 24) + 1), 0.5],
            "the integer 16777217 beside floats would become 16777216, the nearest float32",
        ),
        ([np.float16(1), 1 << 40], "the integer 1099511627776 beside floats would become inf, the nearest float16"),
    ],
)
def test_integers_that_floats_beside_them_do_not_hold_are_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        as_leaf(value)


@pytest.mark.parametrize(
    "value", [[np.float32(1), 0.1], [np.float16(1), (1 << 24) + 1], [1.5, (1 << 24) + 1], [np.int64(1), 1e300]]
)
def test_what_is_cast_to_a_stated_dtype_keeps_its_digits(value: Any) -> None:
    spec = di.TensorSpec([2], "float64")
    stated = [
        di.data.Dataset.from_generator(lambda: [value], output_types="float64"),
        di.data.Dataset.from_generator(lambda: [value], output_signature=spec),
        di.data.Dataset.range(1).map(lambda _: (value,), output_signature=(spec,)).map(lambda x: x),
    ]
    found = [dataset.get_single_element().tolist() for dataset in stated]
    found += [di.constant(value, "float64").tolist(), di.RaggedTensor.from_list([value], np.float64).values.tolist()]
    found.append(di.distribute.Variable(value, dtype="float64").numpy().tolist())
    assert found == [[float(x) for x in value]] * 6


def test_floats_that_a_narrower_one_beside_them_does_not_hold_are_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"1000000.0 is too large for float16, which .* beside one of float16"
    ):
        as_eager_leaf([np.float16(1), 1e6])
    assert as_eager_leaf([np.float64(1), 1e300]).tolist() == [1, 1e300]


def test_dtypes_of_others_say_what_they_are_in_numpy() -> None:
    class Theirs:
        as_numpy_dtype = np.uint16

    assert as_dtype(Theirs()) == np.uint16
    assert dtype_name(as_dtype("f4")) == "float32"
    with pytest.raises(TypeError):
        as_dtype("no such dtype")


def test_zeros_are_zeros_or_empty_texts() -> None:
    assert zero(STRING, ()) == b""
    assert zero(STRING, (2, 1)).tolist() == [[b""], [b""]]
    scalar = zero(np.dtype("int16"), ())
    assert (type(scalar), scalar) == (np.int16, 0)
    array = zero(np.dtype("f8"), (0, 3))
    assert (array.shape, array.dtype) == ((0, 3), np.float64)


class ByInterface:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.__array_interface__ = array.__array_interface__
        self.kept = array


class ByDlpack:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


VALUES = np.arange(6, dtype=np.int16)
SAME_MEMORY = [
    ByInterface(VALUES),
    ByDlpack(VALUES),
    memoryview(VALUES),  # type: ignore[arg-type]
    pa.array(VALUES),
    pa.chunked_array([VALUES]),
]


@pytest.mark.parametrize("given", SAME_MEMORY, ids=lambda given: type(given).__name__)
def test_arrays_of_others_are_looked_at_where_they_are(given: Any) -> None:
    leaf = as_leaf(given)
    assert leaf.dtype == np.int16
    assert leaf.tolist() == VALUES.tolist()
    assert leaf.ctypes.data == VALUES.ctypes.data


@pytest.mark.needs("pandas", "polars")
def test_series_are_looked_at_where_they_are() -> None:
    import pandas as pd
    import polars as pl

    for given in (pd.Series(VALUES, copy=False), pl.Series(pa.array(VALUES))):
        test_arrays_of_others_are_looked_at_where_they_are(given)


def test_buffers_are_arrays_and_buffers_of_bytes_are_text() -> None:
    made = as_leaf(array.array("d", [1.0, 2.0]))
    assert (made.dtype, made.tolist()) == (np.float64, [1.0, 2.0])
    assert as_leaf((ctypes.c_int32 * 3)(1, 2, 3)).tolist() == [1, 2, 3]
    assert as_leaf(memoryview(b"abcdef").cast("B", (2, 3))).shape == (2, 3)
    assert as_leaf(bytearray(b"ab")) == as_leaf(memoryview(b"ab")) == b"ab"


def test_what_no_array_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot make an array of a object"):
        as_leaf(object())


def test_tensors_are_read_without_their_gradients_and_in_any_dtype() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    assert as_leaf(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    tensor = torch.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=torch.bfloat16).T
    leaf = as_leaf(tensor)
    assert (str(leaf.dtype), leaf.tolist()) == ("bfloat16", [[1.5, 3], [2, 4]])
    tensor[0, 0] = 9
    assert leaf[0, 0] == 9  # the same memory


@pytest.mark.parametrize("value", [[2**64], [1, 2**64], [-(2**63) - 1]])
def test_integers_of_more_than_64_bits_are_named(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"the integer {value[-1]} does not fit into int64 or uint64; give"):
        as_leaf(value)


NUMBERS = (
    st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.integers(0, 2**64 - 1).map(np.uint64)
    | st.integers(-130, 300).map(np.int16)
    | st.floats(-(2.0**66), 2.0**66).map(np.float64)
    | st.floats(-300, 300, width=32).map(np.float32)
    | st.sampled_from(
        [np.float64(2.0**63), np.float64(-(2.0**63)), np.float32(2.0**31), np.float16(np.inf), np.float64("nan")]
    )
)


@hypothesis.given(NUMBERS, st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64"]))
def test_a_cast_takes_no_number_to_the_other_end_of_the_dtype(number: Any, name: str) -> None:
    dtype = np.dtype(name)
    known = math.trunc(number.item()) if math.isfinite(number) else None
    if known is not None and np.iinfo(dtype).min <= known <= np.iinfo(dtype).max:
        made = cast_within(np.array([number]), dtype)
        assert (made.dtype, int(made[0])) == (dtype, known)
        return
    with pytest.raises(InvalidArgumentError, match=rf"does not fit into {name}, which is stated; state a wider dtype"):
        cast_within(np.array([number]), dtype)


@hypothesis.given(st.integers(-300, 300) | NUMBERS, st.sampled_from(["int2", "uint2", "int4", "uint4"]))
def test_nor_to_that_of_a_short_integer_of_ml_dtypes(number: Any, name: str) -> None:
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    bits, unsigned = int(name[-1]), name.startswith("u")
    least = 0 if unsigned else -(2 ** (bits - 1))
    known = number if isinstance(number, int) else math.trunc(number.item()) if math.isfinite(number) else None
    elements = di.data.Dataset.from_generator(lambda: [number], output_signature=di.TensorSpec([], dtype))
    if known is not None and least <= known < least + 2**bits:
        (made,) = elements
        assert (made.dtype, int(made)) == (dtype, known)
        assert int(cast_within(np.array([number]), dtype)[0]) == known
        return
    for make in (lambda: cast_within(np.array([number]), dtype), lambda: list(elements)):
        with pytest.raises((InvalidArgumentError, TypeError), match=f"does not fit into {name}, which is stated"):
            make()


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_short_integers_of_ml_dtypes_are_saved(name: str, tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    numbers = np.arange(int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max) + 1).astype(dtype)
    dataset = di.data.Dataset.from_tensor_slices(numbers)
    dataset.save(str(tmp_path / "saved"))
    checkpoint = di.train.Checkpoint(v=di.Variable(numbers))
    path = checkpoint.save(str(tmp_path / "checkpoint"))
    checkpoint.v.assign(np.zeros_like(numbers))
    checkpoint.restore(path)
    for found in (list(dataset), list(di.data.Dataset.load(str(tmp_path / "saved"))), checkpoint.v.numpy()):
        assert [(each.dtype, int(each)) for each in found] == [(dtype, int(number)) for number in numbers]
    with pytest.raises(TypeError, match="out of range"):
        di.constant([1, 100], dtype)


@pytest.mark.parametrize("given, name", [(3e38, "float16"), (-300, "int8"), (2**40, "int32"), (np.nan, "uint8")])
def test_nor_does_one_of_a_float_of_ml_dtypes(given: float, name: str) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    dtype = np.dtype(name)
    with pytest.raises(InvalidArgumentError, match=f"does not fit into {name}, which is stated; state a wider dtype"):
        cast_within(np.array([given], bfloat16), dtype)
    made = cast_within(np.array([2.5], bfloat16), dtype)
    assert (made.dtype, made[0]) == (dtype, dtype.type(2.5))


@pytest.mark.parametrize(
    "value, got",
    [
        ([True, 1], "1 (int) beside True"),
        ([False, 1.5], "1.5 (float) beside False"),
        ([[True, True], [True, 0]], "0 (int) beside True"),
        ([np.True_, np.int64(1)], "(int64) beside"),
        ([np.array([True]), np.array([1])], "array([1]) (ndarray) beside array([ True])"),
        ([True, 1j], "1j (complex) beside True"),
    ],
)
def test_numbers_in_a_list_that_begins_with_a_bool_are_refused(value: Any, got: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"becomes an array of bools, got .*{re.escape(got)}"):
        as_leaf(value)


@pytest.mark.parametrize(
    "value, dtype",
    [([1, True], "int32"), ([1.5, True], "float32"), ([True, False], "bool"), ([np.True_, True], "bool")],
)
def test_a_bool_in_a_list_of_numbers_is_a_number(value: Any, dtype: str) -> None:
    assert as_leaf(value).dtype == dtype
    assert as_leaf(value).tolist() == [float(x) for x in value]
