# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX between workers where they are, by compiled programs over one device of each process.

Such a program blocks the thread that starts it until the other processes start it too, and has no timeout; so a background
thread starts it, and the caller waits for that thread as long as it likes. All processes give arrays of one size: shorter ones
are filled up on their device.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.background import BackgroundCall, BackgroundThread

_AXIS = "workers"


class JaxDeviceOperations:
    """Operations on arrays of JAX; see `DeviceOperations`.

    Args:
      rank: this process.
      platform: the kind of device, such as "cpu"; the first one of each process takes part.
    """

    def __init__(self, rank: int, platform: str) -> None:
        self._rank = rank
        first: dict[int, Any] = {}
        for device in sorted(jax.devices(platform), key=lambda one: one.id):
            first.setdefault(device.process_index, device)
        self._mesh = Mesh([first[process] for process in sorted(first)], (_AXIS,))
        self._device = first[rank]
        self._thread = BackgroundThread("distinput-devices")
        self.kind = f"jax {platform}"

    def reducible(self, dtype: str) -> bool:
        """True for all numbers."""
        return dtype != "bool"

    def all_gather(self, flat: Any, sizes: Sequence[int]) -> BackgroundCall:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        return self._submit(self._gather, flat, tuple(sizes))

    def all_reduce(self, flat: Any) -> BackgroundCall:
        """[n] of every worker -> [n]."""
        return self._submit(self._sum, flat)

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    def _submit(self, compute: Callable[..., Any], *args: Any) -> BackgroundCall:
        # What JAX does with 64 bits is a setting of the calling thread.
        return self._thread.submit(_guarded, compute, jax.config.jax_enable_x64, *args)

    def _gather(self, flat: Any, sizes: tuple[int, ...]) -> list[Any]:
        most = max(sizes)
        if not most:
            return [flat[:0]] * len(sizes)
        if len(set(sizes)) > 1:
            most = 1 << (most - 1).bit_length()  # so that few sizes are compiled
            flat = _filled(flat, most)
        rows = _gathering(self._mesh)(self._whole(flat)).addressable_data(0)
        return [rows[rank, :n] for rank, n in enumerate(sizes)]

    def _sum(self, flat: Any) -> Any:
        return _adding(self._mesh)(self._whole(flat)).addressable_data(0)

    def _whole(self, flat: Any) -> Any:
        """[n] of every process -> [processes, n], a row on each of their devices."""
        row = jax.device_put(flat, self._device)[None]
        spread = NamedSharding(self._mesh, PartitionSpec(_AXIS))
        return jax.make_array_from_single_device_arrays((self._mesh.size, *flat.shape), spread, [row])


def _guarded(compute: Callable[..., Any], wide: bool, *args: Any) -> Any:
    try:
        with jax.enable_x64(wide):
            return jax.block_until_ready(compute(*args))
    except Exception as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise ChannelLost(text) from error


@partial(jax.jit, static_argnums=1)
def _filled(flat: Any, size: int) -> Any:
    return jnp.zeros((size,), flat.dtype).at[: flat.shape[0]].set(flat)


@lru_cache(maxsize=16)
def _gathering(mesh: Mesh) -> Any:
    return jax.jit(lambda whole: whole, out_shardings=NamedSharding(mesh, PartitionSpec()))


@lru_cache(maxsize=16)
def _adding(mesh: Mesh) -> Any:
    return jax.jit(lambda whole: whole.sum(0, dtype=whole.dtype), out_shardings=NamedSharding(mesh, PartitionSpec()))
