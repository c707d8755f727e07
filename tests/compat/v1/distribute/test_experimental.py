# SPDX-License-Identifier: Apache-2.0
"""The one name of `tf.compat.v1` that is there."""

import copy

import pytest

import distinput as tf


def test_the_oldest_tpu_strategy_has_the_oldest_arguments() -> None:
    pytest.importorskip("jax")
    strategy = tf.compat.v1.distribute.experimental.TPUStrategy(None, 4)
    assert isinstance(strategy, tf.distribute.TPUStrategy)
    assert (strategy.steps_per_run, strategy.extended.steps_per_run) == (4, 4)
    assert strategy.num_replicas_in_sync == 8
    assert copy.deepcopy(strategy).steps_per_run == 4
    pairs = tf.tpu.experimental.DeviceAssignment.build(
        tf.tpu.experimental.initialize_tpu_system(), computation_shape=[1, 1, 1, 1], num_replicas=2
    )
    assert tf.compat.v1.distribute.experimental.TPUStrategy(device_assignment=pairs).num_replicas_in_sync == 2


@pytest.mark.parametrize("module", ["", ".distribute", ".distribute.experimental"])
def test_all_other_names_are_declined(module: str) -> None:
    owner = tf.compat.v1
    for part in module.split(".")[1:]:
        owner = getattr(owner, part)
    with pytest.raises(
        AttributeError, match=r"has no attribute 'Session': write the name of TensorFlow 2: there are no gr"
    ):
        owner.Session  # noqa: B018 - that it is missing is what is tested


def test_it_is_loaded_when_it_is_named() -> None:
    assert "compat" in dir(tf)
    assert not hasattr(tf.compat.v1, "__wrapped__")
