# SPDX-License-Identifier: Apache-2.0
"""The recipes for MaxText and Levanter, against what the loops of both call of an input.

The releases of neither go beside this JAX on Python 3.11, so the loops here make the calls that their public code makes:
those of MaxText's `DataLoader` and of its checkpoints with Grain's iterators, and those of Levanter's `training_steps`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import distinput as di

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("data", "fsdp", "tensor"))
ROWS = NamedSharding(MESH, PartitionSpec(("data", "fsdp")))
LENGTH = 6


def tokens(count: int) -> Any:
    """Rows of tokens: row i begins with i."""
    rows = np.arange(count, dtype=np.int32)[:, None] + np.arange(LENGTH + 1, dtype=np.int32) * 1000
    return di.data.Dataset.from_tensor_slices(rows).global_shuffle(seed=1)


# ---- MaxText


def for_maxtext(row: Any) -> Any:
    position = np.arange(LENGTH, dtype=np.int32)
    made = {}
    for name, values in (("inputs", row[:-1]), ("targets", row[1:])):
        made |= {name: values, f"{name}_position": position, f"{name}_segmentation": np.ones_like(position)}
    return made


class MaxTextInput:
    """An iterator of batches; `local_iterator` is what is saved."""

    def __init__(self, feed: Any) -> None:
        self.feed, self.local_iterator = feed, iter(feed)

    def __iter__(self) -> "MaxTextInput":
        return self

    def __next__(self) -> Any:
        return next(self.local_iterator)

    def reset(self) -> None:
        self.local_iterator = iter(self.feed)


def maxtext_input(count: int = 44) -> MaxTextInput:
    dataset = tokens(count).map(for_maxtext).batch(8)
    return MaxTextInput(di.interop.jax.batches(dataset, ROWS, tail="drop"))


def test_maxtext_takes_batches_over_a_mesh_of_several_axes() -> None:
    own = NamedSharding(MESH, PartitionSpec(("data", "fsdp"), "tensor"))  # of activations
    compiled = []

    @jax.jit
    def step(batch: Any) -> Any:
        compiled.append(batch["inputs"].shape)
        return jnp.where(batch["targets_segmentation"] != 0, batch["targets"] - batch["inputs"], 0).sum()

    seen: list[int] = []
    for batch in maxtext_input():
        assert sorted(batch) == sorted(for_maxtext(np.zeros(LENGTH + 1, np.int32)))
        for array in batch.values():
            assert (array.shape, array.dtype) == ((8, LENGTH), np.int32)
            assert array.sharding.is_equivalent_to(ROWS, 2)
        moved = jax.device_put(batch, own)
        assert int(step(moved)) == 8 * LENGTH * 1000
        seen += moved["inputs"][:, 0].tolist()
    assert len(set(seen)) == len(seen) == 40
    assert compiled == [(8, LENGTH)]


def test_maxtext_saves_the_position_with_its_checkpoint(tmp_path: Path) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    grain = pytest.importorskip("grain")
    expected = [batch["inputs"].tolist() for batch in maxtext_input()]
    state = {"w": jax.device_put(jnp.arange(8.0), ROWS)}
    data = maxtext_input()
    for _ in range(2):
        next(data)
    with ocp.CheckpointManager(tmp_path / "checkpoints", item_names=("items", "iter")) as manager:
        saved = {"items": ocp.args.PyTreeSave(state), "iter": grain.checkpoint.CheckpointSave(data.local_iterator)}
        manager.save(2, args=ocp.args.Composite(**saved))
        manager.wait_until_finished()
        assert next(data)["inputs"].tolist() == expected[2]
        again = maxtext_input()
        wanted = {
            "items": ocp.args.PyTreeRestore(state, ocp.checkpoint_utils.construct_restore_args(state)),
            "iter": grain.checkpoint.CheckpointRestore(again.local_iterator),
        }
        found = manager.restore(2, args=ocp.args.Composite(**wanted))
    assert found["items"]["w"].tolist() == list(range(8))
    assert [batch["inputs"].tolist() for batch in again] == expected[2:]
    again.reset()
    assert len(list(again)) == 5


# ---- Levanter


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Example:
    """What a model of Levanter takes, with plain arrays."""

    tokens: Any
    loss_weight: Any


def for_levanter(row: Any) -> Example:
    weight = np.ones(LENGTH + 1, np.float32)
    weight[-1] = 0  # nothing comes after it
    return Example(row, weight)


class LevanterLoader:
    """Batches from a step on."""

    def __init__(self, dataset: Any, sharding: Any) -> None:
        self.dataset, self.sharding = dataset, sharding

    def __iter__(self) -> Iterator[Any]:
        return self.iter_from_step(None)

    def iter_from_step(self, step: Any) -> Iterator[Any]:
        return iter(di.interop.jax.batches(self.dataset.skip(int(step or 0)), self.sharding, tail="drop"))


def levanter_loader() -> LevanterLoader:
    return LevanterLoader(tokens(20).map(for_levanter).repeat().batch(8), ROWS)


def training_steps(first: int, last: int, batches: Iterator[Any], step_function: Any) -> list[Any]:
    """The calls of Levanter's loop."""
    found = []
    for _ in range(first, last):
        example = next(batches)
        assert isinstance(example, Example)
        found.append((example.tokens[:, 0].tolist(), float(step_function(example))))
    return found


def test_levanter_trains_and_goes_on_from_a_step() -> None:
    compiled = []

    @jax.jit
    def loss(example: Example) -> Any:
        compiled.append(example.tokens.shape)
        return (example.tokens * 0 + example.loss_weight).sum()

    whole = training_steps(0, 7, iter(levanter_loader()), loss)
    assert [value for _, value in whole] == [8.0 * LENGTH] * 7
    rows = [row for first, _ in whole for row in first]
    assert [sorted(rows[epoch : epoch + 20]) for epoch in (0, 20)] == [list(range(20))] * 2
    for step in (0, 1, 3, np.int32(5), jnp.asarray(6)):
        rest = training_steps(int(step), 7, levanter_loader().iter_from_step(step), loss)
        assert rest == whole[int(step) :]
    assert compiled == [(8, LENGTH + 1)]
    example = next(iter(levanter_loader()))
    assert example.tokens.sharding.is_equivalent_to(ROWS, 2)
