# SPDX-License-Identifier: Apache-2.0
"""`distinput.data.experimental.service`: TensorFlow's names for `Dataset.on_workers`."""

import enum
from collections.abc import Callable
from typing import Any

from distinput.cluster.input_service import is_service
from distinput.data.dataset import Dataset
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from distinput.names.lazy import lazy
from distinput.ops.first_come import FirstCome
from distinput.ops.on_workers import OncePerWorker, OnWorkers
from distinput.ops.shard import Shard
from distinput.plan.check import at_least
from distinput.plan.node import INFINITE, walk
from distinput.plan.options import AutoShardPolicy, Options
from distinput.sharding.policies import auto_shard

__getattr__, __dir__, __all__ = lazy(__name__, own=("CrossTrainerCache", "ShardingPolicy", "distribute"))


class ShardingPolicy(enum.IntEnum):
    """How input workers divide a dataset; `tf.data.experimental.service.ShardingPolicy`.

    OFF: each worker delivers every element. DYNAMIC, FILE, DATA and FILE_OR_DATA are one here: each element comes once, in the
    order without workers. So it does for HINT, if the pipeline says `shard(SHARD_HINT, SHARD_HINT)`; if not, HINT is OFF.
    """

    OFF = 0
    DYNAMIC = 1
    FILE = 2
    DATA = 3
    FILE_OR_DATA = 4
    HINT = 5


class CrossTrainerCache:
    """Lets jobs that send the same pieces to one cluster share the results; `tf.data.experimental.service.CrossTrainerCache`.

    Jobs with the same pipeline do so while they are at about the same place. A piece that no job holds any more is made again,
    so none waits for another one, and each gets all elements, in the order without sharing. Jobs share whatever their ids are.

    Args:
      trainer_id: what TensorFlow tells jobs apart by; not empty.
      max_bytes: of results that a job holds at the workers for those behind it.

    Raises:
      InvalidArgumentError: `trainer_id` is empty, or `max_bytes` is less than 1.

    >>> from distinput.data.experimental import service
    >>> service.CrossTrainerCache("trainer 7").max_bytes
    268435456
    """

    def __init__(self, trainer_id: Any, max_bytes: int = 256 << 20) -> None:
        if not trainer_id:
            raise InvalidArgumentError(f"CrossTrainerCache: trainer_id must not be empty, got {trainer_id!r}")
        self.trainer_id, self.max_bytes = trainer_id, at_least("CrossTrainerCache", "max_bytes", max_bytes, 1)


_MODES = {"parallel_epochs": ShardingPolicy.OFF, "distributed_epoch": ShardingPolicy.DYNAMIC}


