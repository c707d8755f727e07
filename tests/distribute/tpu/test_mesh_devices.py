# SPDX-License-Identifier: Apache-2.0
"""Steps of input on the devices of a mesh: one array for all replicas, right whatever the parts look like."""

from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.tpu.mesh import DeviceValues, MeshDevices, ReplicaMesh, joined
from distinput.testing import check_devices

Dataset = di.data.Dataset


def opened(replicas: int, cores: int = 1) -> MeshDevices:
    mesh = ReplicaMesh.of(jax.devices()[: replicas * cores], cores)
    return MeshDevices(mesh, mesh.labels)


def test_they_are_devices() -> None:
    with jax.enable_x64(True):
        check_devices(lambda labels: MeshDevices(ReplicaMesh.of(jax.devices()[: len(labels)]), labels))


@given(st.data())
def test_parts_come_back_as_they_were_put(data: st.DataObject) -> None:
    cores = data.draw(st.sampled_from([1, 2]))
    devices = opened(replicas := data.draw(st.integers(1, 4)), cores)
    dtype = data.draw(st.sampled_from([np.float32, np.int64, np.bool_, np.uint8]))
    kind = data.draw(st.sampled_from(["views", "apart", "strided", "uneven", "scalars", "large"]))
    rows = data.draw(st.integers(0, 5))
    width = 40_000 if kind == "large" else 3
    whole = (np.arange(replicas * rows * width) % 100).astype(dtype).reshape(replicas * rows, width)
    parts: list[Any] = [whole[i * rows : (i + 1) * rows] for i in range(replicas)]
    if kind == "apart":
        parts = [part.copy() for part in parts]
    elif kind == "strided":
        parts = [whole[i::replicas] for i in range(replicas)]
    elif kind == "uneven":
        parts = [whole[: min(i, len(whole))] for i in range(replicas)]
    elif kind == "scalars":
        parts = [dtype(i) for i in range(replicas)]
    put, text = devices.put_step([parts, [b"a"] * replicas])
    assert text.values == (b"a",) * replicas
    for i, (part, there) in enumerate(zip(parts, put.values, strict=True)):
        assert there.devices() == {devices.devices[i]}
        np.testing.assert_array_equal(np.asarray(there), part)
    if kind != "uneven":
        assert isinstance(put, DeviceValues)


@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from(["", "order", "gap", "other", "base"]))
def test_only_neighbours_are_joined(count: int, rows: int, wrong: str) -> None:
    whole = np.arange(count * rows * 2 + 4).reshape(-1, 2)
    parts = [whole[i * rows : (i + 1) * rows] for i in range(count)]
    if wrong == "order":
        parts.reverse()
    elif wrong == "gap":
        parts[-1] = whole[count * rows + 1 :][:rows]
    elif wrong == "other":
        parts[-1] = parts[-1].copy()
    elif wrong == "base":
        parts = [part.astype(np.int32) for part in parts]
    found = joined(parts)
    if found is None:
        assert wrong or count == 0
    else:
        np.testing.assert_array_equal(found, np.concatenate(parts))


def test_the_memory_of_joined_parts_is_kept() -> None:
    whole = np.arange(1000)
    array = joined([whole[:500], whole[500:]])
    assert array is not None
    assert array.base is whole


def test_steps_are_arrays_over_all_devices() -> None:
    strategy = di.distribute.TPUStrategy()
    dataset = Dataset.from_tensor_slices({"x": np.arange(40.0, dtype=np.float32).reshape(20, 2), "y": np.arange(20)})
    steps = list(strategy.experimental_distribute_dataset(dataset.batch(16)))
    assert isinstance(steps[0]["x"], DeviceValues)
    assert steps[0]["x"].whole.shape == (16, 2)
    assert steps[1]["x"].row_counts == (1, 1, 1, 1, 0, 0, 0, 0)
    sums = [
        strategy.reduce("SUM", strategy.run(lambda s: s["x"].sum(1) + s["y"], args=(step,)), axis=0) for step in steps
    ]
    assert float(sum(sums)) == np.arange(40).sum() + np.arange(20).sum()


def test_scalars_and_padded_steps() -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:4])
    (step,) = strategy.distribute_datasets_from_function(lambda _: Dataset.range(4))
    assert [int(x) for x in strategy.run(lambda x: x * 2, args=(step,)).values] == [0, 2, 4, 6]
    options = di.distribute.InputOptions(tail="pad")
    (padded,) = strategy.experimental_distribute_dataset(Dataset.range(6).batch(8), options)
    assert all(isinstance(leaf, DeviceValues) for leaf in padded)
    assert int(strategy.reduce("SUM", padded[0], axis=0, mask=padded[1])) == 15


@pytest.mark.parametrize(
    "dataset", [Dataset.from_tensor_slices([b"a", b"b"]).batch(2), Dataset.range(4).map(lambda x: (x, str(x))).batch(2)]
)
def test_text_is_refused_unless_it_may_stay_on_the_host(dataset: Any) -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:2])
    why = "TPUStrategy does not support distributed datasets with device prefetch .*experimental_fetch_to_device set to False"
    with pytest.raises(ValueError, match=why):
        strategy.experimental_distribute_dataset(dataset)
    with pytest.raises(ValueError, match=why):
        strategy.distribute_datasets_from_function(lambda _: dataset)
    options = di.distribute.InputOptions(experimental_fetch_to_device=False)
    step = next(iter(strategy.experimental_distribute_dataset(dataset, options)))
    assert not isinstance(step, jax.Array)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_steps_ahead_are_not_overwritten(ahead: int) -> None:
    """The consumer keeps results of computations that may not have run when the batch is dropped."""
    rows = np.repeat(np.arange(64 * 30, dtype=np.float32), 512).reshape(-1, 512)
    source = Dataset.from_tensor_slices(rows).global_shuffle(seed=3, reshuffle_each_iteration=False).batch(64)
    expected = [batch[:, 0].sum(dtype=np.float64) for batch in source]
    strategy, late = di.distribute.TPUStrategy(), deque[Any]()
    slow = lambda x: jnp.round((jnp.sin(x) ** 2 + jnp.cos(x) ** 2) * x).mean(1).sum()  # noqa: E731
    options = di.distribute.InputOptions(experimental_per_replica_buffer_size=ahead)
    for step in strategy.experimental_distribute_dataset(source, options):
        late.append(strategy.run(slow, args=(step,)))
    found = [float(strategy.reduce("SUM", value, axis=None)) for value in late]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
