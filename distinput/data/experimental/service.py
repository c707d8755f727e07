# SPDX-License-Identifier: Apache-2.0
"""`distinput.data.experimental.service`: TensorFlow's names for `Dataset.on_workers`."""

import enum
from collections.abc import Callable
from typing import Any

from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.names.lazy import lazy
from distinput.ops.on_workers import OnWorkers
from distinput.ops.shard import Shard
from distinput.plan.node import INFINITE, walk
from distinput.plan.options import AutoShardPolicy
from distinput.sharding.own_rows import auto_shard

__getattr__, __dir__, __all__ = lazy(__name__, own=("ShardingPolicy", "distribute"))


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
      job_name: must be None. Programs do not share the elements of a job.
      consumer_index: must be None. Consumers take no turns.
      num_consumers: must be None.
      max_outstanding_requests: as for `on_workers`; -1 is None.
      data_transfer_protocol: changes nothing: the cluster's is used.
      compression: changes nothing: "AUTO", "SNAPPY" or None.
      cross_trainer_cache: must be None.
      target_workers: "AUTO" or "ANY", which change nothing.

    Raises:
      InvalidArgumentError: an argument has none of these values, or `service` names no workers.
      UnimplementedError: an argument that must be None is given, or `target_workers` is "LOCAL"; or each worker is to deliver
        all of a dataset that may end, and `service` does not tell how many workers there are. The message says what to write.

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
    if target_workers not in ("AUTO", "ANY", "LOCAL"):
        raise InvalidArgumentError(f"distribute: target_workers must be 'AUTO' or 'ANY', got {target_workers!r}")
    if job_name is not None and (not isinstance(job_name, str) or not job_name):
        raise InvalidArgumentError(f"distribute: job_name must be None, got {job_name!r}")
    if target_workers == "LOCAL":
        raise UnimplementedError(
            "distribute: target_workers='LOCAL' delivers what the workers of this process have; write service='threads:4' to "
            "run functions in this process"
        )
    if job_name is not None:
        raise UnimplementedError(
            f"distribute: job_name={job_name!r} lets programs share the elements of a job, and here each program gets all of "
            "them; leave it out where one program reads, and where several do, let a strategy divide the dataset, or "
            "dataset.shard(num_shards, index)"
        )
    if consumer_index is not None or num_consumers is not None:
        raise UnimplementedError(
            "distribute: consumer_index and num_consumers let consumers take turns; leave them out and let a strategy cut each "
            "batch for its replicas, so that all have rows of one bucket in a step"
        )
    if cross_trainer_cache is not None:
        raise UnimplementedError(
            "distribute: cross_trainer_cache shares what was made between programs that run at the same time; leave it out and "
            "write dataset.cache(filename), which processes share"
        )
    named = "://".join(service) if isinstance(service, tuple) and all(isinstance(x, str) for x in service) else service
    most = None if max_outstanding_requests == -1 else max_outstanding_requests
    return lambda dataset: _distributed(dataset, policy, named, most)


def _distributed(dataset: Dataset[Any], policy: ShardingPolicy, service: Any, most: int | None) -> Dataset[Any]:
    each = policy is ShardingPolicy.OFF  # worker delivers all
    if policy is ShardingPolicy.HINT:
        each = not any(isinstance(step, Shard) and step.is_hint for step in walk(dataset.node))
        dataset = Dataset(auto_shard(dataset.node, 1, 0, policy=AutoShardPolicy.HINT))
    node = OnWorkers(dataset.node, service, most)
    if not each or node.cardinality == INFINITE:
        return Dataset(node)
    kind, count = node.workers
    if kind == "service":
        raise UnimplementedError(
            f"distribute: {policy.name} delivers each element once for each worker here, and how many workers a cluster has "
            "changes; write ShardingPolicy.DYNAMIC for each element once, or dataset.on_workers(service).repeat(n) for n times"
        )
    return Dataset(node).repeat(count)
