# SPDX-License-Identifier: Apache-2.0
"""The replicas of a strategy: which of them run in this process, and how to reach the others."""

from dataclasses import dataclass
from typing import Self

from distinput.distribute.devices.devices import Devices
from distinput.distribute.peers import Peers

__all__ = ["Replicas"]


@dataclass(frozen=True)
class Replicas:
    """All replicas of a strategy, as one of its workers sees them. Strategies make it; input and arithmetic take it.

    Args:
      devices: the devices of this process, one for each of its replicas.
      peers: all workers, this one included; None for a strategy of one process.
      count: how many replicas run in this process.
      first: the number of the first of these among all replicas.
      total: the number of replicas over all workers.

    >>> from distinput.distribute.devices import open_devices
    >>> replicas = Replicas.of(open_devices("threads", ["CPU:0", "CPU:1"]))
    >>> replicas.count, replicas.first, replicas.total, replicas.workers, replicas.wraps
    (2, 0, 2, 1, True)
    """

    devices: Devices
    peers: Peers | None
    count: int
    first: int
    total: int

    @classmethod
    def of(cls, devices: Devices, peers: Peers | None = None) -> Self:
        """The replicas on these devices and on the devices of the other workers."""
        count = len(devices.local)
        if peers is None:
            return cls(devices, None, count, 0, count)
        return cls(devices, peers, count, peers.first_replica, sum(peers.replicas))

    @property
    def workers(self) -> int:
        """The number of processes that the replicas run in."""
        return 1 if self.peers is None else self.peers.size

    @property
    def rank(self) -> int:
        """The number of this process among the workers."""
        return 0 if self.peers is None else self.peers.rank

    @property
    def wraps(self) -> bool:
        """True if values of replicas are distributed values, even for one replica."""
        return self.count > 1 or self.peers is not None
