# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes and back."""

import importlib

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distinput.distribute.collectives.channel import (
    as_array,
    check_reducible,
    describe,
    family,
    fold,
    from_bytes,
    parse,
    to_bytes,
)

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(hnp.arrays(hnp.scalar_dtypes(), SHAPES))
def test_an_array_comes_back(array: npt.NDArray[np.generic]) -> None:
    sent = as_array(array, "test")
    assert sent.shape == array.shape
    back = from_bytes(to_bytes(sent).copy(), *parse(describe(sent)))
    assert (back.dtype, back.shape) == (array.dtype.newbyteorder("="), array.shape)
    assert back.flags.c_contiguous
    assert back.flags.writeable
    assert back.tobytes() == sent.tobytes()


@given(st.lists(st.one_of(st.binary(), st.text(st.characters(exclude_categories=["Cs"])))), st.booleans())
def test_words_come_back(words: list[bytes | str], rows: bool) -> None:
    array = np.empty(len(words), object)
    array[:] = words
    array = array.reshape((-1, 1) if rows else (-1,))
    back = from_bytes(to_bytes(as_array(array, "test")), *parse(describe(array)))
    assert (back.dtype, back.shape, back.tolist()) == (array.dtype, array.shape, array.tolist())


@given(hnp.arrays(object, SHAPES, elements=st.text(st.characters(exclude_categories=["Cs"]), max_size=20)))
def test_text_of_any_width_comes_back(words: npt.NDArray[np.object_]) -> None:
    array = words.astype(np.dtypes.StringDType())
    back = from_bytes(to_bytes(as_array(array, "test")), *parse(describe(array)))
    assert (back.dtype, back.shape, back.tolist()) == (array.dtype, array.shape, array.tolist())


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_extension_numbers_come_back(name: str) -> None:
    try:
        dtype = getattr(importlib.import_module("ml_dtypes"), name)
    except ModuleNotFoundError:
        pytest.skip("ml_dtypes is not installed; it comes with JAX")
    array = np.array([1.5, -2], dtype)
    check_reducible(array.dtype, "sum")
    back = from_bytes(to_bytes(as_array(array, "test")), *parse(describe(array)))
    assert back.dtype == dtype
    assert fold([back, back], "sum").tolist() == [3, -4]


@pytest.mark.parametrize(
    "value, says",
    [
        ([None], "may hold bytes and str only, got NoneType"),
        (np.zeros(2, [("a", "i4")]), "send the fields one by one"),
        (np.zeros(2, "V3"), "needs numbers"),
        (np.array(["a", None], np.dtypes.StringDType(na_object=None)), "may hold str only, got None"),
    ],
)
def test_what_cannot_travel(value: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        as_array(value, "test")


def test_an_unknown_dtype_of_the_root() -> None:
    with pytest.raises(TypeError, match="'float5' of the root is not known here; import ml_dtypes"):
        parse("float5 2")


def test_the_other_byte_order_travels_as_this_machine_s() -> None:
    array = np.arange(3, dtype=np.dtype("i4").newbyteorder("S"))
    sent = as_array(array, "test")
    assert sent.dtype.isnative
    assert from_bytes(to_bytes(sent), *parse(describe(sent))).tolist() == [0, 1, 2]


def test_the_width_of_strings_may_differ_between_workers() -> None:
    assert family(np.dtype("S3")) == family(np.dtype("S5")) != family(np.dtype("U5"))
    assert family(np.dtype("f4")) != family(np.dtype("f8"))
