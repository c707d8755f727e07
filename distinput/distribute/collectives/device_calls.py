# SPDX-License-Identifier: Apache-2.0
"""Calls of a group on arrays that are on devices: compared like all others, and moved by the engine's own collectives."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.collectives.call_record import Purpose
from distinput.distribute.collectives.call_sequence import CallSequence
from distinput.distribute.collectives.channel import DeviceOperations

__all__ = ["DeviceCalls"]

_NOTHING = np.zeros(0, np.uint8)


class DeviceCalls:
    """The calls of one group on arrays of one library.

    Args:
      sequence: the calls of the group.
      operations: what the engine does with such arrays.
    """

    def __init__(self, sequence: CallSequence, operations: DeviceOperations) -> None:
        self._sequence, self._operations = sequence, operations
        self.kind = operations.kind
        """The library and the kind of device, such as "torch cpu"."""

    def reducible(self, dtype: str) -> bool:
        """True if `all_reduce` adds arrays of a dtype."""
        return self._operations.reducible(dtype)

    def all_gather(
        self, flat: Any, sizes: Sequence[int], dtype: str, *, name: str = "", purpose: Purpose | None = None
    ) -> list[Any]:
        """The arrays of all workers, in rank order, on this worker's device.

        Args:
          flat: [sizes[rank]].
          sizes: how many items each worker has.
          dtype: the name of the dtype.
          name: as in `Collectives.all_reduce`.
          purpose: likewise.

        Raises:
          Mismatch: the workers made different calls; nothing was sent.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("all_gather", None, name, purpose) as call:
            call.compare(f"all_gather {dtype} {','.join(map(str, sizes))} on {self.kind}", "", _NOTHING)
            parts: list[Any] = call.run(self._operations.all_gather, flat, sizes)
            return parts

    def all_reduce(self, flat: Any, dtype: str, *, name: str = "", purpose: Purpose | None = None) -> Any:
        """The sum of the arrays of all workers, `[n]`, on this worker's device.

        Args:
          flat: [n].
          dtype: the name of the dtype.
          name: as in `Collectives.all_reduce`.
          purpose: likewise.

        Raises:
          Mismatch: the workers made different calls; nothing was sent.
          CollectiveError: see its kinds.
        """
        with self._sequence.begin("all_reduce", None, name, purpose) as call:
            call.compare(f"all_reduce sum {dtype} {len(flat)} on {self.kind}", "", _NOTHING)
            return call.run(self._operations.all_reduce, flat)

    def close(self) -> None:
        """Release what the engine holds for these calls."""
        self._operations.close()
