# SPDX-License-Identifier: Apache-2.0
"""Variables with one value."""

import copy

import pytest

import distinput as di


def test_counting() -> None:
    v = di.Variable(0)
    assert [v.count_up_to(2), v.count_up_to(2)] == [0, 1]
    with pytest.raises(di.errors.OutOfRangeError, match="Reached limit of 2"):
        v.count_up_to(2)
    assert v.numpy() == 2


def test_a_deep_copy_is_separate() -> None:
    v = di.Variable([1.0], name="w")
    other = copy.deepcopy([v])[0]
    v.assign([2.0])
    assert (other.numpy().tolist(), other.name) == ([1], "w:0")


def test_a_counter_is_counted_by_threads() -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    v = di.Variable(0)
    counted = strategy.run(lambda: [int(v.count_up_to(1000)) for _ in range(50)])
    seen = [number for part in strategy.experimental_local_results(counted) for number in part]
    assert sorted(seen) == list(range(200))


def test_variables_with_copies_do_not_count() -> None:
    with di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        v = di.Variable(0)
    with pytest.raises(NotImplementedError, match="a MirroredVariable has no single counter"):
        v.count_up_to(3)
