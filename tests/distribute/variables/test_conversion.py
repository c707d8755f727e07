# SPDX-License-Identifier: Apache-2.0
"""What users give to a variable becomes an array of its dtype."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.variables.policy import as_indices, as_initial, as_operand, kind_of


@pytest.mark.parametrize(
    "value, dtype, shape",
    [
        (1.0, "float32", ()),
        (1, "int32", ()),
        (True, "bool", ()),
        ("a", "object", ()),
        (b"a", "object", ()),
        ([1, 2], "int32", (2,)),
        ([[1.5], [2.0]], "float32", (2, 1)),
        (["a", "b"], "object", (2,)),
        (np.float64(1), "float64", ()),
        (np.zeros(3), "float64", (3,)),
        (1j, "complex128", ()),
    ],
)
def test_the_dtype_of_an_initial_value(value: Any, dtype: str, shape: tuple[int, ...]) -> None:
    made = as_initial(value, None, "w")
    assert type(made) is np.ndarray
    assert (made.dtype, made.shape) == (np.dtype(dtype), shape)


def test_an_initial_value_is_a_copy() -> None:
    given = np.zeros(2)
    assert not np.shares_memory(as_initial(given, None, "w"), given)
    assert not np.shares_memory(as_initial(given, given.dtype, "w"), given)


FITS: list[tuple[Any, str]] = [
    (1, "float32"),
    (1.5, "float64"),
    (np.ones(2), "float32"),
    (np.arange(2), "uint8"),
    (1.5, "complex64"),
    *[([], dtype) for dtype in ("int32", "bool", "float32", "uint8")],
    ([[], []], "int64"),
]


@pytest.mark.parametrize("value, dtype", FITS)
def test_kinds_that_fit(value: Any, dtype: str) -> None:
    assert as_operand(value, np.dtype(dtype), "assign").dtype == dtype
    assert as_initial(value, np.dtype(dtype), "w").dtype == dtype


@pytest.mark.parametrize(
    "value, dtype", [(1.5, "int32"), (True, "float32"), ("a", "float32"), (1j, "float32"), (1, "bool")]
)
def test_python_values_that_do_not_fit(value: Any, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"assign: Cannot convert {value!r} to EagerTensor of dtype {dtype}"):
        as_operand(value, np.dtype(dtype), "assign")


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"conversion requested dtype int32 for Tensor with dtype float32"):
        as_operand(np.float32(1), np.dtype("int32"), "assign")
    with pytest.raises(ValueError, match=r"conversion requested dtype float32 for Tensor with dtype string"):
        as_operand(np.array(["a"]), np.dtype("float32"), "assign")


def test_an_integer_out_of_range_is_refused() -> None:
    with pytest.raises(TypeError, match=r"out of range"):
        as_operand(300, np.dtype("uint8"), "assign")
    assert as_operand(2**40, np.dtype("int64"), "assign") == 2**40


def test_a_python_float_keeps_its_digits() -> None:
    assert as_operand(0.1, np.dtype("float64"), "assign") == 0.1


def test_text_becomes_bytes() -> None:
    assert as_operand("ä", np.dtype(object), "assign").item() == "ä".encode()
    assert as_operand(np.array(["a"]), np.dtype(object), "assign").tolist() == [b"a"]


def test_indices_are_integers() -> None:
    assert as_indices([0, 1], "scatter_add").tolist() == [0, 1]
    assert as_indices([], "scatter_add").dtype == np.int32
    with pytest.raises(TypeError, match=r"scatter_add: indices must be integers, got float64"):
        as_indices([0.5], "scatter_add")


def test_floats_of_few_bits_are_floats() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bfloat16, int4 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)
    assert [kind_of(dtype) for dtype in (bfloat16, int4, np.dtype("u1"), np.dtype("V3"))] == ["f", "i", "u", "V"]
    assert as_operand([1.0, 2.0], bfloat16, "assign").dtype == bfloat16
    assert as_operand(np.ones(1, bfloat16), np.dtype("float32"), "assign").dtype == np.float32


def test_tensors_of_pytorch_are_taken_whatever_they_are_part_of() -> None:
    torch = pytest.importorskip("torch")
    recorded = torch.tensor([1.5, 2.0], requires_grad=True)
    for value in (recorded, recorded * 1, torch.nn.Parameter(recorded.detach()), recorded.to(torch.bfloat16)):
        for made in (as_operand(value, np.dtype(np.float32), "assign"), as_initial(value, None, "v")):
            assert (made.dtype, made.tolist()) == (np.float32, [1.5, 2.0])
    assert as_indices(torch.tensor([1, 0]), "scatter_add").tolist() == [1, 0]
    with pytest.raises(ValueError, match="conversion requested dtype int32 for Tensor with dtype float32"):
        as_operand(recorded, np.dtype(np.int32), "assign")


@pytest.mark.parametrize("value", [[0.1, 1e40], (0.1, 1), [[0.1], [16777217.0]], [0.1, np.float32(0.1)]])
def test_floats_in_lists_keep_the_digits_of_a_stated_dtype(value: Any) -> None:
    """As in TensorFlow, and as a float alone: they are not float32 on the way."""
    exact = np.array(value, np.float64).tolist()
    v = di.Variable(value, dtype="float64")
    assert v.numpy().tolist() == di.constant(value, "float64").tolist() == exact
    assert v.assign(np.zeros(np.shape(value))).assign(value).numpy().tolist() == exact
    assert v.assign_sub(value).numpy().any() is np.False_
