# SPDX-License-Identifier: Apache-2.0
"""The place of this process in its cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# The role of a task in its cluster: its number among the workers, their number, and the leader.
#
# The chief counts as the first worker; without a chief, worker 0 leads. An evaluator is on its own. Parameter servers are
# not counted.
# ----------------------------------------------------------------------------


ClusterSpecLike = ClusterSpec | Mapping[str, Sequence[str] | Mapping[int, str]]

TASK_TYPES = ("chief", "worker", "evaluator", "ps")


def is_chief(cluster_spec: ClusterSpecLike, task_type: str | None, task_id: int) -> bool:
    """True for the task that writes checkpoints and logs: the chief, or worker 0 without one; and for an evaluator.

    Raises:
      ValueError: a cluster or a task that breaks the rules of `id_in_cluster`.

    >>> import distinput as di
    >>> di.distribute.cluster_resolver.is_chief({"worker": ["a:1", "b:1"]}, "worker", 0)
    True
    >>> di.distribute.cluster_resolver.is_chief({"chief": ["c:1"], "worker": ["a:1"]}, "worker", 0)
    False

    Source: `multi_worker_util.is_chief` of TensorFlow.
    """
    spec = checked(cluster_spec, task_type, task_id)
    return task_type in ("chief", "evaluator") or (task_type == "worker" and task_id == 0 and "chief" not in spec.jobs)


def worker_count(cluster_spec: ClusterSpecLike, task_type: str | None) -> int:
    """The number of tasks that compute together with one of this type: the chief and the workers; 1 for an evaluator.

    Raises:
      ValueError: a parameter server, which does not compute, or a cluster that breaks the rules of `id_in_cluster`.

    >>> import distinput as di
    >>> di.distribute.cluster_resolver.worker_count({"chief": ["c:1"], "worker": ["a:1", "b:1"]}, "worker")
    3

    Source: `multi_worker_util.worker_count` of TensorFlow.
    """
    spec = checked(cluster_spec, task_type, 0)
    if task_type not in ("chief", "worker", "evaluator"):
        raise ValueError(
            f"worker_count: Unexpected `task_type` {task_type!r}; only 'chief', 'worker' and 'evaluator' are counted"
        )
    return 1 if task_type == "evaluator" else _count(spec, "chief") + _count(spec, "worker")


def id_in_cluster(cluster_spec: ClusterSpecLike, task_type: str | None, task_id: int) -> int:
    """The number of a task among those it computes with: the chief is 0, workers follow; an evaluator keeps its own.

    Raises:
      ValueError: a job that is not chief, worker, evaluator or ps; more than one chief or evaluator; a task that is
        not in the cluster; workers whose indices have gaps; a parameter server, which has no number.

    >>> import distinput as di
    >>> cluster = {"chief": ["c:1"], "worker": ["a:1", "b:1"]}
    >>> [di.distribute.cluster_resolver.id_in_cluster(cluster, "worker", i) for i in range(2)]
    [1, 2]

    Source: `multi_worker_util.id_in_cluster` of TensorFlow.
    """
    spec = checked(cluster_spec, task_type, task_id)
    match task_type:
        case "chief":
            return 0
        case "worker":
            return task_id + _count(spec, "chief")
        case "evaluator":
            return task_id
    raise ValueError(
        f"id_in_cluster: There is no id for task_type {task_type!r}; only 'chief', 'worker' and 'evaluator' have one"
    )


def collective_leader(cluster_spec: ClusterSpecLike, task_type: str | None, task_id: int) -> str:
    """The name of the task that leads collective operations; empty without a cluster and for an evaluator.

    Raises:
      ValueError: a cluster or a task that breaks the rules of `id_in_cluster`, or no chief and no worker.

    >>> import distinput as di
    >>> di.distribute.cluster_resolver.collective_leader({"worker": ["a:1", "b:1"]}, "worker", 1)
    '/job:worker/replica:0/task:0'

    Source: `multi_worker_util.collective_leader` of TensorFlow.
    """
    spec = ClusterSpec(cluster_spec)
    if not spec:
        return ""
    checked(spec, task_type, task_id)
    if task_type == "evaluator":
        return ""
    for job in ("chief", "worker"):
        if job in spec.jobs:
            return f"/job:{job}/replica:0/task:0"
    raise ValueError(f"collective_leader: the cluster must have a chief or a worker, got the jobs {spec.jobs}")


def task_at(cluster_spec: ClusterSpecLike, rank: int) -> tuple[str, int]:
    """The type and id of the task whose `id_in_cluster` is `rank`."""
    spec = ClusterSpec(cluster_spec)
    chiefs = _count(spec, "chief")
    return ("chief", rank) if rank < chiefs else ("worker", rank - chiefs)


def worker_addresses(cluster_spec: ClusterSpecLike) -> list[str]:
    """The addresses of the chief and the workers by their `id_in_cluster`."""
    spec = ClusterSpec(cluster_spec)
    return [
        spec.task_address(job, index)
        for job in ("chief", "worker")
        if job in spec.jobs
        for index in spec.task_indices(job)
    ]


def checked(cluster_spec: ClusterSpecLike, task_type: str | None, task_id: int) -> ClusterSpec:
    """The cluster, after checking that it and the task obey the rules."""
    spec = ClusterSpec(cluster_spec)
    strange = [job for job in spec.jobs if job not in TASK_TYPES]
    if strange:
        raise ValueError(
            f"cluster: Disallowed task type found in cluster spec: {strange}; allowed are {list(TASK_TYPES)}, got {spec}"
        )
    if task_type is not None and task_type not in TASK_TYPES:
        raise ValueError(f"cluster: Unrecognized task_type: {task_type!r}, valid task types are {list(TASK_TYPES)}")
    if task_type and task_type not in spec.jobs and task_type != "evaluator":
        raise ValueError(f"cluster: `task_type` {task_type!r} not found in cluster_spec; its jobs are {spec.jobs}")
    for job in ("chief", "evaluator"):
        if _count(spec, job) > 1:
            raise ValueError(f"cluster: There must be at most one {job!r} job, got {_count(spec, job)} tasks of it")
    for job in ("chief", "worker"):
        # In a cluster with gaps each task knows only some of the others, so it could not find out its own number.
        if _count(spec, job) and max(spec.task_indices(job)) >= _count(spec, job):
            raise ValueError(
                f"cluster: the tasks of job {job!r} must be numbered from 0 without a gap to compute together, got "
                f"{spec.task_indices(job)}; name all of them in the cluster"
            )
    if task_type in spec.jobs and not 0 <= task_id < spec.num_tasks(task_type):
        raise ValueError(
            f"cluster: The `task_id` {task_id} exceeds the maximum id of {task_type!r}, whose ids are from 0 to "
            f"{spec.num_tasks(task_type) - 1}"
        )
    if task_type == "evaluator" and task_id != 0:
        raise ValueError(f"cluster: The `task_id` {task_id} exceeds the maximum id of 'evaluator', which is 0")
    return spec


def _count(spec: ClusterSpec, job: str) -> int:
    return spec.num_tasks(job) if job in spec.jobs else 0


@dataclass(frozen=True)
class Cluster:
    """The rank of this process among the processes of a job, and their addresses.

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
