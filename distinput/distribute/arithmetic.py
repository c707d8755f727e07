# SPDX-License-Identifier: Apache-2.0
"""Reductions and concatenations over all replicas, whether of one process or of several workers.

Every worker checks the same exchanged facts, so all workers raise the same error. Small values are gathered and added
in replica order on every worker; large ones are added by the engine's own all-reduce.

Values that are on devices stay there: the library of their arrays adds them, and the result is such an array on the
device of the first replica. Values on the host, such as text, stay on the host.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from distinput.distribute.communication import CommunicationOptions
from distinput.distribute.device_exchange import DeviceExchange
from distinput.distribute.devices.arrays import NUMPY, ArrayOps, arrays_of
from distinput.distribute.exact_sum import Bands
from distinput.distribute.peers import CallDescription, Peers
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import (
    all_integers,
    check_numbers,
    exact_rows,
    exact_total,
    gather_parts,
    reduce_parts,
    reduce_rows,
    row_sums,
    total_of_rows,
    wide_dtype,
)
from distinput.errors import InvalidArgumentError

__all__ = ["Arithmetic"]

_LARGE = 64 * 1024
"""Arrays of at least this many bytes are added by the engine, not gathered and added in replica order."""

_UNKNOWN = object()


class Arithmetic:
    """Computes `reduce`, `gather` and their counterparts in replica context.

    Args:
      peers: all workers; None for a strategy of one process.
      devices: those of this process's replicas; None if all values are NumPy's.
    """

    def __init__(self, peers: Peers | None = None, devices: Any = None) -> None:
        self._peers = peers
        self._devices = devices
        self.arrays = arrays_of(devices)
        """The library whose arrays the replicas compute with; None for NumPy."""
        self._moves: Any = _UNKNOWN

    def _library(self, parts: Sequence[Any]) -> ArrayOps | None:
        """The library of values that are on devices; None for values on the host."""
        ops = self.arrays
        return ops if ops is not None and any(map(ops.owns, parts)) else None

    def _exchange(self) -> DeviceExchange | None:
        """Exchanges values on devices with the other workers where they are; None if the engine cannot."""
        if self._moves is _UNKNOWN:
            ops, peers, device = self.arrays, self._peers, self._devices.devices[0]
            assert ops is not None
            assert peers is not None
            calls = peers.group.on_devices(ops, device)
            self._moves = None if calls is None else DeviceExchange(peers, calls, ops, device, _LARGE)
        moves: DeviceExchange | None = self._moves
        return moves

    def _described(self, text: str, name: str, parts: Sequence[Any], where: str = "") -> CallDescription:
        """A call as the workers compare it, with the dtypes and shapes of the replicas' values for messages."""
        ops = self._library(parts) or NUMPY

        def given() -> str:
            arrays = [ops.array(part) for part in parts]
            return ", ".join(dict.fromkeys(f"{ops.name(array.dtype)}{list(array.shape)}" for array in arrays))

        return CallDescription(f"{text}, on {where}" if where else text, name, given)

    def on_host(self, parts: Sequence[Any]) -> list[Any]:
        """The values as NumPy has them."""
        ops = self.arrays
        return [part if ops is None or not ops.owns(part) else ops.to_host(part) for part in parts]

    def own_copy(self, value: Any, local: int) -> Any:
        """A copy for a replica of this process, on its device, of a result that all replicas share.

        Args:
          value: what `reduce` or `gather` returned.
          local: the number of the replica among those of this process.
        """
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
        peers = self._peers
        if peers is None:
            kept = parts if present is None else tuple(compress(parts, present))
            if self.arrays is not None and (ops := self._library(kept)) is not None:
                return self._on_devices(ops, op, kept, axis, deterministic)
            if deterministic and not all_integers(kept):  # sums of integers are exact in any order
                return exact_total(op, *exact_rows(op, kept, axis))
            return reduce_parts(op, kept) if axis is None else reduce_rows(op, kept, axis)
        there = tuple([True] * len(parts) if present is None else present)
        how = ", deterministic" if deterministic else ""
        text = f"{call} {op.name}, axis={axis}{how}"
        if self.arrays is not None and self._library(parts) is not None:
            if not deterministic and (exchange := self._exchange()) is not None:
                return exchange.reduce(self._described(text, name, parts, exchange.kind), op, parts, axis, there)
            given = self.on_host(parts)
            made = self.reduce(op, given, axis, deterministic=deterministic, present=present, call=call, name=name)
            return self._devices.put(made, 0, owned=True)
        description = self._described(text, name, parts)
        if deterministic:
            return self._exact(peers, description, op, parts, axis, there)
        if axis is None:
            return self._whole(peers, description, op, list(compress(parts, there)))
        return self._rows(peers, description, op, parts, axis, there)

    def reduce_each(
        self,
        op: ReduceOp,
        given: Sequence[tuple[Sequence[Any], str]],
        *,
        name: str = "",
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """`reduce` with `axis=None` of several values, each with its `call`; see `ReplicaContext.all_reduce`."""
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
        """The values of all replicas, one after the other along `axis`; see `Strategy.gather`."""
        there = parts if present is None else tuple(compress(parts, present))
        ops = None if self.arrays is None else self._library(there)
        if self._peers is None:
            if ops is None:
                return gather_parts(there, axis)
            return ops.move(gather_parts(there, axis, ops), self._devices.devices[0])
        if ops is not None:
            if (exchange := self._exchange()) is not None:
                return exchange.gather(self._described(f"{call}, axis={axis}", name, parts, exchange.kind), there, axis)
            made = self.gather(self.on_host(parts), axis, present=present, call=call, name=name)
            return self._devices.put(made, 0, owned=True)
        description = self._described(f"{call}, axis={axis}", name, parts)
        return gather_parts(self._peers.everywhere(description, there), axis)

    def first(self, parts: Sequence[Any], *, call: str, name: str = "") -> Any:
        """The value of replica 0, of worker 0 if there are several, as an array."""
        peers = self._peers
        if peers is None:
            return parts[0] if self._library(parts[:1]) is not None else np.asarray(parts[0])
        text = f"{call} of replica 0"
        if self._library(parts[:1]) is not None:
            if (exchange := self._exchange()) is not None:
                return exchange.first(self._described(text, name, parts[:1], exchange.kind), parts[0])
            return self._devices.put(self.first(self.on_host(parts[:1]), call=call, name=name), 0, owned=True)
        description = self._described(text, name, parts[:1])
        found = peers.exchange(description, lambda: (None, [] if peers.rank else [np.asarray(parts[0])]))
        return found[0][1][0]

    def _on_devices(self, ops: ArrayOps, op: ReduceOp, parts: Sequence[Any], axis: Any, deterministic: bool) -> Any:
        if deterministic:
            return self._devices.put(self.reduce(op, self.on_host(parts), axis, deterministic=True), 0, owned=True)
        total = reduce_parts(op, parts, ops) if axis is None else reduce_rows(op, parts, axis, ops)
        return ops.move(total, self._devices.devices[0])

    def _rows(
        self,
        peers: Peers,
        description: CallDescription,
        op: ReduceOp,
        parts: Sequence[Any],
        axis: Any,
        there: Sequence[bool],
    ) -> Any:
        def local() -> tuple[Any, list[Any]]:
            sums, counts, dtype = row_sums(op, parts, axis)
            return {"counts": list(compress(counts, there)), "dtype": dtype.str}, list(compress(sums, there))

        found = peers.exchange(description, local)
        dtype = _dtype_of([note for note, _ in found])
        sums = [array for _, arrays in found for array in arrays]
        counts = [count for note, _ in found for count in note["counts"]]
        return total_of_rows(op, sums, counts, dtype, axis)

    def _whole(self, peers: Peers, description: CallDescription, op: ReduceOp, kept: Sequence[Any]) -> Any:
        total: Any = None

        def local() -> tuple[Any, Sequence[Any]]:
            nonlocal total
            arrays = [np.asarray(part) for part in kept]
            if not arrays or arrays[0].nbytes < _LARGE:
                return None, arrays
            check_numbers(arrays, op)
            wide = wide_dtype(arrays[0].dtype) if op is ReduceOp.MEAN else arrays[0].dtype
            total = np.asarray(reduce_parts(ReduceOp.SUM, [array.astype(wide, copy=False) for array in arrays]))
            return {"dtype": arrays[0].dtype.str, "shape": list(total.shape), "count": len(arrays)}, []

        found = peers.exchange(description, local)
        large = [note for note, _ in found if note is not None]
        if not large:
            return reduce_parts(op, [array for _, arrays in found for array in arrays])
        for worker, (note, arrays) in enumerate(found):
            shape = list(arrays[0].shape) if arrays else (note or large[0])["shape"]
            code = arrays[0].dtype.str if arrays else (note or large[0])["dtype"]
            if (code, shape) != (large[0]["dtype"], large[0]["shape"]):
                first = next(other for other, (note, _) in enumerate(found) if note is not None)
                raise InvalidArgumentError(
                    "reduce: with axis=None all values must have the same size and shape, got "
                    f"{large[0]['shape']} of {large[0]['dtype']} on worker {first} and {shape} of {code} on worker "
                    f"{worker}; reduce over the rows with axis=0"
                )
        dtype = np.dtype(large[0]["dtype"])
        if total is None:  # this worker has no data
            total = np.zeros(large[0]["shape"], wide_dtype(dtype) if op is ReduceOp.MEAN else dtype)
        summed = peers.group.all_reduce(total, "sum", **peers.said(description))
        if op is ReduceOp.SUM:
            return summed[()]
        mean = np.true_divide(summed, sum([note["count"] for note in large]))
        return (mean if dtype.kind in "iu" else mean.astype(dtype, copy=False))[()]

    def _exact(
        self,
        peers: Peers,
        description: CallDescription,
        op: ReduceOp,
        parts: Sequence[Any],
        axis: Any,
        there: Sequence[bool],
    ) -> Any:
        def local() -> tuple[Any, list[Any]]:
            if all_integers(parts):
                return _integers(op, parts, axis, there)
            sums, counts, dtype = exact_rows(op, parts, axis)
            sums, counts = list(compress(sums, there)), list(compress(counts, there))
            special = [part.special is not None for part in sums]
            note = {"counts": counts, "dtype": dtype.str, "first": [part.first for part in sums], "special": special}
            arrays = [part.digits for part in sums] + [part.special for part in sums if part.special is not None]
            return note, arrays

        bands: list[Bands] = []
        counts: list[int] = []
        found = peers.exchange(description, local)
        dtype = _dtype_of([note for note, _ in found])
        if dtype.kind in "iu":
            values = [array for _, arrays in found for array in arrays]
            if axis is None:
                return reduce_parts(op, values)
            return total_of_rows(op, values, [count for note, _ in found for count in note["counts"]], dtype, axis)
        for note, arrays in found:
            specials = iter(arrays[len(note["first"]) :])
            for first, digits, special in zip(note["first"], arrays, note["special"], strict=False):
                bands.append(Bands(first, digits, next(specials) if special else None))
            counts += note["counts"]
        return exact_total(op, bands, counts, dtype)


def _integers(op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]) -> tuple[Any, list[Any]]:
    """This worker's contribution to a sum or mean of integers, which is exact in any order."""
    if axis is None:
        values, counts = check_numbers(parts, op), [1] * len(parts)
    else:
        values, counts, _ = row_sums(op, parts, axis)
    note = {"counts": list(compress(counts, there)), "dtype": np.asarray(parts[0]).dtype.str}
    return note, list(compress(values, there))


def _dtype_of(notes: Sequence[dict[str, Any]]) -> np.dtype[Any]:
    """The dtype common to all workers.

    Raises:
      InvalidArgumentError: the dtypes differ.
    """
    for worker, note in enumerate(notes):
        if note["dtype"] != notes[0]["dtype"]:
            raise InvalidArgumentError(
                f"reduce: all values must have the same dtype, got {np.dtype(notes[0]['dtype'])} on worker 0 and "
                f"{np.dtype(note['dtype'])} on worker {worker}"
            )
    dtype: np.dtype[Any] = np.dtype(notes[0]["dtype"])
    return dtype
