# SPDX-License-Identifier: Apache-2.0
"""The suite for a backend: the devices of one process, as strategies use them, and memory that is used again."""

import contextvars
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices import Devices
from distinput.testing.elements import hold
from distinput.testing.left_behind import begun_since
from distinput.values.buffers import FEWEST_BYTES, Buffers, empty

# ----------------------------------------------------------------------------
# The law of devices about memory that is used again: consumers that look at a batch, or at what they compute of it, late.
#
# Buffers of batches are used again as soon as nothing refers to them (`distinput.values.buffers`). A device may still be
# copying a batch, or be computing with it, when the program has dropped it.
# ----------------------------------------------------------------------------


_WAITS = (0, 1, 3)
"""How many batches later a result is looked at."""

_BATCHES, _ROWS = 16, 64
_WIDTH = FEWEST_BYTES // 4 // _ROWS  # of float32: each part is large enough for the pool


def _twice(x: Any) -> Any:
    with np.errstate(all="ignore"):  # memory of others may hold anything
        return x + x


def check_recycled_buffers(
    make: Callable[[Sequence[str]], Devices], count: int, compute: Callable[[Any], Any] = _twice
) -> None:
    """Put batches on devices, compute with them, drop them, and look at the results when their memory was used again.

    Args:
      make: makes devices from labels.
      count: how many devices.
      compute: of an array; its result may come later.

    Raises:
      AssertionError: a result is wrong.
    """
    devices = make([f"CPU:{index}" for index in range(count)])
    put_step = getattr(devices, "put_step", None)
    for together in (False, True):
        if together and put_step is None:
            continue
        for wait in _WAITS:
            pool, late = Buffers(), deque[Any]()
            for number in range(_BATCHES):
                batch = pool.empty((count * _ROWS, _WIDTH), np.dtype(np.float32))
                batch[:] = _rows(number, count)
                parts = np.split(batch, count)
                if together:
                    there = list(put_step([parts])[0].values)  # type: ignore[misc]
                else:
                    there = [devices.put(part, i, owned=True) for i, part in enumerate(parts)]
                results = devices.run(compute, [(part,) for part in there])
                late.append((number, results, there if number % 3 == 0 else [None] * count))  # most are dropped at once
                del batch, parts, there, results
                if len(late) > wait:
                    _look(devices, count, compute, *late.popleft())
            while late:
                _look(devices, count, compute, *late.popleft())


def _rows(number: int, count: int) -> Any:
    """What a batch holds, [rows, width]."""
    rows = np.arange(count * _ROWS, dtype=np.float32)[:, None] % 97 + number
    return np.repeat(rows, _WIDTH, 1)


def _look(
    devices: Devices, count: int, compute: Callable[[Any], Any], number: int, results: list[Any], there: list[Any]
) -> None:
    """Compare what was computed of a batch, and what was put, with what the batch was."""
    parts = np.split(_rows(number, count), count)
    # Compute it again, of memory that nobody uses for anything else.
    expected = devices.run(compute, [(devices.put(part.copy(), i, owned=True),) for i, part in enumerate(parts)])
    for i in range(count):
        for what, found, right in (("was put", there[i], parts[i]), ("is computed of it", results[i], expected[i])):
            if found is not None and not _close(devices.get(found), devices.get(right)):
                raise AssertionError(
                    f"batch {number}, device {i}: what {what} is wrong, because its memory was used again for a later batch; "
                    "whatever still reads it must refer to it"
                )


def _close(found: Any, right: Any) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.allclose(np.asarray(found), np.asarray(right), rtol=1e-4, atol=1e-4))


# ----------------------------------------------------------------------------
# The suite for a backend: the devices of one process, as strategies use them.
# ----------------------------------------------------------------------------


Open = Callable[[Sequence[str]], Devices]

_LARGE = np.arange(FEWEST_BYTES, dtype=np.uint8)

_VALUES: tuple[Any, ...] = (
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.arange(4, dtype=np.float32)[::2],
    np.array([True, False]),
    np.zeros((0, 3), np.float32),
    np.array([1, 2], np.uint8),
    np.float32(1.5),
    np.int64(-7),
    b"text",
    np.array([b"a", b"", b"ccc"], object),
    np.frombuffer(np.arange(5, dtype=np.int32).tobytes(), np.int32),  # read-only
    np.arange(6, dtype=np.int32).reshape(2, 3)[::-1].T,
    np.add(_LARGE, 1, out=empty(_LARGE.shape, _LARGE.dtype)),  # begins at a multiple of 64 bytes
    _LARGE[7:],  # does not
)
"""Values of every kind and layout that elements consist of. Devices that cannot hold text keep it on the host."""

