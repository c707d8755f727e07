# SPDX-License-Identifier: Apache-2.0
"""The devices that JAX has, as a topology.

TPUs tell where they are. Other devices have no place in a mesh of chips, so they get a made-up one: chips of two cores
where their number is even, in a rectangle for each process, with processes along y. Eight of them look like a TPU v3-8.
"""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distinput.errors import importing
from distinput.tpu.device_assignment import DeviceAssignment
from distinput.tpu.topology import Topology


class TPUSystemMetadata(NamedTuple):
    """How many devices there are, and where; `TPUClusterResolver.get_tpu_system_metadata` returns it.

    Args:
      num_cores: the number of devices.
      num_hosts: the number of processes that have them.
      num_of_cores_per_host: the number of devices of each process.
      topology: where they are.
      devices: their names, in the order of tasks.

    Source: `tf.tpu.experimental.TPUSystemMetadata`.
    """

    num_cores: int
    num_hosts: int
    num_of_cores_per_host: int
    topology: Topology | None
    devices: tuple[str, ...]


def initialize_tpu_system(cluster_resolver: Any = None) -> Topology:
    """The topology of the devices that JAX has: TPUs if there are any, else whatever there is.

    JAX prepares its devices itself when they are first used, so this only looks at them. It may be called again.

    Args:
      cluster_resolver: a `TPUClusterResolver`, which then knows the topology too; None for the devices of this program.

    Raises:
      EngineMissing: JAX is not installed.
      TypeError: not a `TPUClusterResolver`.
      RuntimeError: processes have different numbers of devices.

    Source: `tf.tpu.experimental.initialize_tpu_system`.
    """
    _check_resolver("initialize_tpu_system", cluster_resolver)
    topology = system_topology()
    if cluster_resolver is not None:
        cluster_resolver.set_tpu_topology(topology.serialized())
    return topology


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """Forget all programs that JAX has compiled. JAX gives its devices back when the process ends; arrays stay valid.

    Args:
      cluster_resolver: a `TPUClusterResolver`, or None.

    Raises:
      EngineMissing: JAX is not installed.
      TypeError: not a `TPUClusterResolver`.

    Source: `tf.tpu.experimental.shutdown_tpu_system`.
    """
    _check_resolver("shutdown_tpu_system", cluster_resolver)
    jax_for("distinput.tpu").clear_caches()


def system_topology() -> Topology:
    """The topology of all devices that JAX has, those of other processes included.

    Raises:
      EngineMissing: JAX is not installed.
      RuntimeError: processes have different numbers of devices.
    """
    tasks = _tasks()
    if all(hasattr(device, "coords") and hasattr(device, "core_on_chip") for devices in tasks for device in devices):
        places = np.array([[(*device.coords, device.core_on_chip) for device in devices] for devices in tasks])
        places -= places.min((0, 1))  # a slice of a larger machine need not begin at its corner
    else:
        places = made_up_coordinates(len(tasks), len(tasks[0]))
    return Topology(mesh_shape=places.max((0, 1)) + 1, device_coordinates=places)


def made_up_coordinates(tasks: int, devices: int) -> NDArray[np.int64]:
    """Places for devices that have none: `[tasks, devices, 4]`, the cores of a chip next to each other.

    >>> made_up_coordinates(1, 8).max((0, 1)) + 1
    array([2, 2, 1, 2])
    """
    cores = 2 if devices % 2 == 0 else 1
    chips = devices // cores
    width = next(size for size in range(int(chips**0.5), 0, -1) if chips % size == 0)
    if chips // width > 2 * width:  # a long rectangle is a line
        width = chips
    height = chips // width
    chip, core = np.divmod(np.arange(devices), cores)
    y, x = np.divmod(chip, width)
    rows = [np.stack([x, y + task * height, np.zeros_like(x), core], axis=1) for task in range(tasks)]
    return np.stack(rows)


def system_metadata(job: str = "worker") -> TPUSystemMetadata:
    """How many devices JAX has, and where.

    Args:
      job: the name of the job, which is a part of the names of devices.

    Raises:
      EngineMissing: JAX is not installed.
      RuntimeError: processes have different numbers of devices.
    """
    tasks = _tasks()
    names = [
        f"/job:{job}/replica:0/task:{task}/device:{str(device.platform).upper()}:{i}"
        for task, devices in enumerate(tasks)
        for i, device in enumerate(devices)
    ]
    return TPUSystemMetadata(len(names), len(tasks), len(tasks[0]), system_topology(), tuple(names))


def system_devices(assignment: DeviceAssignment) -> NDArray[np.object_]:
    """The JAX devices of an assignment, `[replicas, cores]`.

    Raises:
      EngineMissing: JAX is not installed.
      ValueError: the assignment is for other devices than those that JAX has.
    """
    tasks = _tasks()
    topology = assignment.topology
    there = (len(tasks), len(tasks[0]))
    if (topology.num_tasks, topology.num_tpus_per_task) != there:
        raise ValueError(
            f"DeviceAssignment: the topology has {topology.num_tasks} tasks of {topology.num_tpus_per_task} devices, but JAX "
            f"has {there[0]} processes of {there[1]}; build it from the topology of initialize_tpu_system()"
        )
    made = np.empty((assignment.num_replicas, assignment.num_cores_per_replica), object)
    for replica, core in np.ndindex(made.shape):
        place = assignment.coordinates(replica, core)
        task, ordinal = topology.task_ordinal_at_coordinates(place), topology.tpu_device_ordinal_at_coordinates(place)
        if task < 0:
            raise ValueError(f"DeviceAssignment: there is no device at {place}, core {core} of replica {replica}")
        made[replica, core] = tasks[task][ordinal]
    return made


def _tasks() -> list[list[Any]]:
    """The devices of each process that has any."""
    found: dict[int, list[Any]] = {}
    for device in sorted(jax_for("distinput.tpu").devices(), key=lambda device: (device.process_index, device.id)):
        found.setdefault(device.process_index, []).append(device)
    tasks = list(found.values())
    if len({len(devices) for devices in tasks}) > 1:
        raise RuntimeError(
            f"all processes must have as many devices, got {[len(devices) for devices in tasks]}: start them alike"
        )
    return tasks


def jax_for(who: str) -> Any:
    """The package JAX.

    Raises:
      EngineMissing: it is not installed.
    """
    with importing(f"{who}: needs JAX, which is not installed ({{error}}); use `pip install 'distinput[jax]'`"):
        return import_module("jax")


def _check_resolver(what: str, resolver: Any) -> None:
    if resolver is not None and not hasattr(resolver, "set_tpu_topology"):
        raise TypeError(f"{what}: cluster_resolver must be a TPUClusterResolver or None, got {resolver!r}")
