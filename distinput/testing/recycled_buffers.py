# SPDX-License-Identifier: Apache-2.0
"""The law of devices about memory that is used again: consumers that look at a batch, or at what they compute of it, late.

Buffers of batches are used again as soon as nothing refers to them (`distinput.core.buffers`). A device may still be copying a
batch, or be computing with it, when the program has dropped it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.core.buffers import FEWEST_BYTES, Buffers
from distinput.distribute.devices import Devices

__all__ = ["check_recycled_buffers"]

_WAITS = (0, 1, 3)
"""How many batches later a result is looked at."""

_BATCHES, _ROWS = 16, 64
_WIDTH = FEWEST_BYTES // 4 // _ROWS  # of float32: each part is large enough for the pool


def _twice(x: Any) -> Any:
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
    return bool(np.allclose(np.asarray(found), np.asarray(right), rtol=1e-4, atol=1e-4))