_SECONDS = 20.0
"""The longest time that a call waits for another one that should run at the same time, and a check for threads that end."""

_colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def _labels(count: int) -> list[str]:
    return [f"CPU:{index}" for index in range(count)]


def _local(make: Open, count: int) -> None:
    devices = make(_labels(count))
    if tuple(devices.local) != tuple(_labels(count)):
        raise AssertionError(f"local must be the labels in order, {tuple(_labels(count))}, got {devices.local!r}")
    if not isinstance(devices.host_memory, bool):
        raise AssertionError(f"host_memory must be a bool, got {devices.host_memory!r}")  # noqa: TRY004 - a law is broken


def _round_trip(make: Open, count: int) -> None:
    devices = make(_labels(count))
    for value in _VALUES:
        for device in range(count):
            for owned in (True, False):
                given = value.copy() if isinstance(value, np.ndarray) else value
                back = devices.get(devices.put(given, device, owned=owned))
                _same(f"put on device {device} and got back, owned={owned}", back, value)


def _same(what: str, found: Any, expected: Any) -> None:
    if isinstance(expected, bytes):
        right = bytes(found) == expected
    else:
        given = np.asarray(found)
        right = given.dtype == expected.dtype and given.shape == np.shape(expected)
        right = right and bool(np.array_equal(given, expected))
    if not right:
        raise AssertionError(f"{what}: got {found!r}, expected {expected!r}")


def _copies(make: Open, count: int) -> None:
    devices = make(_labels(count))
    array = np.arange(5)
    there = devices.put(array, count - 1, owned=False)
    array[:] = 9
    _same("an array that is not owned was written to after put", devices.get(there), np.arange(5))


def _steps(make: Open, count: int) -> None:
    devices = make(_labels(count))
    put_step = getattr(devices, "put_step", None)
    if put_step is None:  # steps are put a value at a time
        return
    leaves = [[value + value.dtype.type(i) if _is_number(value) else value for i in range(count)] for value in _VALUES]
    found = put_step([list(parts) for parts in leaves])
    if len(found) != len(leaves) or not all(isinstance(leaf, PerReplica) for leaf in found):
        raise AssertionError(f"put_step must return a PerReplica for each of {len(leaves)} leaves, got {found!r}")
    for parts, leaf in zip(leaves, found, strict=True):
        for i, (part, there) in enumerate(zip(parts, leaf.values, strict=True)):
            _same(f"put_step, device {i}", devices.get(there), part)


