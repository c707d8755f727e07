# SPDX-License-Identifier: Apache-2.0
import pickle

import jax
import numpy as np

from distinput.distribute.core.values import PerReplica
from distinput.distribute.tpu.mesh import DeviceValues, ReplicaMesh


def of(parts: list[np.ndarray], mesh: ReplicaMesh, **named: object) -> DeviceValues:
    scalar = not parts[0].ndim
    shaped = [part.reshape(1) if scalar else part for part in parts]
    return DeviceValues(mesh.assemble(shaped, shaped[0].shape), mesh, scalar=scalar, **named)


def test_components_lie_on_their_devices() -> None:
    for cores in (1, 2):
        mesh = ReplicaMesh.of(cores_per_replica=cores)
        value = of([np.full((2, 3), i) for i in range(mesh.replicas)], mesh)
        assert isinstance(value, PerReplica)
        assert value.part_shape == (2, 3)
        for i, part in enumerate(value.values):
            assert part.devices() == {mesh.devices[i, 0]}
            assert np.asarray(part).tolist() == [[i] * 3] * 2
        assert value.values is value.values


def test_scalars_have_no_axes() -> None:
    mesh = ReplicaMesh.of(jax.devices()[:3])
    value = of([np.array(i) for i in range(3)], mesh)
    assert value.part_shape == ()
    assert [part.item() for part in value.values] == [0, 1, 2]
    assert value.row_counts == (1, 1, 1)


def test_added_rows_are_not_shown() -> None:
    mesh = ReplicaMesh.of(jax.devices()[:2])
    value = of([np.array([1, 2]), np.array([3, 3])], mesh, rows=(2, 1))
    assert [part.tolist() for part in value.values] == [[1, 2], [3]]
    assert value.row_counts == (2, 1)
    assert "Array([3]" in repr(value)


def test_a_pickle_holds_the_components() -> None:
    value = of([np.array([1, 2]), np.array([3, 4])], ReplicaMesh.of(jax.devices()[:2]))
    assert [np.asarray(part).tolist() for part in pickle.loads(pickle.dumps(value)).values] == [[1, 2], [3, 4]]
