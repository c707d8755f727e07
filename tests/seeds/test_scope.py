# SPDX-License-Identifier: Apache-2.0
"""What the pages say of `Strategy.scope`; their examples are about variables, which do not exist yet."""

import pytest

import distinput as tf


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
