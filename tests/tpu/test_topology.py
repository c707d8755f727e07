# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

from distinput.tpu.topology import Topology


def test_where_devices_are() -> None:
    topology = Topology(mesh_shape=[2, 1, 1, 2], device_coordinates=[[[0, 0, 0, 1]], [[1, 0, 0, 0]]])
    assert (topology.mesh_rank, topology.num_tasks, topology.num_tpus_per_task) == (4, 2, 1)
    assert topology.task_ordinal_at_coordinates((1, 0, 0, 0)) == 1
    assert topology.tpu_device_ordinal_at_coordinates(np.array([1, 0, 0, 0])) == 0
    assert topology.tpu_device_name_at_coordinates([0, 0, 0, 1]) == "/task:0/device:TPU:0"
    assert topology.cpu_device_name_at_coordinates([1, 0, 0, 0], "worker") == "/job:worker/task:1/device:CPU:0"
    assert topology.missing_devices.tolist() == [[0, 0, 0, 0], [1, 0, 0, 1]]
    assert topology.task_ordinal_at_coordinates([0, 0, 0, 0]) == -1


@pytest.mark.parametrize(
    "shape, coordinates, why",
    [
        ([1, 1, 1], [[[0, 0, 0]]], "must be a sequence of 4 positive entries"),
        ([1, 0, 1, 1], [[[0, 0, 0, 0]]], "must be a sequence of 4 positive entries"),
        ([1, 1, 1, 1], [[0, 0, 0, 0]], "must be a rank 3 int32 array"),
        ([1, 1, 1, 1], [[[0, 0, 0]]], r"got device_coordinates.shape=\(1, 1, 3\)"),
        ([1, 1, 1, 2], [[[0, 0, 0, -1]]], "must be >= 0"),
        ([1, 1, 1, 2], [[[0, 0, 0, 2]]], "inside of the mesh"),
        ([1, 1, 1, 2], [[[0, 0, 0, 1], [0, 0, 0, 1]]], "must differ from device to device"),
    ],
)
def test_what_is_no_topology(shape: Any, coordinates: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Topology(mesh_shape=shape, device_coordinates=coordinates)


def test_a_topology_cannot_be_changed() -> None:
    given = np.zeros((1, 1, 4), np.int64)
    topology = Topology(mesh_shape=[1, 1, 1, 1], device_coordinates=given)
    given[:] = 5
    assert topology.device_coordinates.tolist() == [[[0, 0, 0, 0]]]
    for array in (topology.mesh_shape, topology.device_coordinates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3
