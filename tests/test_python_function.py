# SPDX-License-Identifier: Apache-2.0
"""`distinput.function` leaves functions as they are, and checks arguments where a signature says what they are."""

import functools
import inspect
import pickle

import numpy as np
import pytest

import distinput as tf


def double(x):
    return 2 * x


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def total(x):
    """The sum."""
    return x.sum()


def test_a_function_stays_as_it_is() -> None:
    assert tf.function(double) is double
    assert tf.function()(double) is double
    assert tf.function(jit_compile=True, reduce_retracing=True, autograph=False)(double) is double
    partial = functools.partial(double, 2)
    assert tf.function(partial) is partial


def test_methods_stay_methods() -> None:
    class Model:
        factor = 3

        @tf.function
        def plain(self, x):
            return self.factor * x

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def signed(self, x):
            return self.factor * x

    model = Model()
    assert model.plain(2) == 6
    assert model.signed(2) == 6
    assert model.signed(x=2).dtype == np.int32
    with pytest.raises(TypeError, match=r"signed: argument 0 must fit TensorSpec\(shape=\(\), dtype=int32\), got 1\.5"):
        model.signed(1.5)


def test_a_static_method_has_no_self() -> None:
    class Model:
        @staticmethod
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def half(x):
            return x / 2

    assert Model.half(1) == Model().half(1) == np.float32(0.5)
    with pytest.raises(TypeError, match="half: its input_signature is of 1 arguments, got 2 by position"):
        Model.half(1, 2)


def test_a_signed_method_is_compiled_once() -> None:
    pytest.importorskip("jax")

    class Model:
        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def step(self, x):
            return 2 * x

    strategy, model = tf.distribute.TPUStrategy(), Model()
    value = strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1.0))
    for _ in range(3):
        strategy.run(model.step, args=(value,))
    assert strategy.run_counts.programs == 1


def test_numbers_get_the_dtypes_of_the_signature() -> None:
    assert total([1, 2]) == np.float32(3)
    assert total(np.float32([1, 2])).dtype == np.float32
    assert total(x=[0.5]) == 0.5


@pytest.mark.parametrize(
    "given, got",
    [
        (np.arange(2), r"got shape \[2\] of int64"),
        (np.float32(1), r"got shape \[\] of float32"),
        ("text", "got 'text'"),
    ],
)
def test_other_dtypes_and_shapes_are_refused(given, got: str) -> None:
    with pytest.raises(
        TypeError, match=rf"total: argument 0 must fit TensorSpec\(shape=\(None,\), dtype=float32\), {got}"
    ):
        total(given)


@pytest.mark.parametrize("args, named", [((), {}), (([1], [2]), {}), (([1],), {"y": 2})])
def test_the_number_of_arguments_is_that_of_the_signature(args, named) -> None:
    with pytest.raises(TypeError, match=r"total: its input_signature is of 1 arguments, got \d by position"):
        total(*args, **named)


def test_nests_are_checked_leaf_by_leaf() -> None:
    @tf.function(input_signature=({"a": tf.TensorSpec([2], tf.int64), "b": (tf.TensorSpec([], tf.string),)},))
    def step(features):
        return features["a"].dtype, features["b"][0]

    assert step({"a": [1, 2], "b": ("x",)}) == (np.int64, b"x")
    with pytest.raises(
        TypeError, match=r"argument 0 must fit TensorSpec\(shape=\(2,\), dtype=int64\), got shape \[3\]"
    ):
        step({"a": [1, 2, 3], "b": ("x",)})
    with pytest.raises(TypeError, match="argument 0 must have the structure"):
        step({"a": [1, 2]})


def test_the_element_spec_of_a_distributed_dataset_is_a_signature() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    distributed = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))

    @tf.function(input_signature=[distributed.element_spec])
    def step(x):
        return strategy.reduce("SUM", strategy.run(double, args=(x,)), axis=0)

    assert [int(step(x)) for x in distributed] == [2, 10]
    with pytest.raises(TypeError, match="argument 0 must be a distributed value of 2 replicas"):
        step(np.arange(2))
    with pytest.raises(TypeError, match=r"argument 0 must fit TensorSpec\(shape=\(None,\), dtype=int64\), got"):
        step(tf.distribute.PerReplica([np.float32([1]), np.float32([2])]))


def test_a_signed_function_has_what_tensorflows_has() -> None:
    assert total.__name__ == "total"
    assert total.__doc__ == "The sum."
    assert total.python_function(np.float32([1])) == 1
    assert total.get_concrete_function()([3]) == 3
    assert total.input_signature == (tf.TensorSpec([None], tf.float32),)
    assert pickle.loads(pickle.dumps(total)) is total
    assert list(inspect.signature(total).parameters) == ["x"]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="function: needs a function, got 3"):
        tf.function(3)
    with pytest.raises(TypeError, match="input_signature must be a list or tuple with a spec for each argument"):
        tf.function(double, tf.TensorSpec([]))


def test_a_pipeline_takes_it() -> None:
    assert list(tf.data.Dataset.range(3).map(tf.function(double)).as_numpy_iterator()) == [0, 2, 4]
    signed = tf.function(double, [tf.TensorSpec([], tf.int64)])
    assert list(tf.data.Dataset.range(3).map(signed).as_numpy_iterator()) == [0, 2, 4]
