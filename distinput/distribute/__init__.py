# SPDX-License-Identifier: Apache-2.0
"""Runs one program on many replicas, with the names of `tf.distribute`."""

from functools import partial
from importlib import import_module

from distinput.core.when_imported import when_imported
from distinput.distribute import cluster_resolver, coordinator, experimental
from distinput.distribute.context import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from distinput.distribute.cross_device.all_reduce import HierarchicalCopyAllReduce, NcclAllReduce
from distinput.distribute.cross_device.cross_device_ops import CrossDeviceOps
from distinput.distribute.cross_device.to_one_device import ReductionToOneDevice
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.input_context import InputContext
from distinput.distribute.input.options import InputOptions, InputReplicationMode, RunOptions
from distinput.distribute.input.spec import PerReplicaSpec
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.replica_context import ReplicaContext
from distinput.distribute.server import Server, ServerDef
from distinput.distribute.strategies.central_storage import CentralStorageStrategy
from distinput.distribute.strategies.mirrored import MirroredStrategy
from distinput.distribute.strategies.multi_worker_mirrored import MultiWorkerMirroredStrategy
from distinput.distribute.strategies.one_device import OneDeviceStrategy
from distinput.distribute.strategies.parameter_server import ParameterServerStrategy
from distinput.distribute.strategies.tpu import TPUStrategy
from distinput.distribute.strategy import Strategy
from distinput.distribute.strategy_extended import StrategyExtended
from distinput.distribute.value_context import ValueContext
from distinput.distribute.values import DistributedValues, Mirrored, PerReplica
from distinput.distribute.variables import (
    DistributedVariable,
    IndexedSlices,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

__all__ = [
    "CentralStorageStrategy",
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedDatasetsFromFunction",
    "DistributedIterator",
    "DistributedValues",
    "DistributedVariable",
    "HierarchicalCopyAllReduce",
    "IndexedSlices",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "Mirrored",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "PerReplica",
    "PerReplicaSpec",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Server",
    "ServerDef",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "ValueContext",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "cluster_resolver",
    "coordinator",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

# JAX and PyTorch know no types of ours, whichever is imported first.
when_imported("jax", partial(import_module, "distinput.distribute.devices.pytrees"))
when_imported("torch", partial(import_module, "distinput.distribute.devices.torch_pytrees"))
