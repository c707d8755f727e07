# SPDX-License-Identifier: Apache-2.0
"""The tasks of a Slurm step."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice, product
from math import prod
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import Environ, LaunchedClusterResolver, natural, text
from distinput.cluster.topology import Sighting

# ----------------------------------------------------------------------------
# Expands Slurm's short notation for many hosts or numbers.
# ----------------------------------------------------------------------------


MOST_HOSTS = 1_000_000
"""More hosts than any cluster has; a list of more is a mistake that would fill the memory."""

_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_COUNT = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")


def expand_hostlist(hostlist: str) -> list[str]:
    """The hosts named by a Slurm hostlist, in its order.

    Args:
      hostlist: names with ranges in brackets, separated by commas. A name may have several brackets, and text before,
        between and after them; the last bracket runs fastest. "01" keeps its leading zeros.

    Raises:
      ValueError: unbalanced brackets, a range that is malformed or runs backwards, or more than a million hosts.

    >>> expand_hostlist("n[9-11],login")
    ['n9', 'n10', 'n11', 'login']
    >>> expand_hostlist("rack[1-2]-n[01,03]-ib")
    ['rack1-n01-ib', 'rack1-n03-ib', 'rack2-n01-ib', 'rack2-n03-ib']

    Source: the meaning is that of `scontrol show hostnames`.
    """
    hosts: list[str] = []
    for name in _names(hostlist):
        if not name:
            raise _wrong(hostlist, "a name between two commas is empty")
        texts = _BRACKETS.sub("[]", name).split("[]")
        brackets = [list(_numbers(inside, hostlist)) for inside in _BRACKETS.findall(name)]
        if len(hosts) + prod(map(len, brackets)) > MOST_HOSTS:
            raise _wrong(hostlist, f"it names more than {MOST_HOSTS} hosts")
        hosts.extend(
            texts[0] + "".join(number + text for number, text in zip(chosen, texts[1:], strict=True))
            for chosen in product(*brackets)
        )
    return hosts


def expand_counts(counts: str) -> list[int]:
    """The numbers in Slurm's notation "2(x3),1".

    Raises:
      ValueError: anything else.

    >>> expand_counts("2(x3),1")
    [2, 2, 2, 1]

    Source: the form is that of SLURM_TASKS_PER_NODE.
    """
    numbers: list[int] = []
    for part in counts.split(","):
        match = _COUNT.fullmatch(part.strip())
        if match is None or len(numbers) + int(match[2] or 1) > MOST_HOSTS:
            raise ValueError(f"slurm: counts must have the form '2(x3),1', got {counts!r}")
        numbers += [int(match[1])] * int(match[2] or 1)
    return numbers


def _names(hostlist: str) -> list[str]:
    """The parts between commas outside brackets."""
    if {"[", "]"} & {*_BRACKETS.sub("", hostlist)}:
        raise _wrong(hostlist, "its brackets do not match")
    kept = _BRACKETS.sub(lambda match: match[0].replace(",", "\0"), hostlist)
    return [name.strip().replace("\0", ",") for name in kept.split(",")] if hostlist.strip() else []


def _numbers(inside: str, hostlist: str) -> Iterator[str]:
    total = 0
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise _wrong(hostlist, f"{part!r} is not a number nor a range such as 1-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _wrong(hostlist, f"the range {part!r} runs backwards")
        total += last - first + 1
        if total > MOST_HOSTS:
            raise _wrong(hostlist, f"it names more than {MOST_HOSTS} hosts")
        width = len(match[1])
        yield from (f"{number:0{width}d}" for number in range(first, last + 1))


def _wrong(hostlist: str, why: str) -> ValueError:
    return ValueError(f"slurm: a hostlist must have the form 'n[1-3,7],m[01-02]-ib', got {hostlist!r}: {why}")


class SlurmClusterResolver(LaunchedClusterResolver):
    """Reads the variables that `srun` sets for the tasks of a step; those of the job would count a batch script too.

    Hosts keep Slurm's order (n9 before n10). The resolver starts no program: it counts no GPUs that it was not told of.

    Args:
      jobs: how many tasks each job has, in the order of ranks; all tasks are workers by default.
      port_base: the port of the first task of each host; the next tasks use the ports after it.
      gpus_per_node: the number of GPUs of a host; needed only for `num_accelerators`.
      gpus_per_task: the number of GPUs of a task; by default the tasks of a host share `gpus_per_node`.
      tasks_per_node: how many tasks each host runs, a number or "2(x3),1"; SLURM_STEP_TASKS_PER_NODE by default.
      auto_set_gpu: let `cluster_spec` set CUDA_VISIBLE_DEVICES to the GPUs of this task, where their number is given and
        nothing else has set it, such as `srun --gpus-per-task`. A program that has already opened its GPUs does not
        notice.
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, this process is not a task of a step.
      ValueError: on access, variables contradict each other, or `jobs` has another number of tasks.

    >>> import distinput as di
    >>> environ = {
    ...     "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "3",
    ...     "SLURM_STEP_NODELIST": "n[9-10]", "SLURM_STEP_TASKS_PER_NODE": "2,1",
    ... }
    >>> resolver = di.distribute.cluster_resolver.SlurmClusterResolver(environ=environ)
    >>> resolver.task_id, resolver.cluster_spec().as_dict()
    (2, {'worker': ['n9:8888', 'n9:8889', 'n10:8888']})

    Source: `tf.distribute.cluster_resolver.SlurmClusterResolver`.
    """

    source = "slurm"
    started_by = "srun (SLURM_PROCID and SLURM_STEP_NUM_TASKS are set in the tasks of a step, not in a batch script)"

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | str | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
        *,
        environ: Environ | None = None,
    ) -> None:
        super().__init__(rpc_layer, environ=environ)
        self._jobs = None if jobs is None else dict(jobs)
        self._port_base, self._tasks_per_node = port_base, tasks_per_node
        self._gpus_per_node, self._gpus_per_task, self._auto_set_gpu = gpus_per_node, gpus_per_task, auto_set_gpu

    def cluster_spec(self) -> ClusterSpec:
        spec = super().cluster_spec()
        if self._auto_set_gpu and self._given is None:
            count, local = self.num_accelerators().get("GPU", 0), self.seen().local_rank
            if count and local is not None:
                mine = range(local * count, (local + 1) * count)
                os.environ.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, mine)))
        return spec

    def get_task_info(self) -> tuple[str | None, int | None]:
        """(`task_type`, `task_id`) of this process.

        Source: `tf.distribute.cluster_resolver.SlurmClusterResolver.get_task_info`.
        """
        return self.task_type, self.task_id

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The GPUs of this task, as given to the resolver; none if nothing was given."""
        per_task = self._gpus_per_task
        if per_task is None and self._gpus_per_node is not None:
            per_task = self._gpus_per_node // (self.seen().local_size or 1)
        return {"GPU": per_task} if per_task else {}

    def sighting(self) -> Sighting | None:
        environ, source = self._environ, self.source
        rank = natural(environ, "SLURM_PROCID", source)
        size = natural(environ, "SLURM_STEP_NUM_TASKS", source, 1)
        if rank is None or size is None:
            return None
        if rank >= size:
            raise ValueError(f"slurm: SLURM_PROCID={rank} must be below SLURM_STEP_NUM_TASKS={size}")
        hosts = expand_hostlist(environ.get("SLURM_STEP_NODELIST", ""))
        nodes = self._nodes(rank, size, hosts)
        local, has_nodes = _local_ranks(nodes), bool(nodes)
        addresses = [f"{hosts[n]}:{self._port_base + i}" for n, i in zip(nodes, local, strict=True)] or [""] * size
        spec, task_type, task_id = self._tasks(addresses, rank)
        job = natural(environ, "SLURM_JOB_ID", source) or 0
        return Sighting(
            source,
            rank=rank,
            size=size,
            local_rank=local[rank] if has_nodes else natural(environ, "SLURM_LOCALID", source),
            local_size=nodes.count(nodes[rank]) if has_nodes else None,
            jobs=spec,
            task_type=task_type,
            task_id=task_id,
            # Jobs that share a host must not share a port: each gets one of 4,096, as in JAX.
            coordinator=f"{hosts[nodes[0]]}:{61440 + job % 4096}" if has_nodes and self._jobs is None else None,
            restart_count=natural(environ, "SLURM_RESTART_COUNT", source) or 0,
            words=dict.fromkeys(("rank", "task"), f"SLURM_PROCID={rank}")
            | dict.fromkeys(("size", "jobs"), f"SLURM_STEP_NUM_TASKS={size}"),
        )

    def _nodes(self, rank: int, size: int, hosts: Sequence[str]) -> list[int]:
        """For every rank the number of its host; empty if unknown."""
        environ = self._environ
        distribution = (text(environ, "SLURM_DISTRIBUTION") or "block").split(":")[0].split(",")[0].split("=")[0]
        if not hosts or distribution == "arbitrary":
            return []
        asked = self._tasks_per_node
        given = text(environ, "SLURM_STEP_TASKS_PER_NODE") if asked is None else asked
        if given is None and len(hosts) > 1:
            return []
        counts = [given] * len(hosts) if isinstance(given, int) else [size] if given is None else expand_counts(given)
        if len(counts) != len(hosts) or sum(counts) != size:
            raise ValueError(
                f"slurm: the tasks of all hosts must add up to SLURM_STEP_NUM_TASKS={size}, got tasks per node {given!r} "
                f"for {len(hosts)} hosts; give tasks_per_node"
            )
        plane = natural(environ, "SLURM_DIST_PLANESIZE", self.source, 1) or 1 if distribution == "plane" else 1
        nodes = deal_tasks(counts, None if distribution not in ("cyclic", "plane") else plane)
        node = natural(environ, "SLURM_NODEID", self.source)
        if node is not None and node != nodes[rank]:
            raise ValueError(
                f"slurm: rank {rank} must run on host number {nodes[rank]} ({hosts[nodes[rank]]}) when tasks are dealt by "
                f"{distribution!r}, got SLURM_NODEID={node}; set SLURM_DISTRIBUTION to how the step deals its tasks, or "
                "name the cluster in TF_CONFIG"
            )
        return nodes

    def _tasks(self, addresses: Sequence[str], rank: int) -> tuple[ClusterSpec, str, int]:
        """The cluster, and the task that has this rank."""
        jobs = {"worker": len(addresses)} if self._jobs is None else self._jobs
        if sum(jobs.values()) != len(addresses):
            raise ValueError(
                f"slurm: jobs must have as many tasks as the step, SLURM_STEP_NUM_TASKS={len(addresses)}, got "
                f"{sum(jobs.values())} in {jobs}"
            )
        remaining = iter(addresses)
        spec = {job: list(islice(remaining, count)) for job, count in jobs.items()}
        owners = [(job, index) for job, count in jobs.items() for index in range(count)]
        return ClusterSpec(spec), *owners[rank]


def deal_tasks(counts: Sequence[int], plane: int | None = None) -> list[int]:
    """For every rank the number of its host, if the hosts run `counts` tasks.

    Args:
      counts: how many tasks each host runs.
      plane: None fills one host after the other ("block"); a number gives that many tasks to every host in turn
        ("plane"; 1 is "cyclic").

    >>> deal_tasks([2, 1]), deal_tasks([2, 1], plane=1)
    ([0, 0, 1], [0, 1, 0])

    Source: the meaning is that of `srun --distribution`.
    """
    left = list(counts)
    nodes: list[int] = []
    while any(left):
        for node, free in enumerate(left):
            taken = free if plane is None else min(free, plane)
            nodes += [node] * taken
            left[node] -= taken
    return nodes


def _local_ranks(nodes: Sequence[int]) -> list[int]:
    """For every rank its number among the ranks on its host."""
    seen: defaultdict[int, Iterator[int]] = defaultdict(count)
    return [next(seen[node]) for node in nodes]
