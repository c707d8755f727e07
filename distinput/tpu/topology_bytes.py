# SPDX-License-Identifier: Apache-2.0
"""A topology as bytes: the protocol buffer message in which TensorFlow hands topologies around."""

from collections.abc import Iterable
from dataclasses import dataclass

from distinput.kernels.protobuf import MalformedError, read_fields, read_varint
from distinput.tpu.hardware_feature import HardwareFeatures

__all__ = ["TopologyFields", "topology_bytes", "topology_fields"]

_NUMBER, _BYTES = 0, 2  # kinds of fields
_MESH_SHAPE, _TASKS, _DEVICES, _COORDINATES, _FEATURES = 1, 2, 3, 4, 5
_EMBEDDING, _EMBEDDING_DEVICES = 1, 2
_NEGATIVE = 1 << 63  # numbers from here on are negative ones


@dataclass(frozen=True)
class TopologyFields:
    """The fields of the message.

    Args:
      mesh_shape: the size of the mesh along each axis.
      tasks: the number of tasks.
      devices: the number of devices of each task.
      coordinates: those of all devices, one after the other.
      features: what else a chip has.
    """

    mesh_shape: tuple[int, ...] = ()
    tasks: int = 0
    devices: int = 0
    coordinates: tuple[int, ...] = ()
    features: HardwareFeatures = HardwareFeatures()  # noqa: RUF009 - frozen


def topology_bytes(fields: TopologyFields) -> bytes:
    r"""The message.

    >>> topology_bytes(TopologyFields((1, 1, 1, 2), 1, 2))
    b'\n\x04\x01\x01\x01\x02\x10\x01\x18\x02'
    """
    features = _number(_EMBEDDING, fields.features.embedding_feature) + _number(
        _EMBEDDING_DEVICES, fields.features.num_embedding_devices_per_chip
    )
    return b"".join(
        [
            _bytes(_MESH_SHAPE, _varints(fields.mesh_shape)),
            _number(_TASKS, fields.tasks),
            _number(_DEVICES, fields.devices),
            _bytes(_COORDINATES, _varints(fields.coordinates)),
            _bytes(_FEATURES, features),
        ]
    )


def topology_fields(message: bytes) -> TopologyFields:
    """The fields of a message; those it lacks are 0 or empty.

    Raises:
      ValueError: the bytes are not such a message.
    """
    found = _message(message)
    features = _message(found[_FEATURES][-1]) if _FEATURES in found else {}
    return TopologyFields(
        tuple(_numbers(found, _MESH_SHAPE)),
        _last(found, _TASKS),
        _last(found, _DEVICES),
        tuple(_numbers(found, _COORDINATES)),
        HardwareFeatures(_last(features, _EMBEDDING), _last(features, _EMBEDDING_DEVICES)),
    )


def _varints(numbers: Iterable[int]) -> bytes:
    made = bytearray()
    for number in numbers:
        while number > 127:
            made.append(number & 127 | 128)
            number >>= 7
        made.append(number)
    return bytes(made)


def _number(field: int, value: int) -> bytes:
    return _varints([field << 3 | _NUMBER, value]) if value else b""


def _bytes(field: int, content: bytes) -> bytes:
    return _varints([field << 3 | _BYTES, len(content)]) + content if content else b""


def _message(message: bytes) -> dict[int, list[bytes]]:
    """The contents of each field, by number."""
    found: dict[int, list[bytes]] = {}
    try:
        for tag, start, stop in read_fields(message):
            found.setdefault(tag >> 3, []).append(message[start:stop])
    except MalformedError:
        raise ValueError("Topology: serialized must be a TopologyProto, got bytes that are no such message") from None
    return found


def _numbers(found: dict[int, list[bytes]], field: int) -> list[int]:
    """All numbers of a repeated field, packed or one by one."""
    numbers = []
    for content in found.get(field, []):
        at = 0
        while at < len(content):
            try:
                number, at = read_varint(content, at)
            except MalformedError:
                raise ValueError("Topology: serialized must be a TopologyProto, got one that is cut off") from None
            numbers.append(number - (1 << 64) if number >= _NEGATIVE else number)
    return numbers


def _last(found: dict[int, list[bytes]], field: int) -> int:
    numbers = _numbers(found, field)
    return numbers[-1] if numbers else 0
