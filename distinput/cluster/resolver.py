# SPDX-License-Identifier: Apache-2.0
"""The base classes of cluster resolvers, and a resolver that combines several clusters into one."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.topology import Sighting

# ----------------------------------------------------------------------------
# Environment variables, read with an error that names the variable.
# ----------------------------------------------------------------------------


Environ = Mapping[str, str]


def current(environ: Environ | None) -> Environ:
    """The mapping given, or the current environment of this process."""
    return os.environ if environ is None else environ


def text(environ: Environ, name: str) -> str | None:
    """The value of a variable; None if it is missing or empty."""
    value = environ.get(name, "").strip()
    return value or None


def natural(environ: Environ, name: str, source: str, least: int = 0) -> int | None:
    """The integer in a variable; None if it is missing or empty.

    Raises:
      ValueError: the value is not an integer, or is below `least`.
    """
    value = text(environ, name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or int(value) < least:
        raise ValueError(f"{source}: {name} must be an integer, at least {least}, got {environ[name]!r}")
    return int(value)


# ----------------------------------------------------------------------------
# The base class of cluster resolvers, and that of resolvers that read a launcher's variables.
# ----------------------------------------------------------------------------


def with_rpc_layer(address: str, rpc_layer: str | None) -> str:
    """The address with its protocol: `grpc://host:port`."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


class ClusterResolver(ABC):
    """Describes the tasks of a cluster and the task of this process. A subclass defines `cluster_spec` and `master`.

    >>> import distinput as di
    >>> resolvers = di.distribute.cluster_resolver
    >>> class Two(resolvers.ClusterResolver):
    ...     def cluster_spec(self):
    ...         return resolvers.ClusterSpec({"worker": ["a:1", "b:1"]})
    ...     def master(self, task_type=None, task_id=None, rpc_layer=None):
    ...         return ""
    >>> mine = Two()
    >>> mine.task_type, mine.task_id = "worker", 1
    >>> resolvers.resolve(resolver=mine).rank
    1

    Source: `tf.distribute.cluster_resolver.ClusterResolver`.
    """

    source: ClassVar[str] = ""

    # Defaults for subclasses of users that do not call `__init__`.
    _task_type: str | None = None
    _task_id: int | None = None
    _rpc_layer: str | None = None
    _environment: str | None = ""

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The jobs of the cluster, their tasks and addresses; read again at every call.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.cluster_spec`.
        """

    @abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a task, by default of this one; empty if there is none to connect to.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.master`.
        """

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The number of accelerators of each kind of a task, as given to this resolver; no device is examined.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.num_accelerators`.
        """
        return {}

    @property
    def environment(self) -> str | None:
        """The environment of the program, as a word; empty if not given.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.environment`.
        """
        return self._environment

    @property
    def task_type(self) -> str | None:
        """The job of this process, such as "worker": as it was given or set, else as the resolver finds it.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.task_type`.
        """
        return self._found_task_type() if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        self._task_type = value

    @property
    def task_id(self) -> int | None:
        """The number of this process in its job: as it was given or set, else as the resolver finds it.

        Source: `tf.distribute.cluster_resolver.ClusterResolver.task_id`.
        """
        return self._found_task_id() if self._task_id is None else int(self._task_id)

    @task_id.setter
    def task_id(self, value: int | None) -> None:
        self._task_id = value

    @property
    def rpc_layer(self) -> str | None:
        """The protocol written before an address, such as "grpc": as it was given or set, else as the resolver finds it."""
        return self._found_rpc_layer() if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, value: str | None) -> None:
        self._rpc_layer = value

    def _found_task_type(self) -> str | None:
        """The job of this process where none was set."""
        return None

    def _found_task_id(self) -> int | None:
        """The number of this process where none was set."""
        return None

    def _found_rpc_layer(self) -> str | None:
        """The protocol where none was set."""
        return None

    def sighting(self) -> Sighting | None:
        """The description by this resolver, for `resolve`; None if it finds no cluster."""
        spec = self.cluster_spec()
        if not spec:
            return None
        task_type, task_id = self.task_type, self.task_id
        words = {
            "size": f"cluster_spec()={spec.as_dict()}",
            "jobs": f"cluster_spec()={spec.as_dict()}",
            "task": f"task_type={task_type!r}, task_id={task_id}",
        }
        return Sighting(
            self.source or type(self).__name__, jobs=spec, task_type=task_type, task_id=task_id, words=words
        )


def address_of(resolver: ClusterResolver, task_type: str | None, task_id: int | None, rpc_layer: str | None) -> str:
    """The address of a task, by default of this one, with its protocol; empty if it is not known."""
    task_type = resolver.task_type if task_type is None else task_type
    task_id = resolver.task_id if task_id is None else task_id
    if task_type is None or task_id is None:
        return ""
    address = resolver.cluster_spec().task_address(task_type, task_id)
    return address and with_rpc_layer(address, rpc_layer or resolver.rpc_layer)


