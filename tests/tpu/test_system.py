# SPDX-License-Identifier: Apache-2.0
"""The devices of JAX as a topology; the test run gives it eight virtual CPU devices."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.tpu import system
from distinput.tpu.system import made_up_coordinates, system_devices

jax = pytest.importorskip("jax")
tpu = di.tpu.experimental


def test_eight_devices_look_like_four_chips_of_two_cores() -> None:
    topology = tpu.initialize_tpu_system()
    assert topology.mesh_shape.tolist() == [2, 2, 1, 2]
    assert topology.device_coordinates[0, :4].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]]
    assert len(topology.missing_devices) == 0


def test_the_assignment_of_the_documentation() -> None:
    topology = tpu.initialize_tpu_system(di.distribute.cluster_resolver.TPUClusterResolver(tpu=""))
    assignment = tpu.DeviceAssignment.build(topology, computation_shape=[1, 1, 1, 2], num_replicas=4)
    devices = system_devices(assignment)
    assert [[device.id for device in row] for row in devices] == [[0, 1], [2, 3], [6, 7], [4, 5]]
    everyone = system_devices(tpu.DeviceAssignment.build(topology, num_replicas=8))
    assert [device.id for device in everyone[:, 0]] == list(range(8))


@given(st.integers(1, 4), st.integers(1, 40))
def test_made_up_places_fill_a_mesh(tasks: int, devices: int) -> None:
    places = made_up_coordinates(tasks, devices)
    topology = tpu.Topology(mesh_shape=places.max((0, 1)) + 1, device_coordinates=places)
    assert (topology.num_tasks, topology.num_tpus_per_task, len(topology.missing_devices)) == (tasks, devices, 0)


def test_places_of_tpus_begin_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [
        SimpleNamespace(id=i, process_index=i // 2, platform="tpu", coords=(2, i // 2, 1), core_on_chip=i % 2)
        for i in (3, 1, 0, 2)
    ]
    monkeypatch.setattr(system, "jax_for", lambda _: SimpleNamespace(devices=lambda: devices))
    topology = tpu.initialize_tpu_system()
    assert topology.mesh_shape.tolist() == [1, 2, 1, 2]
    assert topology.device_coordinates.tolist() == [[[0, 0, 0, 0], [0, 0, 0, 1]], [[0, 1, 0, 0], [0, 1, 0, 1]]]
    assert system.system_metadata().devices[3] == "/job:worker/replica:0/task:1/device:TPU:1"


def test_processes_with_different_numbers_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [SimpleNamespace(id=i, process_index=i // 2, platform="cpu") for i in range(3)]
    monkeypatch.setattr(system, "jax_for", lambda _: SimpleNamespace(devices=lambda: devices))
    with pytest.raises(RuntimeError, match=r"all processes must have as many devices, got \[2, 1\]"):
        tpu.initialize_tpu_system()


def test_an_assignment_of_other_devices() -> None:
    other = tpu.Topology(mesh_shape=[1, 1, 1, 1], device_coordinates=[[[0, 0, 0, 0]]])
    with pytest.raises(ValueError, match="1 tasks of 1 devices, but JAX has 1 processes of 8"):
        system_devices(tpu.DeviceAssignment.build(other))
    places = np.array(np.unravel_index(range(8), (2, 2, 2, 2))).T
    holes = tpu.Topology(mesh_shape=[2, 2, 2, 2], device_coordinates=[places])
    with pytest.raises(ValueError, match=r"no device at \(1, 0, 0, 0\), core 0 of replica 0"):
        system_devices(tpu.DeviceAssignment(holes, [[[1, 0, 0, 0]]]))


def test_arrays_stay_valid_when_the_system_is_shut_down() -> None:
    array = jax.jit(lambda x: x + 1)(np.float32(1))
    tpu.shutdown_tpu_system()
    assert float(array) == 2


@pytest.mark.parametrize("function", [tpu.initialize_tpu_system, tpu.shutdown_tpu_system])
def test_something_that_is_no_resolver(function: Any) -> None:
    with pytest.raises(TypeError, match="cluster_resolver must be a TPUClusterResolver or None, got 'local'"):
        function("local")
