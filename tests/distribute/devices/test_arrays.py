# SPDX-License-Identifier: Apache-2.0
"""The rules of reductions are the same for the arrays of all libraries."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.distribute.core.array_arithmetic import (
    NUMPY,
    ArrayOps,
    ReduceOp,
    arrays_of,
    gather_parts,
    reduce_parts,
    reduce_rows,
)
from distinput.distribute.devices.threads import ThreadDevices
from distinput.errors import InvalidArgumentError

LIBRARIES = ("jax", "torch")
KINDS = ("bool", "int8", "uint8", "int32", "uint16", "uint32", "int64", "uint64", "float16", "float32", "float64")


def library(name: str) -> ArrayOps:
    pytest.importorskip(name)
    found: ArrayOps = getattr(import_module(f"distinput.distribute.devices.{name}"), name.upper())
    return found


@pytest.fixture(params=LIBRARIES)
def ops(request: pytest.FixtureRequest) -> Any:
    made = library(request.param)
    if request.param == "torch":
        yield made
        return
    with import_module("jax").enable_x64(True):
        yield made


def given_to(ops: ArrayOps, parts: list[Any]) -> list[Any]:
    return [ops.array(part) for part in parts]


@st.composite
def rows(draw: st.DrawFn) -> list[Any]:
    """Parts of one dtype `[n, 2]`, with different numbers of rows, whose sums are exact in any order."""
    dtype = np.dtype(draw(st.sampled_from(KINDS)))
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    numbers = st.integers(0 if dtype.kind in "bu" else -100, 1 if dtype.kind == "b" else 100)
    return [np.array([[draw(numbers), draw(numbers)] for _ in range(n)], dtype).reshape(n, 2) for n in counts]


def outcome(compute: Callable[[], Any]) -> Any:
    """The value, or the error: its kind and text."""
    try:
        return compute()
    except (InvalidArgumentError, TypeError, ValueError) as error:
        return type(error), str(error)


def check_same(ops: ArrayOps, found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert ops.owns(found)
    back = ops.to_host(found)
    assert ops.name(found.dtype) == str(back.dtype) == str(expected.dtype)
    assert back.shape == expected.shape
    np.testing.assert_array_equal(back, expected)


@settings(max_examples=15, deadline=None)
@given(parts=rows(), op=st.sampled_from(ReduceOp), axis=st.sampled_from([0, 1, -1, (0, 1), (), 2, None, "x"]))
@pytest.mark.parametrize("name", LIBRARIES)
def test_reductions_are_those_of_numpy(name: str, parts: list[Any], op: ReduceOp, axis: Any) -> None:
    ops = library(name)

    def reduced(ops: ArrayOps, parts: list[Any]) -> Any:
        return reduce_parts(op, parts, ops) if axis is None else reduce_rows(op, parts, axis, ops)

    expected = outcome(lambda: reduced(NUMPY, parts))
    if name == "jax":
        with import_module("jax").enable_x64(True):
            check_same(ops, outcome(lambda: reduced(ops, given_to(ops, parts))), expected)
    else:
        check_same(ops, outcome(lambda: reduced(ops, given_to(ops, parts))), expected)


@settings(max_examples=10, deadline=None)
@given(parts=rows(), axis=st.sampled_from([0, 1, -2, 2, "x"]))
@pytest.mark.parametrize("name", LIBRARIES)
def test_gathering_is_that_of_numpy(name: str, parts: list[Any], axis: Any) -> None:
    ops = library(name)
    expected = outcome(lambda: gather_parts(parts, axis))
    if name == "jax":
        with import_module("jax").enable_x64(True):
            check_same(ops, outcome(lambda: gather_parts(given_to(ops, parts), axis, ops)), expected)
    else:
        check_same(ops, outcome(lambda: gather_parts(given_to(ops, parts), axis, ops)), expected)


MISTAKES: list[list[Any]] = [
    [np.zeros(2), np.zeros(3)],
    [np.zeros(2, np.float32), np.zeros(2, np.int32)],
    [np.zeros(2), np.array(["a", "b"])],
    [np.zeros(2), b"text"],
    [np.array([True, False])] * 2,
    [np.float32(1), np.zeros(2, np.float32)],
]


@pytest.mark.parametrize("parts", MISTAKES, ids=str)
@pytest.mark.parametrize("axis", [None, 0])
def test_mistakes_are_those_of_numpy(ops: ArrayOps, parts: list[Any], axis: int | None) -> None:
    for op in ReduceOp:
        expected = outcome(lambda op=op: reduce_parts(op, parts) if axis is None else reduce_rows(op, parts, axis))
        given = given_to(ops, parts)
        found = outcome(
            lambda op=op, given=given: (
                reduce_parts(op, given, ops) if axis is None else reduce_rows(op, given, axis, ops)
            )
        )
        check_same(ops, found, expected)
    check_same(
        ops, outcome(lambda: gather_parts(given_to(ops, parts), 0, ops)), outcome(lambda: gather_parts(parts, 0))
    )


def test_the_mean_of_no_rows_is_not_a_number(ops: ArrayOps) -> None:
    for dtype in (np.float32, np.int32):
        mean = reduce_rows(ReduceOp.MEAN, given_to(ops, [np.zeros((0, 2), dtype)]), 0, ops)
        assert np.isnan(ops.to_host(mean)).tolist() == [True, True]


def test_many_rows_of_small_floats_are_divided_by_their_true_number(ops: ArrayOps) -> None:
    total, counted = ops.array(np.float16(1000)), 100_000  # which float16 does not reach
    assert ops.to_host(ops.mean(total, counted, total.dtype)) == np.float16(0.01)


def test_results_are_new_memory(ops: ArrayOps) -> None:
    part = ops.array(np.arange(3.0))
    for made in (ops.total([part], part.dtype), ops.sum(part, (), part.dtype), ops.concatenate([part], 0)):
        assert made is not part
        if hasattr(made, "data_ptr"):
            assert made.data_ptr() != part.data_ptr()


def test_rows_are_taken_by_number(ops: ArrayOps) -> None:
    array = np.arange(8.0).reshape(4, 2)
    numbers = np.array([2, 0])
    np.testing.assert_array_equal(ops.to_host(ops.take(ops.array(array), numbers)), array[numbers])


def test_only_arrays_are_owned(ops: ArrayOps) -> None:
    assert ops.owns(ops.array(1.5))
    assert not any(map(ops.owns, [1.5, "a", b"a", None, np.zeros(2), np.float32(1)]))


def test_backends_that_compute_with_numpy_need_no_library() -> None:
    assert arrays_of(None) is None
    assert arrays_of(ThreadDevices(["CPU:0"])) is None

    class Own(ThreadDevices):
        arrays = NUMPY

    assert arrays_of(Own(["CPU:0"])) is None
