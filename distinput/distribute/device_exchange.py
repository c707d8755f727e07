# SPDX-License-Identifier: Apache-2.0
"""Reductions and concatenations over several workers of values that are on devices, and stay there.

The workers first exchange what they have: numbers of values, shapes and dtypes. These facts pass the host; every worker checks
all of them, so all workers raise the same error before anything of their sizes is sent. Then the engine moves the arrays. As on
the host, small values are gathered and added in replica order, large ones are added by the engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from math import prod
from typing import Any

from distinput.distribute.collectives.device_calls import DeviceCalls
from distinput.distribute.devices.arrays import ArrayOps
from distinput.distribute.peers import CallDescription, Peers
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import (
    check_alike,
    check_gather,
    check_numbers,
    check_sums,
    reduce_parts,
    row_sums,
    total_of_rows,
)
from distinput.errors import InvalidArgumentError

__all__ = ["DeviceExchange"]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an array on another worker.

    Args:
      shape: its shape.
      dtype: the name of its dtype.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class DeviceExchange:
    """Values of replicas of several workers.

    Args:
      peers: all workers.
      calls: what moves arrays between them.
      ops: the library of the arrays.
      device: the first one of this worker, which results are on.
      large: from this number of bytes on, values are added by the engine.
    """

    def __init__(self, peers: Peers, calls: DeviceCalls, ops: ArrayOps, device: Any, large: int) -> None:
        self._peers, self._calls, self._ops, self._device, self._large = peers, calls, ops, device, large

    @property
    def kind(self) -> str:
        """The library and the kind of device."""
        return self._calls.kind

    def reduce(
        self, description: CallDescription, op: ReduceOp, parts: Sequence[Any], axis: Any, there: Sequence[bool]
    ) -> Any:
        """The sum or mean over all replicas; see `Strategy.reduce`.

        Args:
          description: the call.
          op: SUM or MEAN.
          parts: the values of this worker's replicas.
          axis: None, an int or a tuple of ints.
          there: which of them are data.
        """
        ops = self._ops
        values: list[Any] = []
        counts: list[int] = []
        dtype: Any = None

        def local() -> tuple[Sequence[Any], Sequence[int]]:
            nonlocal values, counts, dtype
            if axis is None:  # what is wrong with these values shows when all are known
                arrays = [ops.array(part) for part in parts]
                sums, counts, dtype = arrays, [1] * len(arrays), arrays[0].dtype
            else:
                sums, counts, dtype = row_sums(op, parts, axis, ops)
            values, counts = list(compress(sums, there)), list(compress(counts, there))
            return values, counts

        notes = self._facts(description, lambda: ops.name(dtype), local)
        every = [one for note in notes for one in note.known]
        if axis is None:
            check_alike(every)
            check_numbers(values or parts[:1], op, ops)
        else:
            _check_dtypes(notes)
            check_sums(every, axis)
        shape, counts = every[0].shape, [count for note in notes for count in note.counts]
        held = [len(note.known) for note in notes]
        if axis is None and prod(shape) * dtype.itemsize >= self._large:
            summed = self._summed(description, values, shape, ops.wide(dtype) if op is ReduceOp.MEAN else dtype)
            if summed is not None:
                return summed if op is ReduceOp.SUM else ops.mean(summed, len(counts), dtype)
        stacked = ops.concatenate([value[None] for value in values], 0) if values else None
        sizes = [n * prod(shape) for n in held]
        added = dtype if op is ReduceOp.SUM or axis is None else ops.wide(dtype)
        found = self._gathered(description, stacked, sizes, added)
        rows = [row for flat, n in zip(found, held, strict=True) for row in flat.reshape(n, *shape)]
        if axis is None:
            return reduce_parts(op, rows, ops)
        return total_of_rows(op, rows, counts, dtype, axis, ops)

    def gather(self, description: CallDescription, parts: Sequence[Any], axis: Any) -> Any:
        """The values of all replicas, one after the other along an axis; see `Strategy.gather`.

        Args:
          description: the call.
          parts: the values of this worker's replicas that are data.
          axis: the axis.
        """
        ops = self._ops
        arrays = [ops.array(part) for part in parts]
        notes = self._facts(description, str, lambda: (arrays, ()))
        every = [one for note in notes for one in note.known]
        where = check_gather(every, axis)
        shapes: list[tuple[int, ...]] = []
        for note in notes:
            size = sum([one.shape[where] for one in note.known])
            shapes.append((*every[0].shape[:where], size, *every[0].shape[where + 1 :]))
        mine = ops.concatenate(arrays, where) if arrays else None
        found = self._gathered(description, mine, [prod(shape) for shape in shapes], self._dtype(every[0].dtype))
        made = [flat.reshape(shape) for flat, shape, note in zip(found, shapes, notes, strict=True) if note.known]
        return ops.concatenate(made, where)

    def first(self, description: CallDescription, value: Any) -> Any:
        """The value of replica 0 of worker 0."""
        ops, rank = self._ops, self._peers.rank
        array = ops.array(value)
        notes = self._facts(description, lambda: ops.name(array.dtype), lambda: ([array], ()))
        _check_dtypes(notes)
        shape = notes[0].known[0].shape
        sizes = [prod(shape), *[0] * (self._peers.size - 1)]
        found = self._gathered(description, None if rank else array, sizes, array.dtype)
        return found[0].reshape(shape)

    def _facts(
        self,
        description: CallDescription,
        dtype: Callable[[], str],
        local: Callable[[], tuple[Sequence[Any], Sequence[int]]],
    ) -> "list[_Note]":
        """What all workers have; an error of `local` is raised on all of them."""

        def make() -> tuple[Any, Sequence[Any]]:
            values, counts = local()
            known = [[list(value.shape), self._ops.name(value.dtype)] for value in values]
            return {"dtype": dtype(), "known": known, "counts": list(counts)}, []

        return [
            _Note(
                note["dtype"],
                tuple([_Known(tuple(shape), name) for shape, name in note["known"]]),
                tuple(note["counts"]),
            )
            for note, _ in self._peers.exchange(description, make)
        ]

    def _summed(self, description: CallDescription, values: Sequence[Any], shape: Sequence[int], dtype: Any) -> Any:
        """The sum of large values; None if the engine does not add such numbers."""
        ops, name = self._ops, self._ops.name(dtype)
        if not self._calls.reducible(name):
            return None
        mine = ops.total(values, dtype) if values else ops.zeros(shape, dtype, self._device)
        flat = ops.move(mine, self._device).reshape(-1)
        return self._calls.all_reduce(flat, name, **self._peers.said(description)).reshape(tuple(shape))

    def _gathered(self, description: CallDescription, mine: Any, sizes: Sequence[int], dtype: Any) -> list[Any]:
        """The arrays of all workers, each `[sizes[i]]`; None for nothing."""
        ops = self._ops
        if mine is None:
            mine = ops.zeros((0,), dtype, self._device)
        flat = ops.move(mine, self._device).reshape(-1)
        return self._calls.all_gather(flat, sizes, ops.name(dtype), **self._peers.said(description))

    def _dtype(self, name: str) -> Any:
        return self._ops.dtype(name)


@dataclass(frozen=True, slots=True)
class _Note:
    """What one worker has.

    Args:
      dtype: the name of the dtype of what the values are the sums of.
      known: its values.
      counts: how many items each value is the sum of.
    """

    dtype: str
    known: tuple[_Known, ...]
    counts: tuple[int, ...]


def _check_dtypes(notes: Sequence[_Note]) -> None:
    for worker, note in enumerate(notes):
        if note.dtype != notes[0].dtype:
            raise InvalidArgumentError(
                f"reduce: all values must have the same dtype, got {notes[0].dtype} on worker 0 and {note.dtype} on worker "
                f"{worker}"
            )
