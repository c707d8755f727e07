# SPDX-License-Identifier: Apache-2.0
"""The place of this process in its cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.roles import worker_addresses

__all__ = ["Cluster", "Sighting", "host_of", "neighbours"]


@dataclass(frozen=True)
class Cluster:
    """The place of this process among those that compute together.

    Args:
      rank: the number of this process, from 0, among the chief and the workers; an evaluator is on its own; parameter
        servers are numbered separately.
      size: the number of processes that compute together.
      local_rank: the number of this process among those on its machine.
      local_size: the number of these processes on its machine.
      jobs: all tasks of the cluster with their addresses; empty in a single process. An empty address is not known.
      task_type: the job of this process; None in a single process.
      task_id: its number in that job; None in a single process.
      coordinator: the "host:port" at which processes may meet; None if unknown.
      source: the source of the description: "explicit", a name of `RESOLVERS`, the class of your own resolver, or
        "single".
      restart_count: how many times the launcher has restarted the job.

    Raises:
      ValueError: a rank that is not below its size, on the machine or in the cluster.

    >>> import distinput as di
    >>> cluster = di.distribute.cluster_resolver.resolve({"RANK": "1", "WORLD_SIZE": "2"})
    >>> cluster.rank, cluster.size, cluster.is_chief, cluster.source
    (1, 2, False, 'torchrun')

    Source: distinput's own.
    """

    rank: int
    size: int
    local_rank: int = 0
    local_size: int = 1
    jobs: ClusterSpec = field(default_factory=lambda: ClusterSpec({}))
    task_type: str | None = None
    task_id: int | None = None
    coordinator: str | None = None
    source: str = "explicit"
    restart_count: int = 0

    def __post_init__(self) -> None:
        for rank, size in (("rank", "size"), ("local_rank", "local_size")):
            if not 0 <= getattr(self, rank) < getattr(self, size):
                raise ValueError(
                    f"Cluster: {rank} must be from 0 to {size} - 1, got {rank}={getattr(self, rank)} and "
                    f"{size}={getattr(self, size)} from {self.source}"
                )
        if self.local_size > self.size:
            raise ValueError(
                f"Cluster: local_size must be at most size, got local_size={self.local_size} and size={self.size} from "
                f"{self.source}"
            )

    @property
    def is_chief(self) -> bool:
        """True for the process that writes checkpoints and logs for all of them, and for an evaluator."""
        return self.rank == 0 and self.task_type != "ps"

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the chief and the workers by rank; empty strings if unknown."""
        return tuple(worker_addresses(self.jobs))


@dataclass(frozen=True)
class Sighting:
    """The description of the cluster by one source; fields it does not know are None.

    `words` quotes the source, for messages: {"size": "WORLD_SIZE=2"}.
    """

    source: str
    rank: int | None = None
    size: int | None = None
    local_rank: int | None = None
    local_size: int | None = None
    jobs: ClusterSpec | None = None
    task_type: str | None = None
    task_id: int | None = None
    coordinator: str | None = None
    restart_count: int = 0
    words: Mapping[str, str] = field(default_factory=dict)

    def say(self, name: str) -> str:
        """A fact as the source states it: "torchrun says WORLD_SIZE=2"."""
        return f"{self.source} says {self.words.get(name) or f'{name}={getattr(self, name)}'}"


def host_of(address: str) -> str:
    """The host of "host:port", also of "[::1]:port"."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdigit() else address


def neighbours(addresses: Sequence[str], rank: int) -> tuple[int, int]:
    """(local rank, local size) of a task: its place among the tasks with the same host."""
    if not addresses[rank]:
        return 0, 1
    hosts = [host_of(address) for address in addresses]
    return hosts[:rank].count(hosts[rank]), hosts.count(hosts[rank])
