# SPDX-License-Identifier: Apache-2.0
"""Pieces of batches as parts of global arrays."""

from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from distinput.interop.jax.batches import Placement, pieces_of, put_pieces, row_sharding
from distinput.values.nest import LEAF
from distinput.values.spec import Spec, TensorSpec


def over(*spec: Any, axes: tuple[int, ...] = (8,)) -> NamedSharding:
    return NamedSharding(jax.make_mesh(axes, ("data", "model")[: len(axes)]), PartitionSpec(*spec))


def at(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def displaced(shape: tuple[int, ...], by: int) -> np.ndarray[Any, Any]:
    """An array that begins so many bytes after a multiple of 64."""
    size = int(np.prod(shape)) * 4
    memory = np.zeros(size + 128, np.uint8)
    start = -at(memory) % 64 + by
    return memory[start : start + size].view(np.float32).reshape(shape)


@pytest.mark.parametrize(
    "sharding, found",
    [
        (over("data", "model", axes=(4, 2)), ("data",)),
        (over(("data", "model"), axes=(4, 2)), (("data", "model"),)),
        (over(None, "model", axes=(4, 2)), (None,)),
        (over(), ()),
    ],
)
def test_rows_alone_are_divided_as_rows_are(sharding: NamedSharding, found: tuple[Any, ...]) -> None:
    assert tuple(row_sharding(sharding).spec) == found


def test_other_shardings_divide_rows_as_they_say() -> None:
    one = SingleDeviceSharding(jax.devices()[1])
    assert row_sharding(one) is one


@pytest.mark.parametrize(
    "sharding", [over("data"), over("data", axes=(2, 4)), over("model", "data", axes=(4, 2)), over()], ids=str
)
@pytest.mark.parametrize("count", [1, 2, 8])
def test_pieces_become_the_array_that_they_are_pieces_of(sharding: Any, count: int) -> None:
    whole = np.arange(16 * 4, dtype=np.int32).reshape(16, 4)
    size = 16 // count
    parts = [whole[i * size : i * size + size] for i in range(count)]
    mask = [part[:, 0] % 8 == 0 for part in parts]
    starts = [i * size for i in range(count)]
    made, rows = put_pieces("x", [parts, mask], [sharding, row_sharding(sharding)], size, starts, 16)
    assert made.sharding == sharding
    assert np.array_equal(made, whole)
    assert np.array_equal(rows, whole[:, 0] % 8 == 0)


def placement(rows: int) -> Placement:
    spec = Spec(LEAF, (TensorSpec((rows, 256), "float32"),))
    return Placement("x", spec, [over("data")], pieces_of([(0, rows)], rows), masked=False)


def pointers(array: Any) -> list[int]:
    return [shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards]


def test_aligned_memory_is_used_where_it_is() -> None:
    array = displaced((64, 256), 0)
    assert min(pointers(placement(64)(array))) == at(array)


@pytest.mark.parametrize("rows", [8, 64, 4096])
def test_other_memory_is_copied_once(rows: int) -> None:
    array = displaced((rows, 256), 16)
    array[:] = 3
    made = placement(rows)(array)
    first, *others = sorted(pointers(made))
    assert [pointer - first for pointer in others] == [rows // 8 * 1024 * i for i in range(1, 8)], "one aligned buffer"
    array[:] = 4
    assert (np.asarray(made) == 3).all()


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize(
    "spec",
    [("data", "context"), (("data", "model"), "context"), ("data", ("context", "model")), (None, "context")],
    ids=str,
)
def test_rows_and_sequences_are_divided_along_the_axes_of_one_mesh(spec: tuple[Any, ...], size: int) -> None:
    """Each device has its block of rows and columns, also where a process has them in pieces."""
    mesh = jax.make_mesh((2, 2, 2), ("data", "model", "context"))
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    whole = np.arange(16 * 8, dtype=np.int32).reshape(16, 8)
    parts = [whole[first : first + size] for first in range(0, 16, size)]
    (made,) = put_pieces("x", [parts], [sharding], size, range(0, 16, size), 16)
    assert made.sharding == sharding
    for shard in made.addressable_shards:
        assert np.array_equal(shard.data, whole[shard.index])
    assert np.array_equal(made, whole)


@pytest.mark.parametrize("spec", [(), ("data",), (None, "model"), ("data", "model")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_arrays_are_what_device_put_makes(spec: tuple[Any, ...], dtype: Any) -> None:
    sharding, batch = over(*spec, axes=(4, 2)), np.arange(64).reshape(8, 8).astype(dtype)
    made = Placement("test", Spec.of(TensorSpec([8, 8], dtype)), [sharding], pieces_of([(0, 8)], 8), masked=False)(
        batch
    )
    wanted = jax.device_put(batch, sharding)
    assert (made.aval, made.sharding, made.committed) == (wanted.aval, sharding, True)
    for mine, theirs in zip(made.addressable_shards, wanted.addressable_shards, strict=True):
        assert mine.device == theirs.device
        np.testing.assert_array_equal(mine.data, theirs.data)
