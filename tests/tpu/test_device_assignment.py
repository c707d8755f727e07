# SPDX-License-Identifier: Apache-2.0
"""Which devices replicas get: what TensorFlow answered, and what holds for every assignment."""

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from distinput.tpu.device_assignment import DeviceAssignment, DeviceOrderMode
from distinput.tpu.topology import Topology

CASES = json.loads((Path(__file__).parent / "device_assignments.json").read_text(encoding="utf-8"))["cases"]


def whole(mesh: list[int]) -> Topology:
    """One task with a device at every place, in the order of the axes."""
    return Topology(mesh_shape=mesh, device_coordinates=[list(np.ndindex(*mesh))])


@pytest.mark.parametrize("number", range(len(CASES)))
def test_tensorflow_answered_the_same(number: int) -> None:
    case = CASES[number]
    topology = Topology(mesh_shape=case["mesh"], device_coordinates=case["devices"])

    def build() -> DeviceAssignment:
        mode = DeviceOrderMode(case["mode"])
        return DeviceAssignment.build(topology, case["shape"], case["stride"], case["replicas"], mode)

    if "error" not in case:
        assert build().core_assignment.tolist() == case["cores"]
        assert topology.serialized().hex() == case["bytes"]
        return
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        build()
    if case["error"] != "AssertionError":  # TensorFlow says no more
        assert f"ValueError: {raised.value}" == case["error"]


@given(st.data())
def test_no_device_is_given_twice(data: st.DataObject) -> None:
    mesh = [data.draw(st.integers(1, 4)) for _ in range(3)] + [data.draw(st.integers(1, 2))]
    shape = [data.draw(st.integers(1, size)) for size in mesh]
    stride = [data.draw(st.integers(1, size // part)) for size, part in zip(mesh, shape, strict=True)]
    most = prod([size // (part * step) * step for size, part, step in zip(mesh, shape, stride, strict=True)])
    replicas = data.draw(st.integers(0, most))
    assignment = DeviceAssignment.build(whole(mesh), shape, stride, replicas)
    assert assignment.core_assignment.shape == (replicas, prod(shape), 4)
    places = assignment.core_assignment.reshape(-1, 4)
    assert len({tuple(place) for place in places.tolist()}) == len(places)
    assert (places < mesh).all()


@given(st.sampled_from([(2, 2, 1), (4, 2, 1), (2, 4, 2), (4, 4, 4), (1, 2, 4)]))
def test_replicas_in_a_ring_are_neighbours(chips: tuple[int, int, int]) -> None:
    assume(prod(chips) > 2)
    topology = whole([*chips, 2])
    build = DeviceAssignment.build
    places = build(topology, [1, 1, 1, 2], None, prod(chips), DeviceOrderMode.RING).core_assignment[:, 0]
    distances = np.abs(places - np.roll(places, -1, axis=0)).sum(axis=1)
    assert distances.tolist() == [1] * prod(chips)


def two_tasks() -> Topology:
    chips = [[[x, y, 0, core] for x in range(2) for core in range(2)] for y in range(2)]
    return Topology(mesh_shape=[2, 2, 1, 2], device_coordinates=chips)


def test_the_names_of_devices_and_their_hosts() -> None:
    assignment = DeviceAssignment.build(two_tasks(), [1, 1, 1, 2], num_replicas=4)
    assert [assignment.coordinates(replica, 1) for replica in range(4)] == [
        (0, 0, 0, 1),
        (1, 0, 0, 1),
        (1, 1, 0, 1),
        (0, 1, 0, 1),
    ]
    assert [assignment.tpu_ordinal(replica, 1) for replica in range(4)] == [1, 3, 3, 1]
    assert assignment.tpu_device(2, 0) == "/task:1/device:TPU:2"
    assert assignment.host_device(2, 0, job="worker") == "/job:worker/task:1/device:CPU:0"
    assert assignment.lookup_replicas(1, 0) == [2, 3]
    with pytest.raises(ValueError, match="Can not find any replica in task: 2 contains logical_core: 0"):
        assignment.lookup_replicas(2, 0)


def test_a_topology_may_be_given_as_bytes() -> None:
    assert DeviceAssignment.build(two_tasks().serialized(), num_replicas=8).num_replicas == 8


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: DeviceAssignment.build("x"), "`topology` is not a Topology object"),  # type: ignore[arg-type]
        (lambda: DeviceAssignment("x", [[[0, 0, 0, 0]]]), "topology must be a Topology object"),  # type: ignore[arg-type]
        (lambda: DeviceAssignment(two_tasks(), [[0, 0]]), r"must be a rank 3 numpy array, got shape \(1, 2\)"),
        (lambda: DeviceAssignment(two_tasks(), [[[0, 0]]]), r"size equal to topology rank \(4\)"),
    ],
)
def test_what_is_no_assignment(make: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_an_assignment_cannot_be_changed() -> None:
    cores = DeviceAssignment.build(two_tasks(), num_replicas=2).core_assignment
    with pytest.raises(ValueError, match="read-only"):
        cores[0, 0, 0] = 1