def distribute(
    processing_mode: ShardingPolicy | str,
    service: Any,
    job_name: str | None = None,
    consumer_index: int | None = None,
    num_consumers: int | None = None,
    max_outstanding_requests: int | None = None,
    data_transfer_protocol: str | None = None,  # noqa: ARG001 - TensorFlow's
    compression: str | None = "AUTO",
    cross_trainer_cache: Any = None,
    target_workers: str = "AUTO",
) -> Callable[[Dataset[Any]], Dataset[Any]]:
    """`Dataset.on_workers`, for `apply`: exact order and states, where TensorFlow has neither.

    Args:
      processing_mode: a `ShardingPolicy`; "distributed_epoch" is DYNAMIC, "parallel_epochs" is OFF.
      service: as for `on_workers`, or a pair of protocol and address, such as ("tcp", "10.0.0.5:8786").
      job_name: each element of a pass goes to one of the consumers that name the job, the one that asks first; at one Dask
        cluster, or one executor in a program. With `num_consumers` or `cross_trainer_cache`, only a name.
      consumer_index: which of the consumers this one is, from 0. It gets each `num_consumers`-th element from there on, so in
        each step all consumers together have that many neighbours of one endless stream.
      num_consumers: how many consumers there are. Consumers of one cluster share what was made, as with `cross_trainer_cache`.
      max_outstanding_requests: as for `on_workers`; -1 is None.
      data_transfer_protocol: changes nothing: the cluster's is used.
      compression: changes nothing: "AUTO", "SNAPPY" or None.
      cross_trainer_cache: a `CrossTrainerCache`: jobs share what was made, at a cluster or executor that all of them name.
      target_workers: as for `on_workers`.

    Raises:
      InvalidArgumentError: an argument has none of these values, `service` names no workers, or jobs are to share what is made
        by "threads:N" or "processes:N", or consumers of one job.
      FailedPreconditionError: consumers are to take turns with a dataset that may end.
      UnimplementedError: `target_workers` is "LOCAL"; or at iteration, `job_name` is given alone at Ray. The message says what
        to write.

    >>> import distinput as di
    >>> from distinput.data.experimental import service
    >>> squares = di.data.Dataset.range(4).map(lambda x: x * x)
    >>> squares.apply(service.distribute("distributed_epoch", "threads:2")).to_list()
    [0, 1, 4, 9]
    >>> squares.apply(service.distribute(service.ShardingPolicy.OFF, "threads:2")).to_list()
    [0, 1, 4, 9, 0, 1, 4, 9]

    Source: `tf.data.experimental.service.distribute`.
    """
    policy = _MODES.get(processing_mode) if isinstance(processing_mode, str) else processing_mode
    if not isinstance(policy, ShardingPolicy):
        raise InvalidArgumentError(
            f"distribute: processing_mode must be a ShardingPolicy, 'parallel_epochs' or 'distributed_epoch', got "
            f"{processing_mode!r}"
        )
    if compression not in ("AUTO", "SNAPPY", None):
        raise InvalidArgumentError(f"distribute: compression must be 'AUTO', 'SNAPPY' or None, got {compression!r}")
    if job_name is not None and (not isinstance(job_name, str) or not job_name):
        raise InvalidArgumentError(f"distribute: job_name must be a name or None, got {job_name!r}")
    if target_workers == "LOCAL":
        raise UnimplementedError(
            "distribute: target_workers='LOCAL' delivers what the workers of this process have; write service='threads:4' to "
            "run functions in this process"
        )
    turns = None
    if consumer_index is not None or num_consumers is not None:
        if consumer_index is None or num_consumers is None or job_name is None:
            raise InvalidArgumentError(
                "distribute: `consumer_index`, `num_consumers` and `job_name` must be set together, got "
                f"{consumer_index!r}, {num_consumers!r} and {job_name!r}"
            )
        turns = num_consumers, consumer_index
    if not isinstance(cross_trainer_cache, CrossTrainerCache | None):
        raise InvalidArgumentError(
            f"distribute: cross_trainer_cache must be a CrossTrainerCache or None, got {cross_trainer_cache!r}"
        )
    named = "://".join(service) if isinstance(service, tuple) and all(isinstance(x, str) for x in service) else service
    most = None if max_outstanding_requests == -1 else max_outstanding_requests
    first_come = job_name if cross_trainer_cache is None and not turns else None
    if job_name is not None and cross_trainer_cache is None and is_service(named):
        cross_trainer_cache = CrossTrainerCache(job_name)
    shared = 0 if cross_trainer_cache is None else cross_trainer_cache.max_bytes
    return lambda dataset: _distributed(dataset, policy, turns, first_come, named, most, shared, target_workers)


def _distributed(
    dataset: Dataset[Any],
    policy: ShardingPolicy,
    turns: tuple[int, int] | None,
    job: str | None,
    service: Any,
    *given: Any,
) -> Dataset[Any]:
    in_full = policy is ShardingPolicy.OFF  # every worker delivers all elements
    if policy is ShardingPolicy.HINT:
        in_full = not any(isinstance(step, Shard) and step.is_hint for step in walk(dataset.node))
        dataset = Dataset(auto_shard(dataset.node, 1, 0, policy=AutoShardPolicy.HINT))
    node = OnWorkers(dataset.node, service, *given)
    if turns is not None:
        part = Dataset(node).shard(*turns)
        if node.cardinality != INFINITE:
            raise FailedPreconditionError(
                "distribute: consumers that take turns need a dataset without end, or some would have a step more; this has "
                f"cardinality {node.cardinality}; write repeat() at its end, or before a step that nobody can count"
            )
        return part.with_options(_divided_already())
    passes: Dataset[Any] = Dataset(node)
    if in_full and node.cardinality != INFINITE:
        passes = passes.repeat(node.workers[1]) if node.workers[1] else Dataset(OncePerWorker(node, service))
    return passes if job is None else Dataset(FirstCome(passes.node, service, job)).with_options(_divided_already())


def _divided_already() -> Options:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    return options
