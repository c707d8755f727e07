# SPDX-License-Identifier: Apache-2.0
"""The example of the pages on `Strategy.scope`, and what they say of it."""

from pathlib import Path

import pytest

import distinput as tf
from tests.seeds.printed import lines_of, shown


def test_the_example_of_the_page() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    # Variable created inside scope:
    with strategy.scope():
        mirrored_variable = tf.Variable(1.0)
    assert lines_of(mirrored_variable) == shown(
        """MirroredVariable:{
  0: <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>,
  1: <tf.Variable 'Variable/replica_1:0' shape=() dtype=float32, numpy=1.0>
}"""
    )
    # Variable created outside scope:
    regular_variable = tf.Variable(1.0)
    assert repr(regular_variable) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>"


def test_saving_may_be_inside_or_outside_the_scope(tmp_path: Path) -> None:
    """ "Checkpoint saving. As mentioned above - checkpoint.restore may sometimes need to be inside scope"."""
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        variable = tf.Variable(1.0, name="w")
        inside = tf.train.Checkpoint(w=variable).save(str(tmp_path / "inside"))
    outside = tf.train.Checkpoint(w=variable).save(str(tmp_path / "outside"))
    for saved in (inside, outside):
        variable.assign(9.0)
        tf.train.Checkpoint(w=variable).restore(saved)
        assert variable.read_value() == 1.0


@pytest.mark.parametrize(
    "strategy",
    [
        tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]),
        tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "GPU:0"]),
        tf.distribute.OneDeviceStrategy("GPU:0"),
    ],
    ids=repr,
)
def test_what_happens_when_the_scope_is_entered(strategy) -> None:
    """The strategy becomes current, and so does cross-replica context; outside it is the default one."""
    default = tf.distribute.get_strategy()
    assert not tf.distribute.has_strategy()
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
    assert tf.distribute.get_strategy() is default
    assert not tf.distribute.in_cross_replica_context()


def test_run_and_reduce_enter_the_scope_themselves() -> None:
    """ "When using those APIs you don't need to enter the scope yourself"."""
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    assert strategy.run(tf.distribute.get_strategy) is strategy
    assert strategy.reduce("SUM", strategy.run(lambda: tf.constant([1.0])), axis=0) == 2.0


def test_data_sets_and_functions_may_be_made_inside_or_outside_the_scope() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    def totals(dataset):
        steps = strategy.experimental_distribute_dataset(dataset)
        return [int(strategy.reduce("SUM", strategy.run(lambda x: x + 1, args=(x,)), axis=0)) for x in steps]

    outside = totals(tf.data.Dataset.range(4).batch(2))
    with strategy.scope():
        inside = totals(tf.data.Dataset.range(4).batch(2))
    assert outside == inside == [3, 7]


def test_a_second_strategy_inside_a_scope_is_refused() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    other = tf.distribute.MirroredStrategy(["GPU:2", "GPU:3"])
    with strategy.scope(), pytest.raises(RuntimeError, match=r"Mixing different tf\.distribute\.Strategy objects"):
        other.run(lambda: None)
