# SPDX-License-Identifier: Apache-2.0
"""The interface of an engine on which `Collectives` is built: operations on bytes, and a status board.

A channel never sees a call that could go wrong: `Collectives` has compared sizes, dtypes and operations before. So an
engine of your own needs no checks of its arguments. It has to

* start operations without blocking, and let `Handle.wait` wait no longer than it is told;
* raise `ChannelLost` for whatever failure its transport reports; `Collectives` finds out which worker is at fault;
* carry a short status of each worker to all others, beside the operations (`StatusBoard`).

`distinput.distribute.engines.local.LocalChannel` is the shortest implementation to read, and
`distinput.testing.check_collectives` tests a new one.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "OPS",
    "Array",
    "Bytes",
    "Channel",
    "ChannelLost",
    "DeviceOperations",
    "Handle",
    "StatusBoard",
    "check_reducible",
    "fold",
    "native_view",
]

# ---- The interface of an engine on which `Collectives` is built: operations on bytes, and a status board

Array: TypeAlias = npt.NDArray[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class ChannelLost(Exception):
    """Raised by a channel when its transport reports a failure.

    Users never see it: `Collectives` turns it into one of the errors in `distinput.errors`, which names the worker at fault.
    """


class Handle(Protocol):
    """One operation that has been started and may not be complete yet."""

    def wait(self, seconds: float) -> bool:
        """Wait for the operation, but no longer than this.

        Args:
          seconds: at least 0; with 0 the method only looks.

        Returns:
          True when the operation is complete; further calls return True at once.

        Raises:
          ChannelLost: it will never be complete.
        """
        ...

    def value(self) -> Any:
        """The result, in memory that nobody else uses; called only after `wait` returned True."""
        ...


class DeviceOperations(Protocol):
    """Operations on arrays of a library, on the devices where they are; what a channel returns from `on_devices`.

    As for a channel: every worker starts the same operations in the same order, and what could go wrong was compared before.
    """

    kind: str
    """The library and the kind of device, such as "torch cuda", the same on all workers; compared before each operation."""

    def reducible(self, dtype: str) -> bool:
        """True if `all_reduce` adds arrays of a dtype, in any order of workers."""
        ...

    def all_gather(self, flat: Any, sizes: Sequence[int]) -> Handle:
        """Gather from every worker as many items as it has.

        Args:
          flat: [sizes[rank]], of the same dtype on all workers.
          sizes: how many items each worker has, the same on all; 0 is allowed.

        Returns:
          A handle whose value is a list of [sizes[i]], in rank order, on this worker's device.
        """
        ...

    def all_reduce(self, flat: Any) -> Handle:
        """Add arrays.

        Args:
          flat: [n]; n and the dtype, which is reducible, are the same on all workers.

        Returns:
          A handle whose value is [n], on this worker's device and in new memory.
        """
        ...

    def close(self) -> None:
        """Release everything, without waiting for any other worker."""
        ...


class StatusBoard(Protocol):
    """One short text for each worker, which all others can read at any time, even while they wait in an operation.

    It is how workers learn why another one has stopped. `publish` and `read` may be called from any thread. They return
    within about a millisecond, with what is known by then, and raise `ChannelLost` when the board cannot be reached.
    """

    @property
    def host_rank(self) -> int | None:
        """The worker whose exit takes the board away; None if no worker hosts it."""
        ...

    def publish(self, status: str) -> None:
        """Replace this worker's status, a text of a few kilobytes."""
        ...

    def read(self) -> Mapping[int, str]:
        """The latest known status of each other worker, by rank; workers that have published none are left out."""
        ...

    def close(self) -> None:
        """Release what the board holds; this worker neither publishes nor reads any more."""
        ...


