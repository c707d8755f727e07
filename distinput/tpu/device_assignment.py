# SPDX-License-Identifier: Apache-2.0
"""`DeviceAssignment`: which devices of a topology are the cores of each replica."""

import math
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distinput.tpu.topology import Topology

# ----------------------------------------------------------------------------
# Orders of the chips of a mesh in which each chip is a neighbour of the next, and the last one of the first.
# ----------------------------------------------------------------------------


Coordinates = tuple[int, int, int]


def ring(x: int, y: int, z: int) -> list[Coordinates]:
    """The chips of an x * y * z mesh in the order of a ring that begins at (0, 0, 0).

    Each layer is a snake over all columns but the first, which leads back. Layers are run through in turns forwards and
    backwards without their corner; the corners lead back from the last layer. There is no such ring if a size above 1 is
    odd: then the order is row by row.

    >>> ring(3, 1, 1)
    [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    >>> [(x, y) for x, y, _ in ring(2, 4, 1)]
    [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (0, 3), (0, 2), (0, 1)]

    Source: the ring order of `tf.tpu.experimental.DeviceAssignment.build`.
    """
    sizes = x, y, z
    long = [axis for axis, size in enumerate(sizes) if size > 1]
    if len(long) <= 1 or any(sizes[axis] % 2 for axis in long):
        return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    if len(long) == 2:
        first, second = long
        flat = [(0, 0), *_open_ring(sizes[first], sizes[second])]
        return [_place({first: i, second: j}) for i, j in flat]
    made: list[Coordinates] = [(0, 0, 0)]
    for k in range(z):
        layer = [(i, j, k) for i, j in _open_ring(x, y)]
        made += layer if k % 2 == 0 else layer[::-1]
    return made + [(0, 0, k) for k in range(z - 1, 0, -1)]


def _open_ring(x: int, y: int) -> list[tuple[int, int]]:
    """A ring over an x * y layer without its corner (0, 0)."""
    made: list[tuple[int, int]] = []
    for j in range(y):
        columns = range(1, x) if j % 2 == 0 else range(x - 1, 0, -1)
        made += [(i, j) for i in columns]
    return made + [(0, j) for j in range(y - 1, 0, -1)]


def _place(coordinates: dict[int, int]) -> Coordinates:
    return coordinates.get(0, 0), coordinates.get(1, 0), coordinates.get(2, 0)


Ints = NDArray[np.int32]


class DeviceOrderMode(IntEnum):
    """The order in which `DeviceAssignment.build` takes devices.

    Source: `tf.tpu.experimental.DeviceOrderMode`.
    """

    AUTO = 0
    """Rings where they are possible, else a mesh."""
    RING = 1
    """Rings of replicas, and of the cores of a replica."""
    MESH = 2
    """Row by row."""


