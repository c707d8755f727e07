# SPDX-License-Identifier: Apache-2.0
"""The law of memory that is used again: threads keep it, and devices that forget whom memory belongs to are caught."""

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices.threads import ThreadDevices
from distinput.testing import check_devices, devices
from distinput.testing.devices import LAWS, check_recycled_buffers
from distinput.values import buffers
from distinput.values.buffers import FEWEST_BYTES, counts_are_exact

pytestmark = pytest.mark.skipif(not counts_are_exact(), reason="buffers are used again by reference counts")


class RefersToAnything(ThreadDevices):
    """As a device whose memory holds what NumPy warns of: the largest floats, and those that are no numbers."""

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        there = super().put(value, device, owned=owned)
        if is_large(value) and value.dtype == np.float32:
            there = np.full_like(value, np.finfo(np.float32).max)
            there.view(np.uint32)[::2] = 0x7F800001  # a NaN that signals
        return there


def test_memory_that_holds_anything_is_wrong_and_warns_of_nothing() -> None:
    with pytest.raises(AssertionError, match="what was put is wrong, because its memory was used again"):
        check_recycled_buffers(RefersToAnything, 2)


def test_memory_is_used_again_while_the_law_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[buffers.Buffers] = []

    def pool() -> buffers.Buffers:
        pools.append(buffers.Buffers())
        return pools[-1]

    monkeypatch.setattr(devices, "Buffers", pool)
    check_recycled_buffers(ThreadDevices, 2)
    assert len(pools) == 3
    assert all(pool.nbytes <= 4 * 2 * FEWEST_BYTES for pool in pools)  # of 16 batches, 4 of which wait at a time


def unreferenced(array: Any) -> Any:
    """The memory of an array, without a reference to whom it belongs to."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.__array_interface__["data"][0])
    return np.ndarray(array.shape, array.dtype, memory)


def is_large(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes >= FEWEST_BYTES and value.flags.c_contiguous


class RefersToNothing(ThreadDevices):
    """As a device that was told where the memory is, and nothing else."""

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        return (
            unreferenced(value)
            if owned and is_large(value) and value.dtype == np.float32
            else super().put(value, device, owned=owned)
        )


class CopiesLater(ThreadDevices):
    """As a copy to a device that nobody waits for, from memory that nothing refers to."""

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        def call(*args: Any) -> Any:
            if not args or not is_large(args[0]):
                return function(*args)
            memory = unreferenced(args[0])
            return SimpleNamespace(later=lambda: function(memory))

        return super().run(call, per_device_args)

    def get(self, value: Any) -> Any:
        return value.later() if isinstance(value, SimpleNamespace) else value


class OneStagingBuffer(ThreadDevices):
    """As pinned memory that is filled again before it was copied to the device."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels)
        self._staging = [np.empty(1 << 20, np.uint8) for _ in labels]

    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        return [PerReplica([self._staged(part, i) for i, part in enumerate(parts)]) for parts in leaves]

    def _staged(self, part: Any, device: int) -> Any:
        if not is_large(part) or part.dtype != np.float32:
            return part
        staged = np.ndarray(part.shape, part.dtype, self._staging[device])
        staged[...] = part
        return staged


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            RefersToNothing,
            "what (was put|is computed of it) is wrong, because its memory was used again for a later batch",
        ),
        (CopiesLater, "what is computed of it is wrong"),
        (OneStagingBuffer, "what was put is wrong"),
    ],
)
def test_devices_that_read_memory_of_others_are_caught(wrong: type[ThreadDevices], says: str) -> None:
    others = set(LAWS) - {"recycled buffers"}
    with pytest.raises(AssertionError, match=rf"^recycled buffers: batch \d+, device \d: {says}"):
        check_devices(wrong, counts=[2], leave_out=others)
