# SPDX-License-Identifier: Apache-2.0
"""The copies of a variable on JAX devices, one for each replica."""

from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from distinput.distribute.tpu.arguments import unshared
from distinput.distribute.tpu.device_values import local_parts
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.distribute.tpu.precision import as_device_array
from distinput.distribute.tpu.trace import current_trace
from distinput.distribute.variables.store import UPDATES

__all__ = ["JaxStore"]


class JaxStore:
    """Copies on the replicas' devices: one array over all of them for compiled programs, or one array for each.

    A compiled program takes the array over all devices and may use its memory for the result, so nobody else ever holds
    it: what `read` returns has memory of its own.

    Args:
      value: the first value of all copies.
      mesh: the devices.
    """

    def __init__(self, value: Any, mesh: ReplicaMesh) -> None:
        self._mesh = mesh
        self._lock = RLock()
        with jax.core.eval_context():
            first = np.array(as_device_array(value, "the initial value of a variable"))[None]
            if len(mesh.local) != mesh.replicas:  # all processes take the value of the first one
                first = np.array(multihost_utils.broadcast_one_to_all(first))
            self._whole: Any = mesh.assemble([first.copy() for _ in mesh.local], first.shape)
        self._parts: list[Any] = [None] * len(mesh.local)
        self.dtype: np.dtype[Any] = np.dtype(self._whole.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first copy."""
        if self._whole is not None:
            whole: tuple[int, ...] = self._whole.shape[1:]
            return whole
        shape: tuple[int, ...] = self._parts[0].shape
        return shape

    @property
    def copies(self) -> int:
        """How many copies this process can reach."""
        return len(self._parts)

    def read(self, copy: int) -> Any:
        """The value of a copy, on its device; while a function is traced, what stands for it there."""
        trace = current_trace(self._mesh)
        if trace is not None:
            return trace.read(self, copy)
        with self._lock, jax.core.eval_context():
            return self._part(copy)

    def update(self, copy: int, kind: str, *args: Any) -> Any:
        """Change a copy; see `Store.update`."""
        trace = current_trace(self._mesh)
        if trace is not None:
            return trace.update(self, copy, kind, args)
        with self._lock, jax.core.eval_context():
            for other in range(self.copies):
                self._part(other)
            device = self._mesh.devices[self._mesh.local[copy], 0]
            placed = [self._placed(arg, device) for arg in args]
            with jax.default_device(device):
                made = jnp.asarray(UPDATES[kind](self._parts[copy], *placed), self.dtype)
            self._parts[copy] = jax.device_put(made, device)
            self._whole = None
            return self._parts[copy]

    def device(self, copy: int) -> str:
        """The name of the device that a copy is on."""
        return self._mesh.labels[copy]

    # ---- for compiled programs

    def stand_in(self) -> Any:
        """An array `[1, ...]` that stands for the replica's copy while a function is traced."""
        with self._lock, jax.core.eval_context():
            return local_parts(self.whole(), self._mesh)[0]

    def whole(self) -> Any:
        """The copies as one array over all devices, `[replicas, ...]`. It must not be kept."""
        with self._lock:
            if self._whole is None:
                with jax.core.eval_context():
                    parts = [part[None] for part in self._parts]
                    self._whole = self._mesh.assemble(parts, parts[0].shape)
            return self._whole

    def replace(self, whole: Any) -> None:
        """Take the array over all devices that a program returned."""
        with self._lock:
            self._whole = whole
            self._parts = [None] * self.copies

    def _part(self, copy: int) -> Any:
        if self._parts[copy] is None:
            # Taking the first axis away copies: a program may soon use the memory of the array over all devices.
            self._parts[copy] = local_parts(self._whole, self._mesh)[copy].reshape(self._whole.shape[1:])
        return self._parts[copy]

    def _placed(self, arg: Any, device: Any) -> Any:
        """An argument of an update on the device of the copy; indices and keys of slices stay as they are."""
        if isinstance(arg, jax.Array):
            return jax.device_put(arg, device)
        if isinstance(arg, np.ndarray | np.generic):
            return jax.device_put(unshared(as_device_array(arg, "a value for a variable")), device)
        return arg

    def __reduce__(self) -> Any:
        raise TypeError(
            "a variable cannot be pickled, since its copies belong to this process; send `v.numpy()`, or save it in a "
            "checkpoint"
        )
