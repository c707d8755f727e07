# SPDX-License-Identifier: Apache-2.0
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from distinput.distribute.tpu.arguments import JaxStore
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.distribute.variables.store import HostStore
from distinput.errors import InvalidArgumentError

MESH = ReplicaMesh.of(jax.devices()[:3])


def test_a_copy_lies_on_each_device() -> None:
    store = JaxStore(np.array([1, 2], np.int32), MESH)
    assert (store.copies, store.shape, store.dtype) == (3, (2,), np.int32)
    assert [store.device(i) for i in range(3)] == ["CPU:0", "CPU:1", "CPU:2"]
    assert [store.read(i).devices() for i in range(3)] == [{device} for device in jax.devices()[:3]]


@pytest.mark.parametrize("kind", ["assign", "assign_add", "assign_sub"])
def test_updates_are_those_of_the_host(kind: str) -> None:
    value, arg = np.array([1.5, 2.0], np.float32), np.array([3.0, -1.0], np.float32)
    store, host = JaxStore(value, MESH), HostStore(value, ["a", "b", "c"])
    for copy in (1, 1, 2):
        np.testing.assert_array_equal(store.update(copy, kind, arg), host.update(copy, kind, arg))
    for copy in range(3):
        np.testing.assert_array_equal(store.read(copy), host.read(copy))


def test_a_value_that_was_read_outlives_writes_and_programs() -> None:
    store = JaxStore(np.zeros(4, np.float32), MESH)
    before = store.read(1)
    view = np.asarray(before)
    whole = jax.jit(lambda x: x + 1, donate_argnums=0)(store.whole())
    store.replace(whole)
    store.update(1, "assign_add", np.full(4, 5, np.float32))
    assert before.tolist() == view.tolist() == [0] * 4
    assert [store.read(i).tolist() for i in range(3)] == [[1] * 4, [6] * 4, [1] * 4]
    np.testing.assert_array_equal(np.asarray(store.whole())[:, 0], [1, 6, 1])


def test_the_first_value_belongs_to_the_store() -> None:
    mine = np.zeros(64, np.float32)
    store = JaxStore(mine, MESH)
    mine[:] = 7
    jax.jit(lambda x: x + 1, donate_argnums=0)(store.whole())
    assert mine.tolist() == [7] * 64
    given = jnp.ones(2)
    store = JaxStore(np.zeros(2, np.float32), MESH)
    store.update(0, "assign", given)
    store.replace(jax.jit(lambda x: x + 1, donate_argnums=0)(store.whole()))
    assert given.tolist() == [1, 1]


@pytest.mark.parametrize(
    "kind, indices, updates",
    [
        ("scatter_add", [3], [1]),
        ("scatter_update", [-1], [1]),
        ("scatter_nd_add", [[3]], [1]),
        ("scatter_div", [0], [0]),
    ],
)
def test_rows_that_cannot_be_written_are_refused_as_on_the_host(kind: str, indices: Any, updates: Any) -> None:
    value = np.array([1, 2, 3], np.int32)
    said = set()
    for store in (JaxStore(value, MESH), HostStore(value, ["a"])):
        with pytest.raises(InvalidArgumentError) as caught:
            store.update(0, kind, np.array(indices), np.array(updates, np.int32))
        said.add(str(caught.value))
        np.testing.assert_array_equal(store.read(0), value)
    assert len(said) == 1
