# SPDX-License-Identifier: Apache-2.0
"""`Reducer`: adds and joins the values of all replicas; `LocalReducer` does it for the replicas of one process.

Values that are on devices stay there: the library of their arrays adds them, and the result is such an array on the
device of the first replica. Values on the host, such as text, stay on the host.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any, Protocol

import numpy as np

from distinput.distribute.core.options import CommunicationOptions
from distinput.distribute.core.reduction import (
    ReduceOp,
    all_integers,
    exact_rows,
    exact_total,
    gather_parts,
    reduce_parts,
    reduce_rows,
)
from distinput.distribute.devices.arrays import ArrayOps, arrays_of

__all__ = ["LocalReducer", "ReplicaReducer"]


class ReplicaReducer(Protocol):
    """Computes `reduce`, `gather` and their counterparts in replica context. A strategy has one.

    There are four: `LocalReducer` for one process, `OrderedReducer` by a `CrossDeviceOps`, `WorkersReducer` for several
    workers, and `DeviceReducer` for arrays over all devices of JAX.
    """

    arrays: ArrayOps | None
    """The library whose arrays the replicas compute with; None for NumPy."""

    def on_host(self, parts: Sequence[Any]) -> list[Any]:
        """The values as NumPy has them."""
        ...

    def own_copy(self, value: Any, local: int) -> Any:
        """A copy for a replica of this process, on its device, of a result that all replicas share.

        Args:
          value: what `reduce` or `gather` returned.
          local: the number of the replica among those of this process.
        """
        ...

    def reduce(
        self,
        op: ReduceOp,
        parts: Sequence[Any],
        axis: Any,
        *,
        deterministic: bool = False,
        present: Sequence[bool] | None = None,
        call: str = "reduce",
        name: str = "",
    ) -> Any:
        """The sum or mean over all replicas; see `Strategy.reduce`.

        Args:
          op: SUM or MEAN.
          parts: the values of this process's replicas.
          axis: None, an int or a tuple of ints.
          deterministic: round exact sums once, so that the result does not depend on how the rows were divided.
          present: which of `parts` are data, None for all of them; the others are left out.
          call: the method that the user called; compared between workers.
          name: the name that the user gave to the call.
        """
        ...

    def reduce_each(
        self,
        op: ReduceOp,
        given: Sequence[tuple[Sequence[Any], str]],
        *,
        name: str = "",
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """`reduce` with `axis=None` of several values, each with its `call`; see `ReplicaContext.all_reduce`."""
        ...

    def gather(
        self,
        parts: Sequence[Any],
        axis: Any,
        *,
        present: Sequence[bool] | None = None,
        call: str = "gather",
        name: str = "",
    ) -> Any:
        """The values of all replicas, one after the other along `axis`; see `Strategy.gather`."""
        ...

    def first(self, parts: Sequence[Any], *, call: str, name: str = "") -> Any:
        """The value of replica 0, of worker 0 if there are several, as an array."""
        ...


class LocalReducer:
    """The `Reducer` of one process.

    Args:
      devices: those of this process's replicas; None if all values are NumPy's.
    """

    def __init__(self, devices: Any = None) -> None:
        self._devices = devices
        self.arrays = arrays_of(devices)

    def _library(self, parts: Sequence[Any]) -> ArrayOps | None:
        """The library of values that are on devices; None for values on the host."""
        ops = self.arrays
        return ops if ops is not None and any(map(ops.owns, parts)) else None

    def on_host(self, parts: Sequence[Any]) -> list[Any]:
        """The values as NumPy has them."""
        ops = self.arrays
        return [part if ops is None or not ops.owns(part) else ops.to_host(part) for part in parts]

    def own_copy(self, value: Any, local: int) -> Any:
        """A copy for a replica of this process; see `Reducer.own_copy`."""
        ops, devices = self.arrays, self._devices
        if ops is not None and ops.owns(value):
            return ops.copy(value, devices.devices[local])
        return devices.put(np.array(value)[()], local, owned=True)

    def reduce(
        self,
        op: ReduceOp,
        parts: Sequence[Any],
        axis: Any,
        *,
        deterministic: bool = False,
        present: Sequence[bool] | None = None,
        call: str = "reduce",
        name: str = "",
    ) -> Any:
        """The sum or mean over all replicas; see `Reducer.reduce`."""
        kept = parts if present is None else tuple(compress(parts, present))
        if self.arrays is not None and (ops := self._library(kept)) is not None:
            return self._on_devices(ops, op, kept, axis, deterministic)
        if deterministic and not all_integers(kept):  # sums of integers are exact in any order
            return exact_total(op, *exact_rows(op, kept, axis))
        return reduce_parts(op, kept) if axis is None else reduce_rows(op, kept, axis)

    def reduce_each(
        self,
        op: ReduceOp,
        given: Sequence[tuple[Sequence[Any], str]],
        *,
        name: str = "",
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """`reduce` of several values; see `Reducer.reduce_each`."""
        return [self.reduce(op, parts, None, call=call, name=name) for parts, call in given]

    def gather(
        self,
        parts: Sequence[Any],
        axis: Any,
        *,
        present: Sequence[bool] | None = None,
        call: str = "gather",
        name: str = "",
    ) -> Any:
        """The values of all replicas, one after the other; see `Reducer.gather`."""
        there = parts if present is None else tuple(compress(parts, present))
        ops = None if self.arrays is None else self._library(there)
        if ops is None:
            return gather_parts(there, axis)
        return ops.move(gather_parts(there, axis, ops), self._devices.devices[0])

    def first(self, parts: Sequence[Any], *, call: str, name: str = "") -> Any:
        """The value of replica 0; see `Reducer.first`."""
        return parts[0] if self._library(parts[:1]) is not None else np.asarray(parts[0])

    def _on_devices(self, ops: ArrayOps, op: ReduceOp, parts: Sequence[Any], axis: Any, deterministic: bool) -> Any:
        if deterministic:
            return self._devices.put(self.reduce(op, self.on_host(parts), axis, deterministic=True), 0, owned=True)
        total = reduce_parts(op, parts, ops) if axis is None else reduce_rows(op, parts, axis, ops)
        return ops.move(total, self._devices.devices[0])
