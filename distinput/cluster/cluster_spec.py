# SPDX-License-Identifier: Apache-2.0
"""`ClusterSpec`: the tasks of a cluster and their addresses."""

import operator
from collections.abc import Mapping
from typing import Any


class ClusterSpec:
    """The jobs of a cluster, their tasks and the tasks' addresses. Immutable.

    Args:
      cluster: a dict from the name of a job to its tasks, which are a list of addresses or a dict from task index to
        address (then indices may be missing); or another `ClusterSpec`. An empty address means that the task exists
        and its address is not known.

    Raises:
      TypeError: not a dict, tasks that are neither a list nor a dict, an address that is not a string, an index that is
        not an integer.
      ValueError: an index below 0.

    >>> import distinput as di
    >>> spec = di.distribute.cluster_resolver.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:3"}})
    >>> spec.as_dict()
    {'worker': ['a:1', 'b:2'], 'ps': {3: 'c:3'}}
    >>> spec.num_tasks("worker"), spec.task_indices("ps"), spec.task_address("worker", 1)
    (2, [3], 'b:2')

    Source: `tf.train.ClusterSpec`.
    """

    __slots__ = ("_tasks",)

    _tasks: dict[str, dict[int, str]]

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            self._tasks = cluster._tasks
        elif isinstance(cluster, Mapping):
            self._tasks = {_job_name(job): _tasks_of(job, tasks) for job, tasks in cluster.items()}
        else:
            raise TypeError(
                "ClusterSpec: `cluster` must be a dict from job names to addresses, or a ClusterSpec, got "
                f"{type(cluster).__name__} {cluster!r}"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in the order in which they were given."""
        return list(self._tasks)

    def as_dict(self) -> dict[str, Any]:
        """Every job with its tasks: a list where the indices run from 0 without a gap, else a dict by index.

        `ClusterSpec(spec.as_dict())` equals `spec`.

        Source: `tf.train.ClusterSpec.as_dict`.
        """
        return {
            job: list(tasks.values()) if tasks and max(tasks) + 1 == len(tasks) else dict(tasks)
            for job, tasks in self._tasks.items()
        }

    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job.

        Raises:
          ValueError: no such job.

        Source: `tf.train.ClusterSpec.num_tasks`.
        """
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, smallest first.

        Raises:
          ValueError: no such job.

        Source: `tf.train.ClusterSpec.task_indices`.
        """
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of one task.

        Raises:
          ValueError: no such job, or no such task.

        Source: `tf.train.ClusterSpec.task_address`.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(
                f"ClusterSpec: No task with index {task_index!r} in job {job_name!r}; its tasks are {list(tasks)}"
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks by index, None where an index is missing.

        Raises:
          ValueError: no such job.

        >>> import distinput as di
        >>> di.distribute.cluster_resolver.ClusterSpec({"ps": {2: "c:3"}}).job_tasks("ps")
        [None, None, 'c:3']

        Source: `tf.train.ClusterSpec.job_tasks`.
        """
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._tasks:
            raise ValueError(f"ClusterSpec: No such job in cluster: {name!r}; its jobs are {self.jobs}")
        return self._tasks[name]

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        return self._tasks == other._tasks if isinstance(other, ClusterSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset((job, frozenset(tasks.items())) for job, tasks in self._tasks.items()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def _job_name(job: object) -> str:
    if not isinstance(job, str):
        raise TypeError(f"ClusterSpec: the name of a job must be a text, got {type(job).__name__} {job!r}")
    return job


def _tasks_of(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        numbered = dict(enumerate(tasks))
    elif isinstance(tasks, Mapping):
        numbered = {_index(job, index): address for index, address in tasks.items()}
        if len(numbered) < len(tasks):
            raise ValueError(f"ClusterSpec: two tasks of job {job!r} have the same index: {list(tasks)}")
    else:
        raise TypeError(
            f"ClusterSpec: The tasks for job {job!r} must be a list or a dictionary from integers to strings, got "
            f"{type(tasks).__name__} {tasks!r}"
        )
    for index, address in numbered.items():
        if not isinstance(address, str):
            raise TypeError(
                f"ClusterSpec: the address of task {index} in job {job!r} must be a text such as 'host:port', got "
                f"{type(address).__name__} {address!r}"
            )
    return dict(sorted(numbered.items()))


def _index(job: str, index: Any) -> int:
    # The keys of JSON are strings: TF_CONFIG writes a task index as {"1": "b:2"}.
    if isinstance(index, str) and index.isascii() and index.isdigit():
        index = int(index)
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"ClusterSpec: a task index in job {job!r} must be an integer, got {index!r}")
    if index < 0:
        raise ValueError(f"ClusterSpec: a task index in job {job!r} must be at least 0, got {index}")
    return operator.index(index)
