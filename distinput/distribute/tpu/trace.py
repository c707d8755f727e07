# SPDX-License-Identifier: Apache-2.0
"""The trace of a replica function: which variables it reads and writes, and their values meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp

from distinput.distribute.core.modes import modes
from distinput.distribute.tpu.mesh import REPLICA, ReplicaMesh
from distinput.distribute.tpu.precision import as_device_array
from distinput.distribute.variables.store import UPDATES
from distinput.errors import InvalidArgumentError

__all__ = ["VariableTrace", "broadcast_from", "current_trace"]


class _Current(threading.local):
    trace: "VariableTrace | None" = None


_current = _Current()


def current_trace(mesh: ReplicaMesh) -> "VariableTrace | None":
    """The trace that this thread makes for these devices."""
    trace = _current.trace
    return trace if trace is not None and trace.mesh is mesh else None


class VariableTrace:
    """What happens to variables while a replica function is traced. Nothing of it reaches their stores.

    Args:
      mesh: the devices that the program is for.
      rows: the rows of each replica's part, padding included; None if there is no single number of them.
      data_rows: how many of them are data, as the program will be told.

    The value of a variable is made in the outermost trace, so it may be used in every function that is traced inside:
    the body of a loop, a function to differentiate. A write must be made there too.
    """

    def __init__(self, mesh: ReplicaMesh, rows: int | None, data_rows: Any) -> None:
        self.mesh, self.rows, self.data_rows = mesh, rows, data_rows
        self.stores: list[Any] = []
        self.stand_ins: list[Any] = []
        self.hosts: list[tuple[Any, int]] = []
        self.host_stand_ins: list[Any] = []
        self.written: list[Any] = []
        self.shared: list[Any] = []  # what merge functions returned for all replicas
        self._values: dict[int, Any] = {}
        self._hosted: dict[tuple[int, int], Any] = {}
        with jax.extend.core.take_current_trace() as outermost:
            self._outermost = outermost

    @contextmanager
    def active(self) -> Iterator[None]:
        """Stores of this mesh ask this trace meanwhile."""
        before, _current.trace = _current.trace, self
        try:
            yield
        finally:
            _current.trace = before

    def own(self, store: Any) -> Any:
        """The value of the running replica's copy."""
        found = self._values.get(id(store))
        if found is None:
            stand_in = store.stand_in()
            self.stores.append(store)
            self.stand_ins.append(stand_in)
            with jax.extend.core.set_current_trace(self._outermost):
                found = self._values[id(store)] = jax.lax.squeeze(stand_in, (0,))
        return found

    def read(self, store: Any, copy: int) -> Any:
        """The value of a copy; in replica context and while copies are updated one by one, the replica's own."""
        own = self.own(store)
        mode = modes.stack[-1]
        if mode.replica is not None or mode.copy is not None:
            return own
        with jax.extend.core.set_current_trace(self._outermost):
            return broadcast_from(copy, own)

    def update(self, store: Any, copy: int, kind: str, args: tuple[Any, ...]) -> Any:
        """Change a copy; see `Store.update`."""
        with jax.extend.core.take_current_trace() as here:
            pass
        if here is not self._outermost:
            raise RuntimeError(
                "run: a variable cannot be written inside a function that JAX traces itself, such as the body of "
                "jax.lax.scan or a function given to jax.grad; return the value, and write it outside"
            )
        before = self.own(store)
        value = jnp.asarray(UPDATES[kind](before, *args), store.dtype)
        if value.shape != before.shape:
            raise InvalidArgumentError(
                f"run: a compiled program cannot change the shape of a variable, got {list(value.shape)} for "
                f"{list(before.shape)}; write it outside of run, or make the strategy with compile=False"
            )
        if modes.stack[-1].replica is None:
            value = jnp.where(jax.lax.axis_index(REPLICA) == copy, value, before)
        self._values[id(store)] = value
        if not any(store is other for other in self.written):
            self.written.append(store)
        return value

    def host(self, store: Any, copy: int) -> Any:
        """The value of a variable in host memory: an input of the program, since it may change between runs."""
        key = id(store), copy
        found = self._hosted.get(key)
        if found is None:
            with jax.core.eval_context():
                stand_in = jnp.asarray(as_device_array(store.read(copy), "a variable"))[None]
            self.hosts.append((store, copy))
            self.host_stand_ins.append(stand_in)
            with jax.extend.core.set_current_trace(self._outermost):
                found = self._hosted[key] = jax.lax.squeeze(stand_in, (0,))
        return found

    def final(self) -> list[Any]:
        """The values of the variables that were written, in the order of `written`."""
        return [self._values[id(store)] for store in self.written]


def broadcast_from(replica: int, value: Any) -> Any:
    """One replica's value, on all replicas."""
    if value.dtype == bool:
        return broadcast_from(replica, value.astype(jnp.int8)).astype(bool)
    chosen = jnp.where(jax.lax.axis_index(REPLICA) == replica, value, jnp.zeros_like(value))
    return jax.lax.psum(chosen, REPLICA)
