# SPDX-License-Identifier: Apache-2.0
import jax
import numpy as np
import pytest

from distinput.distribute.tpu.mesh import ReplicaMesh


def test_every_device_is_a_replica_of_one_core() -> None:
    mesh = ReplicaMesh.of()
    assert (mesh.replicas, mesh.cores) == (len(jax.devices()), 1)
    assert mesh.labels == tuple([f"CPU:{number}" for number in range(len(jax.devices()))])


def test_neighbouring_devices_are_the_cores_of_one_replica() -> None:
    mesh = ReplicaMesh.of(jax.devices()[:6], cores_per_replica=3)
    assert mesh.devices.shape == (2, 3)
    assert [device.id for device in mesh.devices[1]] == [device.id for device in jax.devices()[3:6]]
    assert dict(mesh.mesh.shape) == {"replica": 2, "core": 3}


def test_what_cannot_be_a_mesh_is_refused() -> None:
    devices = jax.devices()
    with pytest.raises(ValueError, match="8 devices cannot be divided into replicas of 3 cores"):
        ReplicaMesh.of(devices, cores_per_replica=3)
    with pytest.raises(ValueError, match="no device may be given twice"):
        ReplicaMesh([[devices[0]], [devices[0]]])
    with pytest.raises(ValueError, match=r"\[replicas, cores per replica\], got shape \[1\]"):
        ReplicaMesh(devices[:1])


@pytest.mark.parametrize("cores", [1, 2])
def test_parts_are_assembled_into_one_array(cores: int) -> None:
    mesh = ReplicaMesh.of(cores_per_replica=cores)
    parts = [np.full((2, 3), i, np.float32) for i in range(mesh.replicas)]
    whole = mesh.assemble(parts, (2, 3))
    assert whole.sharding == mesh.per_replica
    np.testing.assert_array_equal(np.asarray(whole), np.concatenate(parts))


@pytest.mark.parametrize(
    "cores, axes", [(1, {"core": 1}), (2, {"core": 2}), (4, {"core0": 2, "core1": 2}), (6, {"core0": 2, "core1": 3})]
)
def test_the_cores_have_an_axis_for_each_prime_factor(cores: int, axes: dict[str, int]) -> None:
    mesh = ReplicaMesh.of(jax.devices()[: 8 // cores * cores], cores_per_replica=cores)
    assert mesh.core_axes == axes
    assert dict(mesh.mesh.shape) == {"replica": 8 // cores, **axes}
