# SPDX-License-Identifier: Apache-2.0
"""Reductions and concatenations over all replicas, whether of one process or of several workers.

Every worker checks the same exchanged facts, so all workers raise the same error. Small values are gathered and added
in replica order on every worker; large ones are added by the engine's own all-reduce.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from distinput.distribute.exact_sum import Bands
from distinput.distribute.peers import CallDescription, Peers
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import (
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


class Arithmetic:
    """Computes `reduce`, `gather` and their counterparts in replica context.

    Args:
      peers: all workers; None for a strategy of one process.
    """

    def __init__(self, peers: Peers | None = None) -> None:
        self._peers = peers

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
        there = tuple([True] * len(parts) if present is None else present)
        peers = self._peers
        if peers is None:
            kept = tuple(compress(parts, there))
            if deterministic:
                return exact_total(op, *exact_rows(op, kept, axis))
            return reduce_parts(op, kept) if axis is None else reduce_rows(op, kept, axis)
        how = ", deterministic" if deterministic else ""
        description = CallDescription(f"{call} {op.name}, axis={axis}{how}", name, lambda: _described(parts))
        if deterministic:
            return self._exact(peers, description, op, parts, axis, there)
        if axis is None:
            return self._whole(peers, description, op, list(compress(parts, there)))
        return self._rows(peers, description, op, parts, axis, there)

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
        if self._peers is None:
            return gather_parts(there, axis)
        description = CallDescription(f"{call}, axis={axis}", name, lambda: _described(parts))
        return gather_parts(self._peers.everywhere(description, there), axis)

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
        for note, arrays in found:
            specials = iter(arrays[len(note["first"]) :])
            for first, digits, special in zip(note["first"], arrays, note["special"], strict=False):
                bands.append(Bands(first, digits, next(specials) if special else None))
            counts += note["counts"]
        return exact_total(op, bands, counts, dtype)


def _dtype_of(notes: Sequence[dict[str, Any]]) -> np.dtype[Any]:
    """The dtype common to all workers.

    Raises:
      InvalidArgumentError: the dtypes differ.
    """
    for worker, note in enumerate(notes):
        if note["dtype"] != notes[0]["dtype"]:
            raise InvalidArgumentError(
                f"reduce: all values must have the same dtype, got {notes[0]['dtype']} on worker 0 and {note['dtype']} "
                f"on worker {worker}"
            )
    dtype: np.dtype[Any] = np.dtype(notes[0]["dtype"])
    return dtype


def _described(parts: Sequence[Any]) -> str:
    """Dtypes and shapes of the replicas' values, for messages."""
    arrays = [np.asarray(part) for part in parts]
    return ", ".join(dict.fromkeys(f"{array.dtype}{list(array.shape)}" for array in arrays))
