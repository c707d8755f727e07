# SPDX-License-Identifier: Apache-2.0
"""Runs one program on many replicas, with the names of `tf.distribute`."""

from distinput.distribute import cluster_resolver, experimental
from distinput.distribute.context import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.input_context import InputContext
from distinput.distribute.input.options import InputOptions, InputReplicationMode, RunOptions
from distinput.distribute.input.spec import PerReplicaSpec
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.replica_context import ReplicaContext
from distinput.distribute.strategies.central_storage import CentralStorageStrategy
from distinput.distribute.strategies.mirrored import MirroredStrategy
from distinput.distribute.strategies.multi_worker_mirrored import MultiWorkerMirroredStrategy
from distinput.distribute.strategies.one_device import OneDeviceStrategy
from distinput.distribute.strategy import Strategy
from distinput.distribute.strategy_extended import StrategyExtended
from distinput.distribute.value_context import ValueContext
from distinput.distribute.values import DistributedValues, Mirrored, PerReplica

__all__ = [
    "CentralStorageStrategy",
    "DistributedDataset",
    "DistributedDatasetsFromFunction",
    "DistributedIterator",
    "DistributedValues",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "Mirrored",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy",
    "PerReplica",
    "PerReplicaSpec",
    "ReduceOp",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "ValueContext",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