class DeviceAssignment:
    """Which devices of a topology are the cores of each replica. Immutable; `DeviceAssignment.build` chooses them.

    Args:
      topology: the devices there are.
      core_assignment: the coordinates of each core of each replica, `[replicas, cores, 4]`.

    Raises:
      ValueError: not a `Topology`, or an array of another shape.
      IndexError: coordinates outside of the mesh.

    >>> import distinput as di
    >>> tpu = di.tpu.experimental
    >>> topology = tpu.Topology(mesh_shape=[1, 1, 1, 2], device_coordinates=[[[0, 0, 0, 0], [0, 0, 0, 1]]])
    >>> assignment = tpu.DeviceAssignment.build(topology, computation_shape=[1, 1, 1, 2], num_replicas=1)
    >>> assignment.num_replicas, assignment.num_cores_per_replica, assignment.tpu_device(replica=0, logical_core=1)
    (1, 2, '/task:0/device:TPU:1')

    Source: `tf.tpu.experimental.DeviceAssignment`.
    """

    def __init__(self, topology: Topology, core_assignment: Any) -> None:
        if not isinstance(topology, Topology):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                f"topology must be a Topology object, got {type(topology)}"
            )
        cores = np.array(core_assignment, np.int32)
        cores.flags.writeable = False
        if cores.ndim != 3:
            raise ValueError(f"core_assignment must be a rank 3 numpy array, got shape {cores.shape}")
        if cores.shape[-1] != topology.mesh_rank:
            raise ValueError(
                f"core_assignment.shape[-1] must have size equal to topology rank ({topology.mesh_rank}), got "
                f"core_assignment.shape={cores.shape}"
            )
        self._topology, self._cores = topology, cores
        self._replicas: dict[tuple[int, int], list[int]] = {}
        for replica, core in np.ndindex(cores.shape[:2]):
            task = topology.task_ordinal_at_coordinates(cores[replica, core].tolist())
            self._replicas.setdefault((task, core), []).append(replica)

    @classmethod
    def build(
        cls,
        topology: Topology | bytes,
        computation_shape: Any = None,
        computation_stride: Any = None,
        num_replicas: int = 1,
        device_order_mode: DeviceOrderMode = DeviceOrderMode.AUTO,
    ) -> "DeviceAssignment":
        """Choose devices that are near each other.

        Args:
          topology: the devices there are, or the bytes of a topology.
          computation_shape: the block of cores of a replica along each axis of the mesh; one core by default.
          computation_stride: the distance between these cores along each axis; 1 by default.
          num_replicas: how many replicas there are.
          device_order_mode: whether neighbouring replicas, and cores of a replica, form rings.

        Raises:
          ValueError: not a topology, shapes or strides that are not 4 positive integers, more replicas than fit, rings
            that are not possible, or a stride where chips are missing.

        Source: `tf.tpu.experimental.DeviceAssignment.build`.
        """
        if isinstance(topology, bytes):
            topology = Topology(serialized=topology)
        if not isinstance(topology, Topology):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                f"`topology` is not a Topology object; got {type(topology)}"
            )
        shape = _counts("computation_shape", computation_shape, topology.mesh_rank)
        stride = _counts("computation_stride", computation_stride, topology.mesh_rank)
        places = _places(topology, shape, stride, num_replicas)
        if len(topology.missing_devices):
            return cls(topology, _in_task_order(topology, shape, stride, num_replicas))
        grid = _grid(places, num_replicas)
        # All devices are used, and whole chips.
        rings = shape[-1] == topology.mesh_shape[-1] and stride.prod() == 1 and num_replicas == places.prod()
        if device_order_mode == DeviceOrderMode.RING and not rings:
            raise ValueError(
                "device_order_mode=DeviceOrderMode.RING is not compatible with the 3D tiling current topology.  Try "
                "setting device_order_mode=DeviceOrderMode.AUTO"
            )
        if rings and device_order_mode != DeviceOrderMode.MESH:
            return cls(topology, _in_rings(shape, grid))
        return cls(topology, _row_by_row(shape, stride, grid, num_replicas))

    @property
    def topology(self) -> Topology:
        """The devices there are."""
        return self._topology

    @property
    def num_cores_per_replica(self) -> int:
        """The number of cores of each replica."""
        return int(self._cores.shape[1])

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return int(self._cores.shape[0])

    @property
    def core_assignment(self) -> Ints:
        """The coordinates of each core of each replica, `[replicas, cores, 4]`."""
        return self._cores

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """The coordinates of a core of a replica."""
        return tuple(self._cores[replica, logical_core].tolist())

    def lookup_replicas(self, task_id: int, logical_core: int) -> list[int]:
        """The replicas whose core of this number belongs to a task, smallest first.

        Raises:
          ValueError: there is none.
        """
        found = self._replicas.get((task_id, logical_core))
        if found is None:
            raise ValueError(f"Can not find any replica in task: {task_id} contains logical_core: {logical_core}")
        return list(found)

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """Which of the devices of its task a core is."""
        return self._topology.tpu_device_ordinal_at_coordinates(self.coordinates(replica, logical_core))

    def host_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """The name of the host of a core."""
        return self._topology.cpu_device_name_at_coordinates(self.coordinates(replica, logical_core), job)

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: str | None = None) -> str:
        """The name of a core."""
        return self._topology.tpu_device_name_at_coordinates(self.coordinates(replica, logical_core), job)

    def __repr__(self) -> str:
        return f"DeviceAssignment({self.num_replicas} replicas of {self.num_cores_per_replica} cores, {self._topology})"


