# SPDX-License-Identifier: Apache-2.0
"""Parts of variables."""

import numpy as np
import pytest

import distinput as di

SUM = di.VariableAggregation.SUM


def test_it_is_a_part_of_the_value() -> None:
    v = di.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert (v[0] * 2).tolist() == [2, 4]
    assert v[1, 0] == 3
    assert float(v[1][1]) == 4
    assert np.sum(v[:, 1]) == 6
    assert v[..., 0].shape == (2,)
    assert v[0].max() == 2
    assert repr(v[1:, 0]) == repr(np.array([3], np.float32))
    assert [1, 2, 3][di.Variable([1])[0]] == 2


def test_it_keeps_the_value_that_it_was_read_with() -> None:
    v = di.Variable([1.0, 2.0])
    part = v[0]
    part.assign(7.0)
    assert (float(part), v.numpy().tolist()) == (1, [7, 2])


def test_it_writes_to_its_place() -> None:
    v = di.Variable(np.zeros((2, 3), np.int32))
    v[1, 1:].assign([5, 6])
    v[:, 0].assign_add([1, 2])
    v[0].assign_sub([0, 1, 1])
    assert v.numpy().tolist() == [[1, -1, -1], [2, 5, 6]]
    assert v[0].numpy().flags.writeable


def test_a_scalar_fills_it() -> None:
    v = di.Variable(np.zeros(3, np.int32))
    v[1:].assign(4)
    assert v.numpy().tolist() == [0, 4, 4]


def test_lists_and_variables_are_indices() -> None:
    v = di.Variable([1.0, 2.0, 3.0])
    assert v[[0, 2]].tolist() == [1, 3]
    assert v[di.Variable(1) :].tolist() == [2, 3]
    assert v[v > 1].tolist() == [2, 3]


def test_replicas_aggregate_what_they_write_to_a_part() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = di.Variable([0.0, 0.0], aggregation=SUM)
        w = di.Variable([0.0, 0.0])

    def step() -> None:
        number = np.float32(di.distribute.get_replica_context().replica_id_in_sync_group + 1)
        v[1].assign(number)
        w[1].assign(number)

    strategy.run(step)
    assert [part.numpy().tolist() for part in v.values] == [[0, 3], [0, 3]]
    assert [part.numpy().tolist() for part in w.values] == [[0, 1], [0, 2]]


def test_it_has_no_attribute_that_its_value_lacks() -> None:
    with pytest.raises(AttributeError):
        di.Variable([1.0])[0].nothing  # noqa: B018 - the attribute raises
