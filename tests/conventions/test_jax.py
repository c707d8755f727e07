# SPDX-License-Identifier: Apache-2.0
"""What JAX, Flax, Orbax and Grain expect of a dataset; docs/conventions.md lists the lines."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import distinput as di
from tests.conventions.imports import imported

jax = pytest.importorskip("jax")
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

ROOT = Path(__file__).parents[2]
Dataset = di.data.Dataset
ROWS = PartitionSpec("data")


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Record:
    x: Any
    y: Any


def sharding(shape: tuple[int, ...] = (4,), spec: Any = ROWS) -> NamedSharding:
    names = ("data", "model")[: len(shape)]
    return NamedSharding(Mesh(np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape), names), spec)


@pytest.mark.parametrize(
    "made", [lambda x: {"x": x, "y": x}, lambda x: (x, (x,)), lambda x: Pair(x, x), lambda x: Record(x, x)]
)
def test_elements_and_batches_and_steps_are_pytrees(made: Any) -> None:
    dataset = Dataset.range(8).map(made).batch(4)
    kind = type(next(iter(dataset)))
    (batch, mask), *_ = di.interop.jax.batches(dataset, sharding())
    doubled = jax.tree.map(lambda leaf: 2 * leaf, batch)
    assert type(doubled) is kind
    assert [leaf.tolist() for leaf in jax.tree.leaves(doubled)] == [[0, 2, 4, 6]] * 2
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    step = next(iter(strategy.experimental_distribute_dataset(Dataset.range(8).batch(4))))
    assert [part.tolist() for part in jax.tree.leaves(step)] == [[0, 1], [2, 3]]
    assert mask.shape == (4,)


@pytest.mark.fresh_process
def test_nothing_is_registered_before_jax_is_imported() -> None:
    assert "distinput" in imported()
    assert not {"jax", "flax", "orbax", "grain"} & imported()


def test_batches_are_what_jax_makes_of_the_rows_of_a_process() -> None:
    rows = np.arange(16.0).reshape(8, 2)
    where = sharding()
    want = jax.make_array_from_process_local_data(where, rows, (8, 2))
    ((batch, _),) = di.interop.jax.batches(Dataset.from_tensor_slices(rows).batch(8), where)
    assert batch.sharding == want.sharding
    assert [x.index for x in batch.addressable_shards] == [x.index for x in want.addressable_shards]
    assert np.array_equal(batch, want)


@pytest.mark.parametrize("spec", [PartitionSpec("data"), PartitionSpec(("data", "model")), PartitionSpec(None)])
def test_the_rows_of_a_process_follow_from_the_sharding(spec: Any) -> None:
    where = sharding((2, 2), spec)
    ((batch, mask),) = di.interop.jax.batches(Dataset.range(7).batch(8), where)
    assert batch.sharding.is_equivalent_to(where, 1)
    assert np.asarray(batch)[np.asarray(mask)].tolist() == list(range(7))
    for device, (rows,) in where.addressable_devices_indices_map((8,)).items():
        (shard,) = [each for each in batch.addressable_shards if each.device == device]
        assert np.array_equal(shard.data, np.asarray(batch)[rows])


def test_the_process_is_that_of_jax() -> None:
    """Each process makes arrays for the devices whose `process_index` is its own; here there is one."""
    ((batch, _),) = di.interop.jax.batches(Dataset.range(4).batch(4), sharding())
    assert {shard.device.process_index for shard in batch.addressable_shards} == {jax.process_index()}
    assert jax.process_count() == 1
    assert batch.is_fully_addressable


def test_iterators_speak_grains_names_and_their_states_are_json_for_orbax(tmp_path: Path) -> None:
    dataset = Dataset.range(8).shuffle(8, seed=1).batch(2)
    for made in (dataset, di.interop.jax.batches(dataset, sharding((2,)))):
        iterator = iter(made)
        next(iterator)
        state = iterator.get_state()
        assert isinstance(state, bytes)
        json.loads(state)
        rest = jax.tree.map(np.asarray, list(iterator))
        again = iter(made)
        again.set_state(state)
        assert jax.tree.all(jax.tree.map(np.array_equal, jax.tree.map(np.asarray, list(again)), rest))
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        path = tmp_path / "orbax"
        checkpointer.save(path, args=ocp.args.Composite(input=ocp.args.JsonSave(json.loads(state))))
        found = checkpointer.restore(path, args=ocp.args.Composite(input=ocp.args.JsonRestore()))
    assert found["input"] == json.loads(state)


def test_data_sources_of_grain_both_ways() -> None:
    class Source:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> Any:
            return {"x": np.int64(index)}

    read = Dataset.from_source(Source())
    assert [item["x"] for item in read] == [0, 1, 2, 3, 4]
    grain = pytest.importorskip("grain")
    own = di.interop.grain.source(read.map(lambda item: {"x": item["x"] * 10}))
    assert isinstance(own, grain.sources.RandomAccessDataSource)
    assert (len(own), own[3]["x"], [item["x"] for item in own.__getitems__([4, 0])]) == (5, 30, [40, 0])
    assert [item["x"] for item in grain.MapDataset.source(own)] == [0, 10, 20, 30, 40]


def test_shapes_are_static_so_a_jitted_function_is_compiled_once() -> None:
    traced = []

    @jax.jit
    def total(batch: Any, mask: Any) -> Any:
        traced.append(batch.shape)
        return (batch * mask).sum()

    steps = di.interop.jax.batches(Dataset.range(10).batch(4), sharding())
    assert sum(int(total(batch, mask)) for batch, mask in steps) == sum(range(10))
    assert traced == [(4,)]
