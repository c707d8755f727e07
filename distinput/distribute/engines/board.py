# SPDX-License-Identifier: Apache-2.0
"""A notice board on a key-value store that another worker hosts, and that may stop answering."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping

from distinput.distribute.collectives.failures import ChannelLost
from distinput.distribute.engines.messenger import Errand, Messenger

__all__ = ["HostedBoard"]

_WRITE, _READ = 0.5, 0.1  # seconds to wait for the host; a stopped one keeps its connections and says nothing


class HostedBoard(ABC):
    """Notices in a store; what the store does not answer in time stays as it was known before.

    Args:
      host: the worker that hosts the store, None if it is none of them.
    """

    def __init__(self, host: int | None) -> None:
        self.host = host
        self._messenger = Messenger("distinput-board")
        self._reading: Errand | None = None
        self._known: Mapping[int, str] = {}
        self._lost: ChannelLost | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def put(self, notice: str) -> None:
        """Write to the store, and return once it is there."""

    @abstractmethod
    def take(self) -> Mapping[int, str]:
        """The notices of the others, from the store."""

    def write(self, notice: str) -> None:
        """Replace this worker's notice."""
        with self._lock:
            self._settle(self._messenger.send(self.put, notice), _WRITE)

    def read(self) -> Mapping[int, str]:
        """The newest notices of the others that are known."""
        with self._lock:
            if self._reading is None:
                self._reading = self._messenger.send(self.take)
            if self._settle(self._reading, _READ):
                self._known, self._reading = self._reading.value(), None
            return self._known

    def _settle(self, errand: Errand, seconds: float) -> bool:
        if self._lost is not None:
            raise self._lost
        try:
            return errand.wait(seconds)
        except ChannelLost as lost:
            self._lost = lost
            raise

    def end(self) -> None:
        """The last group is closed."""
        self._messenger.end()