def _counts(name: str, given: Any, rank: int) -> Ints:
    made: Ints = np.ones(rank, np.int32) if given is None else np.asarray(given, np.int32)
    if made.shape != (rank,):
        raise ValueError(f"{name} must have shape [{rank}]; got {made.shape}")
    if (made < 1).any():
        raise ValueError(f"{name} must be positive; got {name}={made}")
    return made


def _places(topology: Topology, shape: Ints, stride: Ints, replicas: int) -> Ints:
    """How many replicas fit along each axis.

    Raises:
      ValueError: fewer than are needed.
    """
    mesh, footprint = topology.mesh_shape, shape * stride
    if (footprint > mesh).any():
        raise ValueError(f"computation footprint {footprint} does not fit in TPU topology shape {mesh}")
    # Replicas with a stride interleave: the cores that one leaves out are those of others.
    places = mesh // footprint * stride
    if not 0 <= replicas <= places.prod():
        raise ValueError(
            f"requested {replicas} replicas but only {places.prod()} replicas with shape {shape} and computation_stride "
            f"{stride} fit in a TPU mesh of shape {mesh}"
        )
    return places


def _grid(places: Ints, replicas: int) -> list[int]:
    """How many replicas to place along each axis, as near to a cube as the mesh allows.

    Short axes are filled first, since they leave no choice; of axes of one length first that of the cores, which are on
    the same chip, then x, y, z.
    """
    rank = len(places)
    grid = [0] * rank
    left = replicas
    if not replicas:
        return grid
    order = sorted(range(rank), key=lambda axis: (places[axis], (axis + 1) % rank))
    for done, axis in enumerate(order):
        even = math.ceil(left ** (1.0 / (rank - done)))
        grid[axis] = min(even, int(places[axis]))
        left = -(-left // grid[axis])
    return grid


def _row_by_row(shape: Ints, stride: Ints, grid: list[int], replicas: int) -> Ints:
    """Replicas along the cores first, then x, y, z; the cores of a replica with the last axis fastest."""
    rank = len(shape)
    block = np.indices(tuple(shape)).reshape(rank, -1).T * stride  # [cores, rank]
    made = np.empty((replicas, len(block), rank), np.int32)
    for replica in range(replicas):
        number, place = replica, np.empty(rank, np.int32)
        for axis in (rank - 1, *range(rank - 1)):
            number, place[axis] = divmod(number, grid[axis])
        made[replica] = place // stride * (shape * stride) + place % stride + block
    return made


def _in_rings(shape: Ints, grid: list[int]) -> Ints:
    """A ring of replicas, each of them a ring of chips with all their cores."""
    x, y, z, cores = shape.tolist()
    inner = [(*chip, core) for chip in ring(x, y, z) for core in range(cores)]
    outer = [(*place, 0) for place in ring(grid[0], grid[1], grid[2])]
    return np.array([[np.multiply(place, shape) + core for core in inner] for place in outer], np.int32)


def _in_task_order(topology: Topology, shape: Ints, stride: Ints, replicas: int) -> Ints:
    """Where chips are missing: the devices one after the other, in the order of tasks.

    Raises:
      ValueError: a stride, or more cores than there are devices.
    """
    if stride.prod() != 1:
        raise ValueError(f"computation_stride must be 1 along every axis where chips are missing; got {stride}")
    devices, cores = topology.device_coordinates.reshape(-1, topology.mesh_rank), int(shape.prod())
    if replicas * cores > len(devices):
        raise ValueError(
            f"requested {replicas} replicas of {cores} cores, but there are {len(devices)} devices, since chips are missing"
        )
    return devices[: replicas * cores].reshape(replicas, cores, topology.mesh_rank)
