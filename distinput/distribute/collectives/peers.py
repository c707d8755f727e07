# SPDX-License-Identifier: Apache-2.0
"""The workers of a strategy, and how they exchange values.

Every exchange ends the same way on all workers: with the arrays of all of them, or with an error that names the worker
at fault. A mistake in one call fails that call on every worker, and the next call still works.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from distinput import errors
from distinput.distribute.collectives.channel import Purpose, packed, unpacked
from distinput.distribute.core.replicas import CallDescription

if TYPE_CHECKING:
    from distinput.distribute.collectives.collectives import Collectives

_ANYWHERE = "anywhere"

Array = np.ndarray[Any, Any]


class _Progress(threading.local):
    step = 0


class OpenPeers:
    """All workers of a strategy, of which this process is one.

    Args:
      group: the channel for calls of the program, such as `reduce`.
      control: the channel for agreements of iterations, which may be ahead of the program.
      replicas: how many replicas this worker has.
      compare_call_sites: True if all workers must make a call from the same place in the program.
    """

    def __init__(
        self, group: "Collectives", control: "Collectives", replicas: int, *, compare_call_sites: bool = True
    ) -> None:
        self.group, self.control = group, control
        self._name = "" if compare_call_sites else _ANYWHERE
        self._progress = _Progress()
        self._iterations = 0
        self._channels: list[Collectives] = []
        self.replicas = [int(n[0]) for n in group.all_gather(np.array([replicas], np.int64), name=self._name)]
        """How many replicas each worker has."""
        _open.add(self)

    def channel(self, name: str) -> "Collectives":
        """Another group of these workers, for another purpose; all workers call this together."""
        self._channels.append(self.group.dup(name))
        return self._channels[-1]

    def close(self) -> None:
        """Close all groups but the one for calls of the program."""
        _open.discard(self)
        for group in (self.control, *self._channels):
            group.close()

    def reached(self, step: int) -> None:
        """Note that this thread has taken `step` steps of a distributed dataset; its next calls belong to that step."""
        self._progress.step = step

    def next_iteration(self) -> str:
        """Name an iteration at its first step; equal on all workers, which begin iterations in the same order."""
        self._iterations += 1
        return f"next step of input {self._iterations}"

    def said(self, description: CallDescription) -> dict[str, Any]:
        """The `name` and `purpose` that the group compares with those of the other workers' calls."""
        step = self._progress.step
        text = f"{description.text}, after step {step} of the input" if step else description.text
        return {"name": description.name or self._name, "purpose": Purpose(text, description.given)}

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self.group.rank

    @property
    def size(self) -> int:
        """How many workers there are."""
        return self.group.size

    @property
    def first_replica(self) -> int:
        """The number of this worker's first replica among all."""
        return sum(self.replicas[: self.rank])

    def exchange(
        self,
        description: CallDescription,
        make: Callable[[], tuple[Any, Sequence[Array]]],
        group: "Collectives | None" = None,
        timeout: float | None = None,
    ) -> list[tuple[Any, list[Array]]]:
        """The results of `make` on all workers, each a JSON value and arrays, in worker order.

        Args:
          description: describes the exchange.
          make: returns this worker's contribution.
          group: the channel to use, regardless of the step that workers have reached; None for `self.group`.
          timeout: seconds to wait for the others; None for as long as the group's calls wait.

        Raises:
          Mismatch: not all workers made this call.
          Exception: the error that `make` raised here; or, if it raised on another worker, one of the same kind that
            names the worker.
        """
        failure: Exception | None = None
        try:
            note, arrays = make()
            mine = packed({"ok": note}, [np.asarray(array) for array in arrays])
        except Exception as error:  # noqa: BLE001 - raised below, once the others know
            failure = error
            mine = packed({"error": type(error).__name__, "text": str(error)}, [])
        received = [unpacked(data) for data in self._gathered(description, mine, group, timeout)]
        if failure is not None:
            raise failure
        for worker, (note, _) in enumerate(received):
            if "error" in note:
                kind = _KINDS.get(note["error"], errors.AbortedError)
                raise kind(f"on worker {worker} of {self.size}: {note['text']}")
        return [(note["ok"], arrays) for note, arrays in received]

    def _gathered(
        self, description: CallDescription, mine: Array, group: "Collectives | None", timeout: float | None
    ) -> list[Array]:
        if group is None:
            return self.group.all_gather(mine, timeout=timeout, **self.said(description))
        purpose = Purpose(description.text, description.given)
        return group.all_gather(mine, name=description.name, purpose=purpose, timeout=timeout)

    def everywhere(self, description: CallDescription, parts: Sequence[Any]) -> list[Any]:
        """The arrays of all replicas of all workers, in replica order; `parts` are those of this worker's replicas."""
        found = self.exchange(description, lambda: (None, [np.asarray(part) for part in parts]))
        return [array for _, arrays in found for array in arrays]


_open: "WeakSet[OpenPeers]" = WeakSet()


def only_peers() -> OpenPeers | None:
    """The workers of the only strategy of this process that has several; None if there is no such strategy, or several."""
    found = [peers for peers in list(_open) if peers.size > 1]
    return found[0] if len(found) == 1 else None


_KINDS: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "ValueError": ValueError,
    **{name: getattr(errors, name) for name in errors.__all__},
}
