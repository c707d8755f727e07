# SPDX-License-Identifier: Apache-2.0
"""Reductions and concatenations over all replicas, of this process alone or of all workers.

What is exchanged is checked by every worker alike, so an error is the same everywhere. Small values are added up in replica
order on every worker; large ones by the engine's own all-reduce.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from distinput.distribute.exact_sum import Bands
from distinput.distribute.peers import Peers
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import (
    exact_rows,
    exact_total,
    gather_parts,
    reduce_parts,
    reduce_rows,
    row_sums,
    total_of_rows,
)
from distinput.errors import InvalidArgumentError

__all__ = ["Arithmetic"]

_LARGE = 64 * 1024
"""Bytes from which on arrays are added by the engine rather than gathered and added in replica order."""


class Arithmetic:
    """What `reduce`, `gather` and their counterparts in replica context compute.

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
    ) -> Any:
        """The sum or mean over all replicas; see `Strategy.reduce`.

        Args:
          op: SUM or MEAN.
          parts: the values of this process's replicas.
          axis: None, an int or a tuple of ints.
          deterministic: round exact sums once, so that the result does not depend on how the rows were divided.
          present: which of `parts` are data; None: all. The others are left out.
        """
        there = tuple([True] * len(parts) if present is None else present)
        if deterministic:
            return self._exact(op, parts, axis, there)
        peers = self._peers
        if peers is None:
            kept = tuple(compress(parts, there))
            return reduce_parts(op, kept) if axis is None else reduce_rows(op, kept, axis)
        if axis is not None:
            return self._rows(peers, op, parts, axis, there)
        arrays = [np.asarray(part) for part in parts]
        if arrays[0].nbytes < _LARGE:
            return reduce_parts(op, peers.everywhere(list(compress(arrays, there))))
        return self._large(peers, op, arrays, there)

    def gather(self, parts: Sequence[Any], axis: Any, *, present: Sequence[bool] | None = None) -> Any:
        """The values of all replicas, one after the other along `axis`; see `Strategy.gather`."""
        there = parts if present is None else tuple(compress(parts, present))
        return gather_parts(there if self._peers is None else self._peers.everywhere(there), axis)

    def _rows(self, peers: Peers, op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]) -> Any:
        def local() -> tuple[Any, list[Any]]:
            sums, counts, dtype = row_sums(op, parts, axis)
            return {"counts": list(compress(counts, there)), "dtype": dtype.str}, list(compress(sums, there))

        found = peers.exchange(local)
        for worker, (note, _) in enumerate(found):
            if note["dtype"] != found[0][0]["dtype"]:
                raise InvalidArgumentError(
                    f"reduce: all values must have the same dtype, got {found[0][0]['dtype']} on worker 0 and {note['dtype']} "
                    f"on worker {worker}"
                )
        sums = [array for _, arrays in found for array in arrays]
        counts = [count for note, _ in found for count in note["counts"]]
        return total_of_rows(op, sums, counts, np.dtype(found[0][0]["dtype"]), axis)

    def _large(self, peers: Peers, op: ReduceOp, arrays: Sequence[np.ndarray[Any, Any]], there: Sequence[bool]) -> Any:
        total: Any = None
        kept = list(compress(arrays, there))

        def local() -> tuple[Any, list[Any]]:
            nonlocal total
            total = np.asarray(reduce_parts(ReduceOp.SUM, kept)) if kept else np.zeros_like(arrays[0])
            return ({"dtype": total.dtype.str, "shape": list(total.shape)}, len(kept)), []

        found = [note for note, _ in peers.exchange(local)]
        notes = [note for note, _ in found]
        for worker, note in enumerate(notes):
            if note != notes[0]:
                raise InvalidArgumentError(
                    "reduce: with axis=None all values must have the same size and shape, got "
                    f"{notes[0]['shape']} of {notes[0]['dtype']} on worker 0 and {note['shape']} of {note['dtype']} on worker "
                    f"{worker}; reduce over the rows with axis=0"
                )
        summed = peers.group.all_reduce(total, "sum")
        if op is ReduceOp.SUM:
            return summed[()]
        mean = np.true_divide(summed, sum([count for _, count in found]))
        return (mean if total.dtype.kind in "iu" else mean.astype(total.dtype, copy=False))[()]

    def _exact(self, op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]) -> Any:
        if self._peers is None:
            return exact_total(op, *exact_rows(op, tuple(compress(parts, there)), axis))

        def local() -> tuple[Any, list[Any]]:
            sums, counts, dtype = exact_rows(op, parts, axis)
            sums, counts = list(compress(sums, there)), list(compress(counts, there))
            special = [part.special is not None for part in sums]
            note = {"counts": counts, "dtype": dtype.str, "first": [part.first for part in sums], "special": special}
            arrays = [part.digits for part in sums] + [part.special for part in sums if part.special is not None]
            return note, arrays

        bands: list[Bands] = []
        counts: list[int] = []
        for note, arrays in self._peers.exchange(local):
            specials = iter(arrays[len(note["first"]) :])
            for first, digits, special in zip(note["first"], arrays, note["special"], strict=False):
                bands.append(Bands(first, digits, next(specials) if special else None))
            counts += note["counts"]
        return exact_total(op, bands, counts, np.dtype(note["dtype"]))
