# SPDX-License-Identifier: Apache-2.0
"""`resolve`: the rank of this process and the number of processes, from arguments and the launcher's variables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.kubernetes import KubernetesClusterResolver
from distinput.cluster.launchers import (
    JaxClusterResolver,
    OpenMPIClusterResolver,
    PMIClusterResolver,
    PMIxClusterResolver,
    SimpleClusterResolver,
    TorchrunClusterResolver,
)
from distinput.cluster.resolver import (
    ClusterResolver,
    Environ,
    LaunchedClusterResolver,
    UnionResolver,
    current,
    text,
    workers_of,
)
from distinput.cluster.slurm import SlurmClusterResolver
from distinput.cluster.tf_config import TFConfigClusterResolver
from distinput.cluster.topology import (
    Cluster,
    Sighting,
    checked,
    id_in_cluster,
    neighbours,
    task_at,
    worker_addresses,
    worker_count,
)

# ----------------------------------------------------------------------------
# Whether two descriptions of the cluster in one environment contradict each other.
# ----------------------------------------------------------------------------


_ALLOCATIONS = ("slurm", "kubernetes")
"""Sources that may describe just the single shell or pod from which other processes are started."""


def contradicts(found: Cluster, seen: Sighting, environ: Environ) -> bool:
    """True if a later source contradicts the description in use.

    Only variables set by hand are compared: TF_CONFIG, and RANK with WORLD_SIZE if torchrun did not set them. Launchers
    may start one another, such as srun one torchrun on each machine; then both are right, and the inner one is used.

    Args:
      found: the description in use.
      seen: the description by a source that comes later in the order.
      environ: the environment variables.
    """
    if seen.rank is None or seen.size is None or (seen.source in _ALLOCATIONS and seen.size == 1):
        return False
    if found.source == "tf_config":
        counts = {job: found.jobs.num_tasks(job) for job in found.jobs.jobs}
        least = sum(count for job, count in counts.items() if job != "evaluator")
        together = not counts.keys() <= {"chief", "worker"} and least <= seen.size <= least + 1
        if found.task_type not in ("chief", "worker") or together:
            return False  # parameter servers and evaluators, which are numbered separately, may be started by it too
        return (seen.rank, seen.size) != (found.rank, found.size)
    if found.source == "torchrun" and text(environ, "TORCHELASTIC_RUN_ID") is None:
        each, rest = divmod(found.size, seen.size)  # every process of the outer launcher may have started this many
        return bool(rest) or found.rank // each != seen.rank
    return False


# The sources in order: variables set by hand, then the launcher nearest to the process.
SOURCES: tuple[type[TFConfigClusterResolver] | type[LaunchedClusterResolver], ...] = (
    TFConfigClusterResolver,
    TorchrunClusterResolver,
    OpenMPIClusterResolver,
    PMIClusterResolver,
    PMIxClusterResolver,
    JaxClusterResolver,
    SlurmClusterResolver,
    KubernetesClusterResolver,
)

RESOLVERS: dict[str, type[ClusterResolver]] = {
    each.source: each for each in sorted((*SOURCES, SimpleClusterResolver, UnionResolver), key=lambda each: each.source)
}

_NOBODY = Sighting("explicit")


def resolve(
    environ: Environ | None = None,
    *,
    resolver: ClusterResolver | None = None,
    cluster_spec: ClusterSpec | Mapping[str, Any] | None = None,
    task_type: str | None = None,
    task_id: int | None = None,
    rank: int | None = None,
    size: int | None = None,
    local_rank: int | None = None,
    local_size: int | None = None,
    coordinator: str | None = None,
) -> Cluster:
    """Find out the rank of this process and the number of processes. Reads only the mapping, and changes nothing.

    Arguments take precedence. `rank` and `size` together, a `cluster_spec` with a task, or a `resolver` are complete,
    and the environment is not read (except for the coordinator, if that was not given). Otherwise the rest is read from
    the first of these sources: TF_CONFIG, torchrun, Open MPI, PMI, PMIx, JAX, the Slurm step, the Kubernetes indexed
    Job. If none of them describes a cluster, this is a single process.

    Two contradictory descriptions are an error if the first one was set by hand: TF_CONFIG against a launcher, or RANK
    and WORLD_SIZE without torchrun against another launcher. Launchers that start one another are no error: the one
    nearest to the process is used.

    Some sources are incomplete: JAX_COORDINATOR_ADDRESS, and MASTER_ADDR with MASTER_PORT if RANK is not set, give only
    the coordinator; PMIX_RANK gives only the rank. They are combined with the sources after them.

    Args:
      environ: the variables to read; those of the process by default.
      resolver: a resolver to use instead of the environment.
      cluster_spec: the tasks of the cluster.
      task_type: the job of this process.
      task_id: its number in that job.
      rank: its number among the chief and the workers.
      size: the number of chiefs and workers.
      local_rank: its number among the processes on its machine.
      local_size: the number of processes on its machine.
      coordinator: the "host:port" at which they meet.

    Raises:
      ValueError: arguments contradict the environment, or two descriptions in it contradict each other; a source is
        incomplete and no other supplies the rest; a variable is malformed.
      RuntimeError: the launcher of `resolver` did not start this process.

    >>> import distinput as di
    >>> resolve = di.distribute.cluster_resolver.resolve
    >>> environ = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    >>> cluster = resolve(environ, coordinator="a:29500")
    >>> cluster.rank, cluster.size, cluster.source, cluster.coordinator
    (1, 3, 'open_mpi', 'a:29500')
    >>> resolve({}).source
    'single'
    >>> resolve(environ, size=4)
    Traceback (most recent call last):
    ValueError: resolve: size=4 was given, but open_mpi says OMPI_COMM_WORLD_SIZE=3; ...

    Source: distinput's own.
    """
    for name, value in {"rank": rank, "size": size, "local_rank": local_rank, "local_size": local_size}.items():
        least = 1 if name.endswith("size") else 0
        if value is not None and value < least:
            raise ValueError(f"resolve: {name} must be at least {least}, got {value}")
    environ = current(environ)
    jobs = None if cluster_spec is None else ClusterSpec(cluster_spec)
    task = ", ".join(f"{n}={v!r}" for n, v in (("task_type", task_type), ("task_id", task_id)) if v is not None)
    told = Sighting(
        "explicit", rank, size, local_rank, local_size, jobs or None, task_type, task_id, coordinator,
        words={"task": task, "jobs": f"cluster_spec={jobs.as_dict() if jobs else None}"},
    )  # fmt: skip
    if jobs is not None and resolver is not None:
        raise ValueError("resolve: a resolver and a cluster_spec were given; give only one of them")
    if resolver is not None:
        return _from_resolver(told, resolver)
    found = _settle(told, _NOBODY, _meeting_place(environ))
    return found or _from_environment(told, environ)


def resolver_of(cluster: Cluster, environ: Environ | None = None) -> ClusterResolver:
    """A resolver with the results of `resolve`, for `strategy.cluster_resolver`.

    Without a cluster, or if the cluster is that of TF_CONFIG, it reads TF_CONFIG, as the resolvers of TensorFlow's
    strategies do.
    """
    tf_config = TFConfigClusterResolver(environ=environ)
    task = cluster.task_type, cluster.task_id
    known = cluster.source == "tf_config" and (tf_config.task_type, tf_config.task_id) == task
    if known or cluster.source == "single":
        return tf_config
    return SimpleClusterResolver(cluster.jobs, task_type=cluster.task_type, task_id=cluster.task_id)


def _from_resolver(told: Sighting, resolver: ClusterResolver) -> Cluster:
    spec = resolver.cluster_spec()
    seen = resolver.sighting()
    if not spec or seen is None:
        return _settle(told, _NOBODY) or _alone(told)
    seen = replace(seen, jobs=spec, task_type=resolver.task_type, task_id=resolver.task_id)
    found = _settle(told, seen)
    if found is None:
        raise ValueError(
            f"resolve: {seen.say('jobs')}, but not which of its tasks this process is; give task_type and task_id"
        )
    return found


def _from_environment(told: Sighting, environ: Environ) -> Cluster:
    parts: list[Sighting] = []
    for number, source in enumerate(SOURCES):
        sighting = source(environ=environ).sighting()
        if sighting is None:
            continue
        hint = next((part.coordinator for part in parts if part.coordinator), None)
        cluster = _settle(told, sighting, hint)
        if cluster is None:
            if sighting.source == "tf_config":
                raise ValueError(
                    f"resolve: {sighting.say('jobs')}, but not which of its tasks this process is; add "
                    '"task": {"type": "worker", "index": 0} to TF_CONFIG, or give task_type and task_id'
                )
            parts.append(sighting)
            continue
        for part in parts:
            if told.rank is None and part.rank is not None and part.rank != sighting.rank:
                raise ValueError(
                    f"resolve: {part.say('rank')}, but {sighting.say('rank')}; give rank and size to say which one holds"
                )
        if (told.rank, told.size, told.jobs, told.task_type, told.task_id) == (None,) * 5:
            _check_rivals(cluster, sighting, number, environ)
        return cluster
    # MASTER_ADDR alone is often exported in a shell that runs a single process; the other variables imply a cluster.
    missing = [part for part in parts if part.rank is not None or part.size is not None or part.source == "jax"]
    if missing:
        says = ", ".join(part.say(next(iter(part.words))) for part in missing)
        raise ValueError(
            f"resolve: {says}: there is a cluster, but the rank of this process or the number of processes is unknown; "
            "give rank and size" + (", or set DISTINPUT_NUM_WORKERS" if missing[-1].source == "kubernetes" else "")
        )
    return _alone(told)


def _check_rivals(found: Cluster, seen: Sighting, number: int, environ: Environ) -> None:
    """Raise if a later source contradicts the description in use."""
    for other in SOURCES[number + 1 :]:
        try:
            rival = other(environ=environ).sighting()
        except ValueError:  # a source that is not used may be malformed
            continue
        if rival is None or not contradicts(found, rival, environ):
            continue
        how = ("jobs", "task") if seen.source == "tf_config" else ("rank", "size")
        said = ", ".join(seen.words[name] for name in how) + " in TF_CONFIG" * (seen.source == "tf_config")
        raise ValueError(
            f"resolve: there are two clusters in this environment: {seen.source} says {said}: rank {found.rank} of "
            f"{found.size}, but {rival.source} says {rival.words['rank']}, {rival.words['size']}: rank {rival.rank} of "
            f"{rival.size}. Remove the variables that do not hold, or say which ones do: "
            f"cluster_resolver={SOURCES[number].__name__}() or {other.__name__}() of distribute.cluster_resolver"
        )


def _alone(told: Sighting) -> Cluster:
    """A single process, unless the arguments imply a cluster."""
    if told.jobs is not None:
        found = _settle(replace(told, jobs=None), replace(_NOBODY, jobs=told.jobs))
        if found is not None:
            return found
        raise ValueError(
            f"resolve: {_said(told, 'jobs')}, but the task of this process is unknown; give task_type and task_id"
        )
    if told.task_type is not None or told.task_id is not None:
        raise ValueError(f"resolve: {_said(told, 'task')}, but the cluster is unknown; give cluster_spec")
    if told.rank is not None:
        raise ValueError(f"resolve: {_said(told, 'rank')}, but the number of processes is unknown; give size")
    if told.size not in (None, 1):
        raise ValueError(f"resolve: {_said(told, 'size')}, but the rank of this process is unknown; give rank")
    local_size = 1 if told.local_size is None else told.local_size
    return Cluster(0, 1, told.local_rank or 0, local_size, coordinator=told.coordinator, source="single")


def _meeting_place(environ: Environ) -> str | None:
    """The descriptions by sources that know only the coordinator."""
    address = JaxClusterResolver(environ=environ).sighting()
    host, port = text(environ, "MASTER_ADDR"), text(environ, "MASTER_PORT")
    torch = f"{host}:{port}" if host and port else None
    return torch or (address.coordinator if address else None)


def _settle(told: Sighting, seen: Sighting, hint: str | None = None) -> Cluster | None:
    """The arguments combined with the description by one source; None if the two together are incomplete."""
    if told.size is not None and seen.size is not None and told.size != seen.size:
        raise _conflict(told, "size", seen, "size")
    coordinator = told.coordinator or hint or seen.coordinator
    jobs = told.jobs or seen.jobs
    size = seen.size if told.size is None else told.size
    if jobs is None and (size is None or size < 1):
        return None
    anonymous = Sighting("", size=size, coordinator=coordinator)
    task = _task(told, seen, jobs or workers_of(anonymous))
    if task is None:
        return None
    jobs = jobs or workers_of(anonymous)
    rank, count = _place(told, seen, jobs, *task)
    if told.rank is not None and told.rank != rank:
        raise ValueError(
            f"resolve: {_said(told, 'rank')}, but task {task[1]} of job {task[0]!r} has rank {rank} in {jobs}; give one of them"
        )
    if told.size is not None and told.size != count:
        raise _conflict(told, "size", told if told.jobs else seen, "jobs")
    local_rank, local_size = _local(told, seen, jobs, task[0], rank, count)
    addresses = worker_addresses(jobs)
    leader = addresses[0] if addresses and task[0] in ("chief", "worker") else ""
    # Addresses from arguments take precedence over coordinators from other sources.
    meeting = told.coordinator or (leader if told.jobs else "") or coordinator or leader or None
    return Cluster(rank, count, local_rank, local_size, jobs, *task, meeting, seen.source, seen.restart_count)


def _task(told: Sighting, seen: Sighting, jobs: ClusterSpec) -> tuple[str, int] | None:
    """The job of this process and its number there; None if unknown."""
    workers = len(worker_addresses(jobs))
    if told.task_type is not None or told.task_id is not None:
        job = told.task_type or seen.task_type or (jobs.jobs[0] if len(jobs.jobs) == 1 else None)
        if told.task_id is not None:
            index: int | None = told.task_id
        else:
            one = job is None or job not in jobs.jobs or jobs.num_tasks(job) == 1
            index = seen.task_id if job == seen.task_type and seen.task_id is not None else 0 if one else None
        return None if job is None or index is None else (job, index)
    if told.rank is not None:
        if told.rank >= workers:
            if told.jobs is not None or told.size is not None:
                raise _conflict(told, "rank", told, "size" if told.jobs is None else "jobs")
            raise _conflict(told, "rank", seen, "jobs" if seen.size is None else "size")
        return task_at(jobs, told.rank)
    if seen.rank is not None and (told.jobs is not None or seen.task_type is None):
        if told.jobs is not None and seen.size not in (None, workers):
            raise _conflict(told, "jobs", seen, "size")
        if seen.rank >= workers:
            raise ValueError(f"resolve: {seen.say('rank')} and {seen.say('size')} cannot both hold; ranks are from 0")
        return task_at(jobs, seen.rank)
    if seen.task_type is not None and seen.task_id is not None:
        return seen.task_type, seen.task_id
    if seen.jobs is not None and len(jobs.jobs) == 1 and jobs.num_tasks(jobs.jobs[0]) == 1:
        return jobs.jobs[0], jobs.task_indices(jobs.jobs[0])[0]
    return None


def _place(told: Sighting, seen: Sighting, jobs: ClusterSpec, task_type: str, task_id: int) -> tuple[int, int]:
    """(rank, size) of a task among the tasks it computes with."""
    try:
        if task_type == "ps":
            checked(jobs, task_type, task_id)
            return task_id, jobs.num_tasks(task_type)
        return id_in_cluster(jobs, task_type, task_id), worker_count(jobs, task_type)
    except ValueError as error:
        cluster = _said(told, "jobs") if told.jobs else seen.say("jobs" if seen.jobs else "size")
        by_hand = told.task_type is not None or told.task_id is not None
        task = _said(told, "task") if by_hand else seen.say("task")
        raise ValueError(f"resolve: {cluster}, and {task}; they cannot both hold: {error}") from error


def _local(told: Sighting, seen: Sighting, jobs: ClusterSpec, task_type: str, rank: int, size: int) -> tuple[int, int]:
    """(local rank, local size): from arguments, else from the launcher, else counted among tasks with the same host."""
    if (seen.rank, seen.size) == (rank, size) and seen.local_rank is not None:
        local_rank, local_size = seen.local_rank, seen.local_size or seen.local_rank + 1
    elif task_type in ("chief", "worker"):
        local_rank, local_size = neighbours(worker_addresses(jobs), rank)
    else:
        local_rank, local_size = 0, 1
    if told.local_rank is not None and told.local_size is None:
        if seen.local_size is not None and told.local_rank >= seen.local_size:
            raise _conflict(told, "local_rank", seen, "local_size")
        return told.local_rank, max(local_size, told.local_rank + 1)
    if told.local_size is not None and told.local_rank is None and local_rank >= told.local_size:
        raise _conflict(told, "local_size", seen, "local_rank")
    return (
        local_rank if told.local_rank is None else told.local_rank,
        local_size if told.local_size is None else told.local_size,
    )


def _said(told: Sighting, name: str) -> str:
    """An argument in words: "rank=1 was given"."""
    return f"{told.words.get(name) or f'{name}={getattr(told, name)}'} was given"


def _conflict(told: Sighting, name: str, seen: Sighting, other: str) -> ValueError:
    if seen is told:
        return ValueError(f"resolve: {_said(told, name)} and {_said(told, other)}; they cannot both hold")
    return ValueError(
        f"resolve: {_said(told, name)}, but {seen.say(other)}; do not give the former, or give rank and size together to "
        "leave the environment out"
    )