class Channel(Protocol):
    """A connection of this worker to all others; every worker starts the same operations in the same order.

    Operations are started by one thread at a time. `post_sum` is a stream of its own: it may be called by another thread,
    and its operations complete independently of the others, in the order in which they were posted.

    A method `on_devices(ops, device)` is optional. It returns `DeviceOperations` for the arrays of a library (`ArrayOps`) on a
    device of this worker, None if there are none. Without them, values on devices pass the host.

    Nothing may keep a reference to the arrays that are given once the operation is complete, and operations must not
    change them, except that `broadcast` may use its buffer. Arrays are one-dimensional and C-contiguous.
    """

    rank: int
    """The number of this worker, from 0."""
    size: int
    """The number of workers."""
    reducible: Mapping[str, frozenset[str]]
    """For each operation ("sum", "prod", "min", "max") the names of the dtypes that `all_reduce` supports, such as "float32".

    The result must be the same on all workers, bit for bit, and equal NumPy's, up to the order of a float sum or product.
    All other dtypes are gathered and reduced by NumPy in rank order, so an empty mapping is always right."""
    post_is_cheap: bool
    """Whether `post_sum` takes no longer than waking another thread does; if not, a background thread calls it."""

    @property
    def status_board(self) -> StatusBoard:
        """The board shared by this channel and all that `dup` made from it."""
        ...

    def all_gather(self, mine: Bytes) -> Handle:
        """Gather equally many bytes from every worker.

        Args:
          mine: [n], n the same on all workers.

        Returns:
          A handle whose value is [size, n], in rank order.
        """
        ...

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> Handle:
        """Gather from every worker as many bytes as it has.

        Args:
          mine: [sizes[rank]].
          sizes: how many bytes each worker has, the same on all; 0 is allowed.

        Returns:
          A handle whose value is a list of [sizes[i]], in rank order.
        """
        ...

    def all_reduce(self, values: Array, op: str) -> Handle:
        """Reduce arrays element by element.

        Args:
          values: [n]; n and dtype are the same on all workers, and `reducible[op]` has the dtype.
          op: "sum", "prod", "min" or "max"; integers wrap around.

        Returns:
          A handle whose value is [n], the same on all workers.
        """
        ...

    def broadcast(self, values: Bytes, root: int) -> Handle:
        """Send the bytes of one worker to all.

        Args:
          values: [n] to be sent on the root; a buffer of the same size, which may be overwritten, on the others.
          root: the rank that sends.

        Returns:
          A handle whose value is [n], the bytes of the root.
        """
        ...

    def post_sum(self, values: Array) -> Handle:
        """Start to sum integers over all workers, on a stream of operations of its own, without blocking.

        Args:
          values: int64 [n], n the same on all workers.

        Returns:
          A handle whose value is int64 [n]. It may be waited for by any thread, long after it was posted.
        """
        ...

    def dup(self, name: str, timeout: float) -> "Channel":
        """Another channel between the same workers, whose operations do not interfere with those of this one.

        Args:
          name: the same on all workers, and not used for another channel of theirs.
          timeout: seconds to wait for the others.

        Raises:
          ChannelLost: the others did not come.
        """
        ...

    def close(self, *, broken: bool) -> None:
        """Release everything, without waiting for any other worker.

        Args:
          broken: there may be operations under way that will never complete.
        """
        ...


# ---- Reductions in rank order by NumPy: the reference for `all_reduce` on every engine

OPS: dict[str, np.ufunc] = {"max": np.maximum, "min": np.minimum, "prod": np.multiply, "sum": np.add}


def check_reducible(dtype: np.dtype[np.generic], op: str) -> None:
    """Raise if `op` is not defined for a dtype.

    Raises:
      ValueError: an unknown operation.
      TypeError: not numbers, or a sum or product of bools.
    """
    if op not in OPS:
        raise ValueError(f"all_reduce: op must be one of {', '.join(sorted(OPS))}, got {op!r}")
    if dtype.kind == "b" and op in ("prod", "sum"):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got bool; use 'min' (all), 'max' (any), or integers")
    if not _has_loop(dtype, op):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got {dtype}; use all_gather")


@cache
def _has_loop(dtype: np.dtype[np.generic], op: str) -> bool:
    if dtype.kind not in "biufcV" or dtype.names is not None:
        return False
    one = np.zeros(1, dtype)
    try:
        return bool(OPS[op](one, one).dtype == dtype)
    except TypeError:
        return False


def fold(parts: Sequence[Array], op: str) -> Array:
    """((parts[0] op parts[1]) op parts[2]) ..., element by element, in a fresh array; integers wrap around.

    Args:
      parts: arrays of one shape and dtype, in rank order.
      op: a key of `OPS`.

    >>> fold([np.array([250, 1], "u1"), np.array([10, 2], "u1")], "sum")
    array([4, 3], dtype=uint8)
    """
    shape = parts[0].shape
    result = (
        parts[0].reshape(-1).copy()
    )  # at least one axis, since NumPy scalars warn when they wrap around and arrays do not
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            OPS[op](result, part.reshape(-1), out=result)
    return result.reshape(shape)


def native_view(values: Array, op: str) -> Array:
    """The same bytes as a dtype that more engines support, if reducing that gives the same bytes.

    Sums of unsigned integers are those of signed ones; sums of complex numbers are those of their two parts.

    >>> native_view(np.array([1, 2], "u4"), "sum").dtype
    dtype('int32')
    """
    if values.dtype.kind == "u" and op in ("prod", "sum"):
        return values.view(f"i{values.dtype.itemsize}")
    if values.dtype.kind == "c" and op == "sum":
        return values.view(f"f{values.dtype.itemsize // 2}")
    return values
