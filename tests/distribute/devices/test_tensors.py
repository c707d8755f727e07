# SPDX-License-Identifier: Apache-2.0
"""Arrays as tensors and back: dtypes, layouts, and whose memory it is."""

import warnings
from typing import Any

import numpy as np
import pytest

import distinput as di

torch = pytest.importorskip("torch")
from distinput.distribute.devices.tensors import array_of, can_hold, tensor_of  # noqa: E402 - needs PyTorch

CODES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("code", [*CODES, ">i4", ">f8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (4, 3)])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("writable", [False, True])
def test_numbers_of_every_dtype_come_back(code: str, shape: tuple[int, ...], shared: bool, writable: bool) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(code)
    array.flags.writeable = writable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = array_of(tensor_of(array, shared=shared))
    assert back.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "array", [np.arange(6)[::-1], np.zeros(3, "i1, f4")["f1"], np.broadcast_to(np.float32(2), (2, 3))]
)
def test_layouts_that_tensors_do_not_have_are_copied(array: Any) -> None:
    np.testing.assert_array_equal(array_of(tensor_of(array)), array)
    np.testing.assert_array_equal(array_of(tensor_of(array, shared=True)), array)


@pytest.mark.parametrize(
    "value, dtype", [(True, torch.bool), (3, torch.int64), (0.1, torch.float64), (1j, torch.complex128)]
)
def test_python_numbers_keep_their_value(value: Any, dtype: Any) -> None:
    made = tensor_of(value)
    assert made.dtype == dtype
    assert made.item() == value


def test_text_and_times_are_no_numbers() -> None:
    words = np.array([b"a", b"bc"], object)
    values = (b"a", "a", None, words, np.zeros(2, "M8[s]"), 1, np.bool_(True), np.zeros(2), torch.ones(1))
    assert [can_hold(value) for value in values] == [False] * 5 + [True] * 4


def test_a_tensor_is_itself() -> None:
    tensor = torch.ones(2)
    assert tensor_of(tensor) is tensor


def test_memory_is_shared_unless_it_is_read_only() -> None:
    array = np.zeros(3)
    assert tensor_of(array).data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert tensor_of(array).data_ptr() != array.ctypes.data
    assert tensor_of(array, shared=True).data_ptr() == array.ctypes.data


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("writable", [False, True])
def test_numbers_of_packages_keep_their_dtype(name: str, writable: bool) -> None:
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    for array in (np.arange(6).astype(dtype)[::2], np.array(1.5, dtype)):
        array.flags.writeable = writable
        there = tensor_of(array)
        assert there.dtype == getattr(torch, name)
        back = array_of(there)
        assert back.dtype == dtype
        np.testing.assert_array_equal(back, array)


def test_a_dtype_that_numpy_does_not_know_comes_back_as_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> Any:
        raise TypeError(name)

    monkeypatch.setattr(np, "dtype", unknown)
    assert str(array_of(torch.full((2,), 1.5, dtype=torch.bfloat16))) == "[1.5 1.5]"


@pytest.mark.parametrize("name", ["int4", "longdouble"])
def test_a_dtype_that_torch_lacks_is_an_error(name: str) -> None:
    dtype = np.longdouble if name == "longdouble" else getattr(pytest.importorskip("ml_dtypes"), name)
    if np.dtype(dtype) == np.float64:
        pytest.skip("long doubles are float64 here")
    with pytest.raises(
        di.errors.InvalidArgumentError, match=r"PyTorch has no such dtype; convert the values with astype"
    ):
        tensor_of(np.ones(2, dtype))
