# SPDX-License-Identifier: Apache-2.0
"""A status board in a key-value store that another worker hosts, and that may stop answering."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.background import BackgroundCall, BackgroundThread

__all__ = ["HostedStatusBoard"]

# Seconds to wait for the store: a host that is stopped keeps its connections open and says nothing.
_PUBLISH_SECONDS, _READ_SECONDS = 0.5, 0.1


class HostedStatusBoard(ABC):
    """A `StatusBoard` in a store; what the store does not answer in time stays as it was last known.

    Args:
      host_rank: the worker that hosts the store, None if none of them does.
    """

    def __init__(self, host_rank: int | None) -> None:
        self.host_rank = host_rank
        self._thread = BackgroundThread("distinput-board")
        self._reading: BackgroundCall | None = None
        self._known: Mapping[int, str] = {}
        self._lost: ChannelLost | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def store_status(self, status: str) -> None:
        """Write this worker's status to the store, and return once it is there."""

    @abstractmethod
    def fetch_statuses(self) -> Mapping[int, str]:
        """The statuses of the other workers, from the store."""

    def publish(self, status: str) -> None:
        """Replace this worker's status."""
        with self._lock:
            self._wait(self._thread.submit(self.store_status, status), _PUBLISH_SECONDS)

    def read(self) -> Mapping[int, str]:
        """The latest known statuses of the others."""
        with self._lock:
            if self._reading is None:
                self._reading = self._thread.submit(self.fetch_statuses)
            if self._wait(self._reading, _READ_SECONDS):
                self._known, self._reading = self._reading.value(), None
            return self._known

    def _wait(self, call: BackgroundCall, seconds: float) -> bool:
        if self._lost is not None:
            raise self._lost
        try:
            return call.wait(seconds)
        except ChannelLost as lost:
            self._lost = lost
            raise

    def close(self) -> None:
        """End the thread; the last group is closed."""
        self._thread.close()
