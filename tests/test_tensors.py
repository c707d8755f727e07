# SPDX-License-Identifier: Apache-2.0
"""The functions of TensorFlow that are there: NumPy values with TensorFlow's dtypes."""

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import distinput as tf


def same(made, expected) -> bool:
    return type(made) is type(expected) and made.dtype == expected.dtype and np.array_equal(made, expected)


@pytest.mark.parametrize(
    "value, expected",
    [
        (1, np.int32(1)),
        (1.5, np.float32(1.5)),
        (2**40, np.int64(2**40)),
        (True, np.bool_(True)),
        ([1, 2], np.array([1, 2], "i4")),
        ([1, 2.5], np.array([1, 2.5], "f4")),
        (np.array([1.0]), np.array([1.0])),
        (np.int64(3), np.int64(3)),
    ],
)
def test_numbers_of_python_get_tensorflows_dtypes(value, expected) -> None:
    assert same(tf.constant(value), expected)
    assert same(tf.convert_to_tensor(value), expected)
    assert same(tf.identity(value), expected)


def test_text_is_bytes() -> None:
    assert tf.constant("é") == "é".encode()
    assert tf.constant(["a", b"b"]).tolist() == [b"a", b"b"]
    assert tf.constant("a", shape=[2]).tolist() == [b"a", b"a"]


def test_a_dtype_and_a_shape() -> None:
    assert same(tf.constant([1, 2], tf.float32), np.float32([1, 2]))
    assert same(tf.constant(np.array([1.7]), "int32"), np.int32([1]))
    assert tf.constant(0, tf.int64, [2, 2]).tolist() == [[0, 0], [0, 0]]
    assert tf.constant([1, 2, 3, 4], shape=(2, 2)).shape == (2, 2)
    with pytest.raises(ValueError, match="cannot reshape"):
        tf.constant([1, 2, 3], shape=(2, 2))


@pytest.mark.parametrize("value, dtype", [(1.5, "int32"), ("a", "int32"), (1, "string"), ([0.5], bool)])
def test_what_would_lose_something_is_refused(value, dtype) -> None:
    with pytest.raises(TypeError, match=r"Cannot convert .* to a value of dtype"):
        tf.constant(value, dtype)
    assert tf.convert_to_tensor(value, dtype_hint=dtype) == tf.constant(value)


