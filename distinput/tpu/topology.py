# SPDX-License-Identifier: Apache-2.0
"""`Topology`: where the devices of each task are in the mesh of chips."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distinput.kernels.protobuf import MalformedError, read_fields, read_varints, varint_bytes
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# What a TPU has besides its cores.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class HardwareFeatures:
    """The features of a TPU as numbers, as a serialized topology has them.

    Args:
      embedding_feature: 0 no embedding hardware, 1 its first version, 2 its second one.
      num_embedding_devices_per_chip: how many of these devices a chip has.
    """

    embedding_feature: int = 0
    num_embedding_devices_per_chip: int = 0


class HardwareFeature:
    """What a TPU has besides its cores. JAX says nothing about it, so a topology of JAX's devices has none of it.

    Args:
      tpu_hardware_feature_proto: an object with `embedding_feature` and `num_embedding_devices_per_chip`, such as
        `TPUClusterResolver.tpu_hardware_feature`.

    Raises:
      TypeError: the object lacks them.

    >>> import distinput as di
    >>> from distinput.tpu.topology import HardwareFeatures
    >>> di.tpu.experimental.HardwareFeature(HardwareFeatures()).embedding_feature.value
    'UNSUPPORTED'

    Source: `tf.tpu.experimental.HardwareFeature`.
    """

    class EmbeddingFeature(Enum):
        """Versions of the embedding hardware."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto: Any) -> None:
        for name in ("embedding_feature", "num_embedding_devices_per_chip"):
            if not hasattr(tpu_hardware_feature_proto, name):
                raise TypeError(
                    f"HardwareFeature: needs an object with {name}, such as TPUClusterResolver.tpu_hardware_feature, got "
                    f"{tpu_hardware_feature_proto!r}"
                )
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    @property
    def embedding_feature(self) -> "HardwareFeature.EmbeddingFeature":
        """The version of the embedding hardware; a number that is not known counts as none."""
        kinds = list(HardwareFeature.EmbeddingFeature)
        number = int(self.tpu_hardware_feature_proto.embedding_feature)
        return kinds[number] if 0 <= number < len(kinds) else HardwareFeature.EmbeddingFeature.UNSUPPORTED

    @property
    def num_embedding_devices_per_chip(self) -> int:
        """The number of embedding devices of a chip."""
        return int(self.tpu_hardware_feature_proto.num_embedding_devices_per_chip)


# ----------------------------------------------------------------------------
# A topology as bytes: the protocol buffer message in which TensorFlow hands topologies around.
# ----------------------------------------------------------------------------


_NUMBER, _BYTES = 0, 2  # kinds of fields
_MESH_SHAPE, _TASKS, _DEVICES, _COORDINATES, _FEATURES = 1, 2, 3, 4, 5
_EMBEDDING, _EMBEDDING_DEVICES = 1, 2


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
    features: HardwareFeatures = HardwareFeatures()


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
    return b"".join(map(varint_bytes, numbers))


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
        raise ValueError("Topology: serialized must be a TopologyProto, got bytes of something else") from None
    return found


def _numbers(found: dict[int, list[bytes]], field: int) -> list[int]:
    """All numbers of a repeated field, packed or one by one."""
    try:
        numbers = [number for content in found.get(field, []) for number in read_varints(content)]
    except MalformedError:
        raise ValueError("Topology: serialized must be a TopologyProto, got one that is cut off") from None
    return [number - (number >> 63 << 64) for number in numbers]  # those with the highest bit are negative


def _last(found: dict[int, list[bytes]], field: int) -> int:
    numbers = _numbers(found, field)
    return numbers[-1] if numbers else 0


RANK = 4
"""The axes of a mesh: x, y, z of the chip, and the number of the core on it."""