class LaunchedClusterResolver(ClusterResolver):
    """A resolver that reads the variables that a launcher set for this process, again at every call.

    Every process is a task of the job "worker", and its number there is its rank. If the launcher does not set
    addresses, they are empty strings, so that counts are right.
    """

    started_by: ClassVar[str]

    def __init__(self, rpc_layer: str | None = None, *, environ: Environ | None = None) -> None:
        self._rpc_layer = rpc_layer
        self._given = environ

    @property
    def _environ(self) -> Environ:
        return current(self._given)

    @abstractmethod
    def sighting(self) -> Sighting | None:
        """The description in the variables; None if this launcher did not start the process."""

    def seen(self) -> Sighting:
        """The description in the variables.

        Raises:
          RuntimeError: this launcher did not start the process.
        """
        sighting = self.sighting()
        if sighting is None or sighting.rank is None or sighting.size is None:
            raise RuntimeError(
                f"{type(self).__name__}: this process must have been started by {self.started_by}; without it, name "
                "the cluster with SimpleClusterResolver or in TF_CONFIG"
            )
        return sighting

    def cluster_spec(self) -> ClusterSpec:
        sighting = self.seen()
        return sighting.jobs or workers_of(sighting)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        return address_of(self, task_type, task_id, rpc_layer)

    def _found_task_type(self) -> str | None:
        return self.seen().task_type or "worker"

    def _found_task_id(self) -> int | None:
        sighting = self.seen()
        return sighting.rank if sighting.task_id is None else sighting.task_id


def workers_of(sighting: Sighting) -> ClusterSpec:
    """A worker for each process; only the address of the first one may be known."""
    count = sighting.size or 0
    return ClusterSpec({"worker": [sighting.coordinator or "", *[""] * (count - 1)]})


# ----------------------------------------------------------------------------
# A resolver that combines several clusters into one.
# ----------------------------------------------------------------------------


class UnionResolver(ClusterResolver):
    """The tasks of several resolvers; everything else is taken from the first one.

    Lists of tasks are concatenated. If one resolver numbers the tasks of a job itself, with gaps, all tasks of that job
    keep their numbers.

    Args:
      *args: the resolvers, at least one.
      **kwargs: `task_type`, `task_id`, `rpc_layer`, which replace those of the first resolver; a `task_id` of 0 counts.

    Raises:
      ValueError: no resolver, or an unknown named argument.
      TypeError: something that is not a resolver.

    >>> import distinput as di
    >>> resolvers = di.distribute.cluster_resolver
    >>> one = resolvers.SimpleClusterResolver(resolvers.ClusterSpec({"worker": ["a:1"]}), task_type="worker", task_id=0)
    >>> two = resolvers.SimpleClusterResolver(resolvers.ClusterSpec({"worker": ["b:1"], "ps": ["c:1"]}))
    >>> resolvers.UnionResolver(one, two).cluster_spec().as_dict()
    {'worker': ['a:1', 'b:1'], 'ps': ['c:1']}

    Source: `tf.distribute.cluster_resolver.UnionResolver`.
    """

    source = "union"

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        self._task_type, self._task_id = kwargs.pop("task_type", None), kwargs.pop("task_id", None)
        self._rpc_layer = kwargs.pop("rpc_layer", None)
        if kwargs:
            raise ValueError(
                f"UnionResolver: Unexpected kwargs provided {sorted(kwargs)}; known are task_type, task_id, rpc_layer"
            )
        if not args:
            raise ValueError("UnionResolver: At least one ClusterResolver is required, got none")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    f"UnionResolver: All arguments must be a sub-class of `ClusterResolver`, got "
                    f"{type(resolver).__name__} {resolver!r}"
                )
        self._resolvers = args

    def cluster_spec(self) -> ClusterSpec:
        """The jobs of all resolvers.

        Raises:
          KeyError: two resolvers give the same number to a task of a job that is numbered with gaps.
        """
        specs = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        jobs: dict[str, Any] = {}
        for job in dict.fromkeys(job for spec in specs for job in spec):
            parts = [spec[job] for spec in specs if job in spec]
            if all(isinstance(part, list) for part in parts):
                jobs[job] = [address for part in parts for address in part]
                continue
            jobs[job] = {}
            for part in parts:
                tasks = dict(enumerate(part)) if isinstance(part, list) else part
                twice = sorted(jobs[job].keys() & tasks.keys())
                if twice:
                    raise KeyError(
                        f"UnionResolver: Duplicate keys detected when merging two ClusterSpecs: tasks {twice} of job "
                        f"{job!r} are named twice; number them apart"
                    )
                jobs[job].update(tasks)
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is None or task_id is None:
            return self._resolvers[0].master(rpc_layer=rpc_layer)
        return with_rpc_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        """The environment of the first resolver."""
        return self._resolvers[0].environment

    def _found_task_type(self) -> str | None:
        return self._resolvers[0].task_type

    def _found_task_id(self) -> int | None:
        return self._resolvers[0].task_id

    def _found_rpc_layer(self) -> str | None:
        return self._resolvers[0].rpc_layer
