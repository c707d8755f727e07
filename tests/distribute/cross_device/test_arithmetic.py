# SPDX-License-Identifier: Apache-2.0
"""What a strategy with `cross_device_ops` does without asking them."""

import numpy as np

import distinput as di
from distinput.distribute import CrossDeviceOps, PerReplica

STRATEGY = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], CrossDeviceOps())  # would raise if it were asked


def test_exact_sums_have_no_order() -> None:
    value = PerReplica([np.array([1e300, 1.0]), np.array([-1e300])])
    assert STRATEGY.reduce("SUM", value, axis=0, deterministic=True) == 1.0


def test_concatenations_and_values_that_are_not_distributed_are_not_added() -> None:
    assert STRATEGY.gather(PerReplica([np.array([1]), np.array([2])]), axis=0).tolist() == [1, 2]
    assert STRATEGY.reduce("MEAN", 5, axis=None) == 5
    assert STRATEGY.reduce("SUM", 0, axis=None) == 0
