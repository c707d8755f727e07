# SPDX-License-Identifier: Apache-2.0
"""The workers that save and restore a checkpoint together; a process without other workers is a crew of one."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from distinput.distribute.collectives.peers import OpenPeers, only_peers
from distinput.distribute.core.modes import modes
from distinput.distribute.core.replicas import CallDescription
from distinput.errors import FailedPreconditionError

__all__ = ["Crew", "crew_of", "entered_strategy"]

_SLOWEST_BYTES = 10e6
"""The lowest expected speed of reading and writing, in bytes per second; calls that wait for it time out accordingly later."""


class Crew:
    """The workers that take part in saving or restoring a checkpoint.

    Args:
      peers: all workers; None for a process without other workers.
    """

    def __init__(self, peers: OpenPeers | None) -> None:
        self._peers = peers if peers is not None and peers.size > 1 else None
        self.rank = 0 if self._peers is None else self._peers.rank
        self.size = 1 if self._peers is None else self._peers.size

    @property
    def is_chief(self) -> bool:
        """True on the worker that reads and writes files."""
        return self.rank == 0

    def channel(self, name: str) -> Any:
        """Another group of these workers; None for a process without other workers."""
        return None if self._peers is None else self._peers.channel(name)

    def exchange(self, what: str, make: Callable[[], Any], bytes_in_files: int = 0) -> list[Any]:
        """The results of `make` on all workers, JSON values, in worker order.

        Args:
          what: describes the exchange.
          make: returns this worker's contribution.
          bytes_in_files: how much a worker may have to read or write meanwhile.

        Raises:
          Exception: what `make` raised here, or an error that names the worker on which it raised.
        """
        if self._peers is None:
            return [make()]
        timeout = self._peers.group.timeout + bytes_in_files / _SLOWEST_BYTES
        call = CallDescription(f"checkpoint: {what}")
        return [note for note, _ in self._peers.exchange(call, lambda: (make(), ()), timeout=timeout)]

    def bytes_of_chief(self, content: bytes | None, size: int) -> bytes:
        """Send the bytes that the chief has to all workers.

        Args:
          content: the bytes on the chief, None on the others.
          size: their number.
        """
        if self._peers is None:
            assert content is not None
            return content
        timeout = self._peers.group.timeout + size / _SLOWEST_BYTES
        given = None if content is None else np.frombuffer(content, np.uint8)
        said = self._peers.said(CallDescription("checkpoint: send its file"))
        return self._peers.group.broadcast(given, 0, timeout=timeout, **said).tobytes()


def crew_of(strategies: Iterable[Any]) -> Crew:
    """The workers of the given strategies, or of the only strategy in this process that has several workers.

    Raises:
      FailedPreconditionError: several strategies have several workers.
    """
    by_id: dict[int, OpenPeers] = {}
    for strategy in strategies:
        peers = getattr(getattr(strategy, "_replicas", None), "peers", None)
        if peers is not None:
            by_id[id(peers)] = peers
    if not by_id and (peers := only_peers()) is not None:
        return Crew(peers)
    if len(by_id) > 1:
        raise FailedPreconditionError(
            f"Checkpoint: has variables or iterators of {len(by_id)} strategies of several workers; make a checkpoint for each"
        )
    return Crew(next(iter(by_id.values()), None))


def entered_strategy() -> Any:
    """The strategy of the innermost scope or `run`; None outside of all."""
    return modes.stack[-1].strategy if modes.stack else None