class Topology:
    """Where the devices of each task are in the mesh of chips. Immutable.

    Args:
      serialized: the bytes of `Topology.serialized`, or of TensorFlow's; the other arguments are then ignored.
      mesh_shape: the size of the mesh along x, y, z and the cores of a chip.
      device_coordinates: `[tasks, devices of a task, 4]`.

    Raises:
      ValueError: the bytes are not a topology, the arrays have other shapes, or a device is outside of the mesh or where
        another one is.

    >>> import distinput as di
    >>> topology = di.tpu.experimental.Topology(mesh_shape=[1, 1, 1, 2], device_coordinates=[[[0, 0, 0, 0], [0, 0, 0, 1]]])
    >>> topology.num_tasks, topology.num_tpus_per_task, topology.tpu_device_name_at_coordinates([0, 0, 0, 1], job="worker")
    (1, 2, '/job:worker/task:0/device:TPU:1')

    Source: `tf.tpu.experimental.Topology`.
    """

    def __init__(self, serialized: bytes | None = None, mesh_shape: Any = None, device_coordinates: Any = None) -> None:
        features = HardwareFeatures()
        if serialized:
            fields = topology_fields(serialized)
            features = fields.features
            mesh_shape = fields.mesh_shape
            expected = fields.tasks * fields.devices * len(mesh_shape)
            if len(fields.coordinates) != expected:
                raise ValueError(
                    f"`device_coordinates` must have shape num_tasks ({fields.tasks}) * num_tpu_devices_per_task "
                    f"({fields.devices}) * len(mesh_shape) ({len(mesh_shape)}); got {len(fields.coordinates)} numbers"
                )
            device_coordinates = np.reshape(fields.coordinates, (fields.tasks, fields.devices, len(mesh_shape)))
        self._mesh_shape = _frozen(mesh_shape)
        self._device_coordinates = _frozen(device_coordinates)
        self._features = features
        self._check()
        self._tasks, self._ordinals = self._inverted()
        self._missing = _frozen(np.argwhere(self._tasks < 0))

    def _check(self) -> None:
        shape, coordinates = self._mesh_shape, self._device_coordinates
        if shape.shape != (RANK,) or (shape < 1).any():
            raise ValueError(f"`mesh_shape` must be a sequence of 4 positive entries; got `mesh_shape={shape}`")
        if coordinates.ndim != 3 or coordinates.shape[2] != RANK:
            raise ValueError(
                "`device_coordinates` must be a rank 3 int32 array with minor dimension equal to the `mesh_shape` rank; got "
                f"device_coordinates.shape={coordinates.shape}"
            )
        if (coordinates < 0).any() or (coordinates >= shape).any():
            raise ValueError(
                f"All values in `device_coordinates` must be >= 0 and inside of the mesh {shape.tolist()}, got "
                f"{coordinates.tolist()}"
            )
        places = coordinates.reshape(-1, RANK)
        if len(np.unique(places, axis=0)) < len(places):
            raise ValueError(f"`device_coordinates` must differ from device to device, got {coordinates.tolist()}")

    def _inverted(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For each place of the mesh the task that has a device there, and which of its devices that is; -1 for none."""
        tasks = np.full(self._mesh_shape, -1, np.int32)
        ordinals = np.full(self._mesh_shape, -1, np.int32)
        for task, devices in enumerate(self._device_coordinates):
            for ordinal, place in enumerate(devices):
                tasks[tuple(place)], ordinals[tuple(place)] = task, ordinal
        return tasks, ordinals

    @property
    def mesh_shape(self) -> NDArray[np.int32]:
        """The size of the mesh along each axis, `[4]`."""
        return self._mesh_shape

    @property
    def mesh_rank(self) -> int:
        """The number of axes of the mesh."""
        return len(self._mesh_shape)

    @property
    def device_coordinates(self) -> NDArray[np.int32]:
        """The place of each device of each task, `[tasks, devices of a task, 4]`."""
        return self._device_coordinates

    @property
    def missing_devices(self) -> NDArray[np.int32]:
        """The places of the mesh that have no device, `[n, 4]`."""
        return self._missing

    @property
    def num_tasks(self) -> int:
        """The number of tasks, which are the processes that have devices."""
        return int(self._device_coordinates.shape[0])

    @property
    def num_tpus_per_task(self) -> int:
        """The number of devices of each task."""
        return int(self._device_coordinates.shape[1])

    @property
    def features(self) -> HardwareFeatures:
        """What else a chip has."""
        return self._features

    def task_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """The task that the device at these coordinates belongs to; -1 where there is no device.

        Raises:
          IndexError: outside of the mesh.
        """
        return int(self._tasks[tuple(device_coordinates)])

    def tpu_device_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Which of the devices of its task is at these coordinates; -1 where there is no device.

        Raises:
          IndexError: outside of the mesh.
        """
        return int(self._ordinals[tuple(device_coordinates)])

    def cpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: str | None = None) -> str:
        """The name of the host of the device at these coordinates."""
        return f"{self._task_name(device_coordinates, job)}/device:CPU:0"

    def tpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: str | None = None) -> str:
        """The name of the device at these coordinates, which is that of a TPU even if another device stands for one."""
        ordinal = self.tpu_device_ordinal_at_coordinates(device_coordinates)
        return f"{self._task_name(device_coordinates, job)}/device:TPU:{ordinal}"

    def _task_name(self, device_coordinates: Sequence[int], job: str | None) -> str:
        task = f"/task:{self.task_ordinal_at_coordinates(device_coordinates)}"
        return task if job is None else f"/job:{job}{task}"

    def serialized(self) -> bytes:
        """The topology as bytes, in TensorFlow's format."""
        return topology_bytes(
            TopologyFields(
                tuple(self._mesh_shape.tolist()),
                self.num_tasks,
                self.num_tpus_per_task,
                tuple(self._device_coordinates.ravel().tolist()),
                self._features,
            )
        )

    def __repr__(self) -> str:
        return f"Topology(mesh_shape={self._mesh_shape.tolist()}, {self.num_tasks} x {self.num_tpus_per_task} devices)"


def _frozen(values: Any) -> NDArray[np.int32]:
    made = np.array(values, np.int32)
    made.flags.writeable = False
    return made