@pytest.mark.parametrize(
    "value, dtype", [(300, "int8"), ([-1], "uint8"), (-1e9, "float16"), (np.array(1e300), "float32")]
)
def test_a_hint_that_a_number_does_not_fit_into_is_passed_over(value: Any, dtype: str) -> None:
    made = tf.convert_to_tensor(value, dtype_hint=dtype)
    assert (made, made.dtype) == (tf.constant(value), tf.constant(value).dtype)
    with pytest.raises(TypeError, match="it is out of range"):
        tf.convert_to_tensor(value, dtype)


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (3, "uint8", np.uint8(3)),
        ([[1], [2]], "uint64", np.array([[1], [2]], "u8")),
        (2**64 - 1, "uint64", np.uint64(2**64 - 1)),
        ([], "int32", np.array([], "i4")),
    ],
)
def test_numbers_of_python_take_every_dtype_that_holds_them(value, dtype, expected) -> None:
    made = tf.constant(value, dtype)
    assert (made.dtype, made.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.needs("ml_dtypes")
def test_numbers_of_python_take_the_short_floats() -> None:
    import ml_dtypes

    made = tf.constant([1.5, 300], "bfloat16")
    assert (made.dtype, made.tolist()) == (ml_dtypes.bfloat16, [1.5, 300])


def test_a_constant_is_a_copy_and_a_conversion_is_not() -> None:
    array = np.arange(2)
    assert tf.convert_to_tensor(array) is array
    for copied in (tf.constant(array), tf.identity(array)):
        assert copied is not array
        copied[0] = 9
    assert array.tolist() == [0, 1]


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_range_is_pythons(start: int, limit: int, delta: int) -> None:
    made = tf.range(start, limit, delta)
    assert made.dtype == np.int32
    assert made.tolist() == list(range(start, limit, delta))


def test_range_takes_the_strongest_dtype() -> None:
    assert tf.range(3.0).dtype == np.float32
    assert tf.range(np.int64(3)).dtype == np.int64
    assert tf.range(np.int64(0), 1.0, np.float32(0.5)).dtype == np.float32
    assert tf.range(2, dtype=tf.float64).dtype == np.float64


@pytest.mark.parametrize("value", [1e40, -1e40, [1.0, 1e40], [[3.5e38], [float("inf")]]])
@pytest.mark.parametrize(
    "make",
    [
        tf.constant,
        tf.Variable,
        tf.data.Dataset.from_tensors,
        lambda value: tf.data.experimental.from_list([value]),
        lambda value: tf.data.Dataset.from_tensor_slices({"a": [value]}),
        lambda value: tf.data.Dataset.range(2).reduce(value, lambda state, x: state),
        lambda value: tf.data.Dataset.range(2).scan((value, 0), lambda state, x: (state, x)),
    ],
)
def test_no_float_becomes_infinite_where_no_dtype_is_stated(make, value) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is too large for float32, which floats of Python become"):
        make(value)


def test_floats_that_a_dtype_holds_are_kept() -> None:
    assert tf.constant([1e40], "float64").tolist() == [1e40]
    assert tf.Variable(1e40, dtype="float64").numpy() == 1e40
    assert tf.constant([float("inf"), np.float64(1e40)]).tolist() == [float("inf"), 1e40]
    assert same(tf.constant([float("inf"), -3.4028234e38]), np.array([float("inf"), -3.4028234e38], "f4"))


def test_reductions_keep_the_dtype() -> None:
    value = [[1, 2], [3, 5]]
    assert same(tf.reduce_sum(value), np.int32(11))
    assert same(tf.reduce_mean(value), np.int32(2))
    assert same(tf.reduce_mean(-np.array([1, 2])), np.int64(-1))  # the fraction is cut off
    assert same(tf.reduce_sum(value, axis=[0, 1], keepdims=True), np.array([[11]], "i4"))
    assert same(tf.reduce_mean(tf.constant(value, tf.float32), 1), np.float32([1.5, 4.0]))


WHOLE = st.sampled_from(["i1", "u1", "i4", "u4", "i8", "u8"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
)


@given(WHOLE, st.data())
def test_a_mean_of_integers_is_exact_and_cut_off(numbers, data) -> None:
    """Large ones too, which floats do not hold, and whose sum no integer of 64 bits holds."""
    axis = data.draw(st.none() | st.integers(-numbers.ndim, numbers.ndim - 1))
    made, whole = tf.reduce_mean(numbers, axis), np.asarray(numbers.astype(object).sum(axis=axis))
    count = numbers.size // whole.size
    assert made.dtype == numbers.dtype
    assert np.asarray(made).reshape(-1).tolist() == [
        int(Fraction(total, count)) for total in whole.reshape(-1).tolist()
    ]


def test_a_mean_of_large_or_of_no_integers() -> None:
    assert same(tf.reduce_mean(np.array([2**53 + 1] * 3)), np.int64(2**53 + 1))
    assert same(tf.reduce_mean(np.array([[2**62, 2**62]]), 1, keepdims=True), np.array([[2**62]]))
    assert same(tf.reduce_mean(np.zeros((2, 0), "i4"), 1), np.array([0, 0], "i4"))


@pytest.mark.parametrize("value", [[True, False], ["a"]])
@pytest.mark.parametrize("reduction", [tf.reduce_sum, tf.reduce_mean])
def test_what_is_no_number_has_no_sum(reduction, value) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input_tensor must be numbers, got (bool|string)"):
        reduction(value)


def test_reductions_of_ragged_tensors() -> None:
    rows = tf.RaggedTensor.from_list([[1, 2], [], [4]])
    assert same(tf.reduce_sum(rows), np.int32(7))
    assert same(tf.reduce_sum(rows, 1), np.array([3, 0, 4], "i4"))
    assert same(tf.reduce_sum(rows, axis=[0]), np.array([5, 2], "i4"))
    assert same(tf.reduce_mean(rows, axis=0), np.array([2.5, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="keepdims must be False for a ragged tensor"):
        tf.reduce_sum(rows, 1, keepdims=True)


def test_reshape_is_that_of_tensorflow() -> None:
    assert same(tf.reshape([1, 2, 3, 4], [2, -1]), np.array([[1, 2], [3, 4]], "i4"))
    assert tf.reshape("a", [1]).tolist() == [b"a"]


def test_tensor_is_for_isinstance_alone() -> None:
    for value in (np.arange(2), np.float32(1), b"a", tf.constant(2)):
        assert isinstance(value, tf.Tensor)
    for other in (1, "a", [1], None, tf.TensorSpec([])):
        assert not isinstance(other, tf.Tensor)
    with pytest.raises(TypeError, match="values are made with constant, or with NumPy"):
        tf.Tensor(1)


def test_a_device_is_named_for_a_block() -> None:
    with tf.device("/job:worker/task:1/device:gpu:0") as entered:
        assert entered is None
        assert same(tf.constant(1.0), np.float32(1))
    with tf.device(None):
        pass
    with pytest.raises(ValueError, match="not the name of a device: 'no device'"):
        tf.device("no device")


JAX = """
import distinput as tf
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    assert isinstance(x, tf.Tensor)
    y = tf.reshape(tf.identity(tf.convert_to_tensor(x, tf.float32)), [2, -1])
    return tf.reduce_sum(y, axis=[0]), tf.reduce_mean(y), tf.constant(1.0) + tf.range(2), tf.reduce_mean(x)

a, b, c, d = step(jnp.arange(4))
assert isinstance(a, jax.Array), type(a)
assert isinstance(tf.reduce_mean(jnp.arange(4)), jax.Array)
print(a.tolist(), float(b), c.tolist(), d)
"""


def test_values_of_jax_stay_there() -> None:
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", JAX], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[2.0, 4.0] 1.5 [1.0, 2.0] 1"


@pytest.mark.fresh_process
def test_they_are_loaded_when_they_are_named() -> None:
    program = (
        "import sys, distinput as di; di.data; "
        "print('distinput.tf.tensors' in sys.modules, di.range(2), 'range' in dir(di))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False [0 1] True\n"


@pytest.mark.parametrize(
    "value, dtype",
    [(1 << 40, "int32"), (-1, "uint8"), ([1, 300], "uint8"), (np.int64(1 << 40), "int32"), (np.array([1e10]), "int32")],
)
def test_no_number_goes_to_the_other_end_of_its_dtype(value: object, dtype: str) -> None:
    for make in (tf.constant, tf.convert_to_tensor):
        with pytest.raises(TypeError, match=f"Cannot convert .* to a value of dtype {dtype}: it is out of range"):
            make(value, dtype)
    variable = tf.Variable(np.zeros(np.shape(value), dtype))
    with pytest.raises((TypeError, ValueError), match=r"Cannot convert|requested dtype"):
        variable.assign(value)
    assert not variable.numpy().any()


_HUGE = [1e300, 10**39, np.float64(1e300), np.array(1e300), np.array([1, -1e300]), [1.0, 1e300], [np.float64(1e300)]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("value", [*_HUGE, 1e300j, 1e300 + 1j, np.complex128(1e300), [complex(1, -1e300)]])
def test_no_number_becomes_infinite_where_a_dtype_is_stated(dtype: str, value: Any) -> None:
    if np.iscomplexobj(value) and dtype != "complex64":
        return
    spec = tf.data.TensorSpec(np.shape(value), dtype)
    variable = tf.Variable(np.zeros(np.shape(value), dtype))
    for make in (
        lambda: tf.constant(value, dtype),
        lambda: tf.convert_to_tensor(value, dtype),
        lambda: tf.Variable(value, dtype=dtype),
        lambda: variable.assign(value),
        lambda: tf.data.Dataset.from_generator(lambda: iter([value]), output_signature=spec).to_list(),
    ):
        with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match=r"does not fit into|is out of range"):
            make()


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("value", [float("inf"), np.float64("-inf"), [1.0, float("inf")], np.array([np.inf, np.nan])])
def test_what_is_infinite_stays_so(dtype: str, value: Any) -> None:
    spec = tf.data.TensorSpec(np.shape(value), dtype)
    (made,) = tf.data.Dataset.from_generator(lambda: iter([value]), output_signature=spec)
    for each in (tf.constant(value, dtype), tf.Variable(value, dtype=dtype).numpy(), made):
        assert each.dtype == dtype
        assert np.array_equal(np.isinf(each), np.isinf(value))
