# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX between processes, of which there is one here; `tests/engines` has several."""

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
from distinput.distribute.collectives.channel import ChannelLost  # noqa: E402 - needs JAX
from distinput.distribute.engines.jax_devices import JaxDeviceOperations  # noqa: E402 - likewise


@pytest.fixture
def operations() -> Any:
    made = JaxDeviceOperations(0, "cpu")
    yield made
    made.close()


def value(handle: Any) -> Any:
    assert handle.wait(60)
    return handle.value()


def test_one_process_gathers_and_adds_its_own(operations: JaxDeviceOperations) -> None:
    assert operations.kind == "jax cpu"
    flat = jax.device_put(np.arange(5, dtype=np.float32), jax.devices()[3])
    (part,) = value(operations.all_gather(flat, [5]))
    total = value(operations.all_reduce(flat))
    for made in (part, total):
        assert made.tolist() == [0, 1, 2, 3, 4]
        assert made.devices() == {jax.devices()[0]}
    assert [len(part) for part in value(operations.all_gather(flat[:0], [0]))] == [0]


def test_64_bits_of_the_calling_thread_are_kept(operations: JaxDeviceOperations) -> None:
    with jax.enable_x64(True):
        flat = jax.device_put(np.array([2.0**-40 + 1]))
        assert value(operations.all_reduce(flat)).tolist() == [2.0**-40 + 1]
        assert value(operations.all_gather(flat, [1]))[0].dtype == np.float64


def test_what_fails_in_the_thread_is_a_lost_channel(operations: JaxDeviceOperations) -> None:
    flat = jax.device_put(np.zeros(2, np.float32))
    flat.delete()
    with pytest.raises(ChannelLost, match="deleted"):
        operations.all_reduce(flat).wait(60)


def test_bools_are_not_added(operations: JaxDeviceOperations) -> None:
    assert [operations.reducible(name) for name in ("bool", "float32", "uint64")] == [False, True, True]