def _is_number(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "iuf"


def _results(make: Open, count: int) -> None:
    devices = make(_labels(count))
    for used in range(1, count + 1):
        found = devices.run(lambda a, b: (a, b), [(index, -index) for index in range(used)])
        if found != [(index, -index) for index in range(used)]:
            raise AssertionError(f"run on {used} of {count} devices: got {found!r}, expected the results in order")


def _at_once(make: Open, count: int) -> None:
    devices = make(_labels(count))
    together = threading.Barrier(count)

    def meet(index: int) -> int:
        try:
            together.wait(_SECONDS)
        except threading.BrokenBarrierError:
            raise AssertionError(
                "the calls must be under way at the same time; one waited for the others in vain"
            ) from None
        return index

    for _ in range(3):
        if devices.run(meet, [(index,) for index in range(count)]) != list(range(count)):
            raise AssertionError("the results of calls that met are not in order")


def _caller(make: Open, count: int) -> None:
    devices = make(_labels(count))
    threads = devices.run(lambda _: threading.get_ident(), [(index,) for index in range(count)])
    if threads[0] != threading.get_ident():
        raise AssertionError("the first call must be made on the calling thread")
    if len(set(threads)) != count:
        raise AssertionError(f"{count} calls at the same time must be on {count} threads, got {len(set(threads))}")


def _context(make: Open, count: int) -> None:
    devices = make(_labels(count))
    token = _colour.set("blue")
    try:
        with np.errstate(divide="raise"):
            found = devices.run(lambda _: (_colour.get(), np.geterr()["divide"]), [(i,) for i in range(count)])
    finally:
        _colour.reset(token)
    if found != [("blue", "raise")] * count:
        raise AssertionError(
            f"the calls must see the caller's context variables and NumPy's error state, got {found!r}"
        )
    devices.run(lambda _: _colour.set("red"), [(i,) for i in range(count)])
    if _colour.get() != "none":
        raise AssertionError("what a call sets in its context must stay there, but the caller saw it")


class _Stop(BaseException):
    """Not an `Exception`, like KeyboardInterrupt."""


def _errors(make: Open, count: int) -> None:
    devices = make(_labels(count))
    for kind in (ValueError, _Stop):
        for first in range(count):
            ended: list[int] = []

            def fail(index: int, first: int = first, ended: list[int] = ended, kind: Any = kind) -> None:
                if index != first:
                    time.sleep(0.05)
                    ended.append(index)
                raise kind(f"device {index}")

            try:
                devices.run(fail, [(index,) for index in range(count)])
            except kind as error:
                if str(error) != f"device {first}":
                    raise AssertionError(f"the first error in time was that of device {first}, got {error!r}") from None
            else:
                raise AssertionError(f"run must raise what a call raises, here {kind.__name__}")
            if len(ended) != count - 1:
                raise AssertionError("run must not return before all calls have ended, even if one of them failed")
    _results(lambda _: devices, count)


def _nested(make: Open, count: int) -> None:
    devices = make(_labels(count))

    def outer(index: int) -> list[int]:
        if index:
            return []
        return devices.run(lambda inner: 10 * inner, [(inner,) for inner in range(count)])

    found = devices.run(outer, [(index,) for index in range(count)])
    if found[0] != [10 * inner for inner in range(count)]:
        raise AssertionError(f"a run inside a run, as in a merge function: got {found[0]!r}")


def _reopens(make: Open, count: int) -> None:
    devices = make(_labels(count))
    devices.close()
    devices.close()
    _results(lambda _: devices, count)
    devices.close()


def _nothing_left(make: Open, count: int) -> None:
    _results(make, count)
    gc.collect()
    before = set(threading.enumerate())
    closed = make(_labels(count))
    _results(lambda _: closed, count)
    closed.close()
    _check_ended(before, "close")
    forgotten: list[Devices] = [make(_labels(count))]
    _results(lambda _: forgotten[0], count)
    forgotten.clear()
    _check_ended(before, "the devices were forgotten")


def _check_ended(before: set[threading.Thread], after: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while left := begun_since(before):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {after} there are still the threads {left}")
        gc.collect()
        time.sleep(0.01)


LAWS: Mapping[str, Callable[[Open, int], None]] = MappingProxyType(
    {
        "labels": _local,
        "round trip": _round_trip,
        "copies": _copies,
        "steps": _steps,
        "results": _results,
        "at the same time": _at_once,
        "threads": _caller,
        "context": _context,
        "errors": _errors,
        "nested": _nested,
        "closed and used again": _reopens,
        "nothing left": _nothing_left,
        "recycled buffers": check_recycled_buffers,
    }
)
"""The laws of devices by name."""


def check_devices(
    make: Callable[[Sequence[str]], Devices],
    *,
    counts: Sequence[int] = (1, 2, 3),
    leave_out: Collection[str] = (),
    compute: Callable[[Any], Any] | None = None,
) -> tuple[str, ...]:
    """Check all laws of devices: a strategy gives the same results on this backend as on `ThreadDevices`.

    The laws, by name:

    * labels: `local` is the labels in order;
    * round trip: what is put on a device comes back the same, in dtype, shape and bits, whatever its layout in memory;
    * copies: an array that is not `owned` may be written to after `put`;
    * steps: `put_step`, where there is one, puts each value as `put` does;
    * results, at the same time, threads: `run` returns the results in order, its calls may wait for each other, and the first
      one is made on the calling thread;
    * context: the calls see the caller's context variables, and their own changes stay with them;
    * errors: `run` raises the first error in time, when all calls have ended, and can be called again;
    * nested: `run` works inside a call of `run`;
    * closed and used again, nothing left: `close` may be called twice, and ends all threads; so does forgetting the devices;
    * recycled buffers: the memory of a batch is used again as soon as nothing refers to it, so what is put on a device, or is
      still to be computed of it, refers to that memory or has a copy: looked at many batches later, it is right.

    Args:
      make: makes devices from labels, as for `register_backend`.
      counts: how many devices to try.
      leave_out: names of laws not to check.
      compute: a function of one array of numbers, such as a jitted one, whose result may be computed after the call; None for
        a sum.

    Returns:
      The names of the laws that were checked.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.

    >>> from distinput.distribute.devices.threads import ThreadDevices
    >>> "nested" in check_devices(ThreadDevices, counts=[2])
    True
    """
    laws = dict(LAWS)
    if compute is not None:
        laws["recycled buffers"] = partial(check_recycled_buffers, compute=compute)

    def each(check: Callable[[Open, int], None]) -> None:
        for count in counts:
            check(make, count)

    return hold("check_devices", laws, each, leave_out)
