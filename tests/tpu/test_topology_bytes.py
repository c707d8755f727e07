# SPDX-License-Identifier: Apache-2.0
"""Topologies as bytes; that they are TensorFlow's, tests/tpu/test_device_assignment.py compares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.tpu.topology import HardwareFeatures, Topology, TopologyFields, topology_bytes, topology_fields

NATURAL = st.integers(0, 2**31 - 1)
FIELDS = st.builds(
    TopologyFields,
    st.lists(NATURAL, max_size=5).map(tuple), NATURAL, NATURAL, st.lists(NATURAL, max_size=20).map(tuple),
    st.builds(HardwareFeatures, st.integers(0, 2), NATURAL),
)  # fmt: skip


@given(FIELDS)
def test_what_is_written_is_read(fields: TopologyFields) -> None:
    assert topology_fields(topology_bytes(fields)) == fields


def test_the_bytes_that_tensorflow_writes() -> None:
    # A TopologyProto with embedding hardware of version 1, two devices a chip.
    message = b'\n\x04\x02\x02\x01\x02\x10\x01\x18\x02"\x08\x00\x00\x00\x00\x00\x00\x00\x01*\x04\x08\x01\x10\x02'
    topology = Topology(serialized=message)
    assert topology.mesh_shape.tolist() == [2, 2, 1, 2]
    assert topology.device_coordinates.tolist() == [[[0, 0, 0, 0], [0, 0, 0, 1]]]
    assert topology.features == HardwareFeatures(1, 2)
    assert topology.serialized() == message


def test_numbers_may_be_written_one_by_one() -> None:
    assert topology_fields(b"\x08\x02\x08\x03").mesh_shape == (2, 3)


def test_negative_numbers_are_refused() -> None:
    minus_one = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    message = b"\n\x04\x01\x01\x01\x01\x10\x01\x18\x01" + b'"\x0d\x00\x00\x00' + minus_one
    with pytest.raises(ValueError, match="must be >= 0"):
        Topology(serialized=message)


@pytest.mark.parametrize("message", [b"\n\x05\x02", b"\xff", b"\n\x01\x80", b"\x0b"])
def test_bytes_that_are_no_topology(message: bytes) -> None:
    with pytest.raises(ValueError, match="Topology: serialized must be a TopologyProto"):
        Topology(serialized=message)


def test_a_number_of_coordinates_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"must have shape num_tasks \(1\) .* got 3 numbers"):
        Topology(serialized=topology_bytes(TopologyFields((1, 1, 1, 1), 1, 1, (0, 0, 0))))
