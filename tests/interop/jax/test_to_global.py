# SPDX-License-Identifier: Apache-2.0
"""The parts of replicas as global arrays."""

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import distinput as di
from distinput.interop.jax import to_global

Dataset = di.data.Dataset
PerReplica = di.distribute.PerReplica


def over(*spec: Any, axes: tuple[int, ...] = (8,)) -> NamedSharding:
    return NamedSharding(jax.make_mesh(axes, ("data", "model")[: len(axes)]), PartitionSpec(*spec))


DATA = over("data")


@pytest.mark.parametrize("backend", ["threads", "jax"])
@pytest.mark.parametrize(
    "sharding", [DATA, over("data", axes=(2, 4)), over("model", "data", axes=(4, 2)), over()], ids=str
)
def test_parts_become_rows_in_replica_order(backend: str, sharding: Any) -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)], backend=backend)
    data = np.arange(32 * 4, dtype=np.float32).reshape(32, 4)
    for i, step in enumerate(
        strategy.experimental_distribute_dataset(Dataset.from_tensor_slices({"x": data}).batch(16))
    ):
        made = to_global(step, sharding)["x"]
        assert made.sharding.is_equivalent_to(sharding, 2)
        assert np.array_equal(made, data[16 * i : 16 * i + 16])


def test_parts_on_the_right_devices_stay_there() -> None:
    devices = jax.devices()
    parts = [jax.device_put(np.full((2, 512), i, np.float32), device) for i, device in enumerate(devices)]
    made = to_global(PerReplica(parts), DATA)
    assert made.shape == (16, 512)
    there = {shard.device: shard.data.unsafe_buffer_pointer() for shard in made.addressable_shards}
    assert [there[device] for device in devices] == [part.unsafe_buffer_pointer() for part in parts]


def test_steps_over_a_mesh_are_passed_on() -> None:
    strategy = di.distribute.TPUStrategy()
    (step,) = strategy.experimental_distribute_dataset(Dataset.range(16).batch(16, drop_remainder=True))
    mesh = step.whole.sharding.mesh
    assert to_global(step, NamedSharding(mesh, PartitionSpec("replica"))) is step.whole
    assert to_global(step, DATA).tolist() == list(range(16))


def test_results_of_a_run() -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(8)], backend="jax")
    step = strategy.run(lambda: jax.numpy.float32(di.distribute.get_replica_context().replica_id_in_sync_group))
    assert to_global(step, DATA).tolist() == list(range(8))


def test_plain_values() -> None:
    made = to_global({"x": np.arange(8, dtype=np.int32), "rate": 0.5}, DATA)
    assert made["x"].sharding == DATA
    assert float(made["rate"]) == 0.5
    assert made["rate"].sharding.is_fully_replicated


def test_padded_steps_keep_their_masks() -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    options = di.distribute.InputOptions(tail="pad")
    (step,) = strategy.experimental_distribute_dataset(Dataset.range(5).batch(8), options)
    batch, mask = to_global(step, over("data", axes=(4, 2)))
    assert np.asarray(batch)[np.asarray(mask)].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "value, sharding, kind, says",
    [
        (PerReplica([np.zeros(2), np.zeros(1)]), DATA, ValueError, r"must have the same shape, got \[2\], \[1\]; distribute"),
        (PerReplica([np.zeros(2), np.zeros(2)]), DATA, ValueError, r"of shape \[4\], cannot be divided"),
        (PerReplica([np.zeros(8)]), None, TypeError, "sharding must be a jax.sharding.NamedSharding"),
        ({"x": np.zeros(8)}, {"y": DATA}, TypeError, "with the structure of the step"),
        (PerReplica(["a", "b"]), DATA, di.errors.InvalidArgumentError, "must be numbers to be put on a device, got text"),
    ],
)  # fmt: skip
def test_what_is_refused(value: Any, sharding: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        to_global(value, sharding)
