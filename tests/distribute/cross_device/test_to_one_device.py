# SPDX-License-Identifier: Apache-2.0
"""`ReductionToOneDevice` adds in replica order, or by a function of the user's."""

import numpy as np
import pytest

import distinput as di
from distinput.distribute import PerReplica, ReductionToOneDevice

DEVICES = ["CPU:0", "CPU:1", "CPU:2"]
VALUES = PerReplica([np.float32([1e8, 0.1]), np.float32([1.0, 0.2]), np.float32([-1e8, 0.3])])


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("axis", [None, 0])
def test_it_is_what_strategies_do_by_default(op: str, axis: int | None) -> None:
    plain = di.distribute.MirroredStrategy(DEVICES)
    strategy = di.distribute.MirroredStrategy(DEVICES, ReductionToOneDevice("CPU:0"))
    made, expected = strategy.reduce(op, VALUES, axis=axis), plain.reduce(op, VALUES, axis=axis)
    assert made.tobytes() == expected.tobytes()
    assert made.dtype == expected.dtype


def test_a_function_of_the_users_adds() -> None:
    given = []

    def add(values):
        given.append(values)
        return np.add.reduce(sorted(values, key=lambda value: abs(value[0])))

    strategy = di.distribute.MirroredStrategy(DEVICES, ReductionToOneDevice(accumulation_fn=add))
    assert strategy.reduce("SUM", VALUES, axis=None)[0] == np.float32(0.0)
    assert len(given[0]) == 3
    mean = strategy.reduce("MEAN", PerReplica([np.array([i, i]) for i in (1, 2, 6)]), axis=None)
    assert mean.tolist() == [3.0, 3.0]
    assert mean.dtype == np.float64


def test_its_arguments_are_checked() -> None:
    assert ReductionToOneDevice("/job:localhost/task:0/device:gpu:1").reduce_to_device == "GPU:1"
    with pytest.raises(ValueError, match="not the name of a device: 'no device'"):
        ReductionToOneDevice("no device")
    with pytest.raises(TypeError, match="accumulation_fn must be a function of a list of values, got 3"):
        ReductionToOneDevice(accumulation_fn=3)
