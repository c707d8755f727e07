# SPDX-License-Identifier: Apache-2.0
"""Runs one program on many replicas, with the names of `tf.distribute`."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from distinput.names.lazy import lazy, when_imported

if TYPE_CHECKING:
    from distinput.distribute import cluster_resolver as cluster_resolver
    from distinput.distribute import coordinator as coordinator
    from distinput.distribute import experimental as experimental
    from distinput.distribute.collectives.multi_worker_strategy import (
        MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )
    from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy as ParameterServerStrategy
    from distinput.distribute.core.array_arithmetic import ReduceOp as ReduceOp
    from distinput.distribute.core.contexts import ReplicaContext as ReplicaContext
    from distinput.distribute.core.contexts import ValueContext as ValueContext
    from distinput.distribute.core.current import experimental_set_strategy as experimental_set_strategy
    from distinput.distribute.core.current import get_replica_context as get_replica_context
    from distinput.distribute.core.current import get_strategy as get_strategy
    from distinput.distribute.core.current import has_strategy as has_strategy
    from distinput.distribute.core.current import in_cross_replica_context as in_cross_replica_context
    from distinput.distribute.core.mirrored import CentralStorageStrategy as CentralStorageStrategy
    from distinput.distribute.core.mirrored import CrossDeviceOps as CrossDeviceOps
    from distinput.distribute.core.mirrored import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
    from distinput.distribute.core.mirrored import MirroredStrategy as MirroredStrategy
    from distinput.distribute.core.mirrored import NcclAllReduce as NcclAllReduce
    from distinput.distribute.core.mirrored import ReductionToOneDevice as ReductionToOneDevice
    from distinput.distribute.core.one_device import OneDeviceStrategy as OneDeviceStrategy
    from distinput.distribute.core.options import InputContext as InputContext
    from distinput.distribute.core.options import InputOptions as InputOptions
    from distinput.distribute.core.options import InputReplicationMode as InputReplicationMode
    from distinput.distribute.core.options import RunOptions as RunOptions
    from distinput.distribute.core.replica_reducer import IndexedSlices as IndexedSlices
    from distinput.distribute.core.strategy import Strategy as Strategy
    from distinput.distribute.core.strategy import StrategyExtended as StrategyExtended
    from distinput.distribute.core.values import DistributedValues as DistributedValues
    from distinput.distribute.core.values import Mirrored as Mirrored
    from distinput.distribute.core.values import PerReplica as PerReplica
    from distinput.distribute.input.dealing import PerReplicaSpec as PerReplicaSpec
    from distinput.distribute.input.distributed_dataset import DistributedDataset as DistributedDataset
    from distinput.distribute.input.distributed_dataset import (
        DistributedDatasetsFromFunction as DistributedDatasetsFromFunction,
    )
    from distinput.distribute.input.distributed_dataset import DistributedIterator as DistributedIterator
    from distinput.distribute.seats.local_cluster import Server as Server
    from distinput.distribute.seats.local_cluster import ServerDef as ServerDef
    from distinput.distribute.tpu.strategy import TPUStrategy as TPUStrategy
    from distinput.distribute.variables import DistributedVariable as DistributedVariable
    from distinput.distribute.variables import Variable as Variable
    from distinput.distribute.variables import VariableAggregation as VariableAggregation
    from distinput.distribute.variables import VariableSynchronization as VariableSynchronization
else:
    __getattr__, __dir__, __all__ = lazy(__name__)

# JAX and PyTorch know no types of ours, whichever is imported first.
when_imported("jax", partial(import_module, "distinput.distribute.devices.pytrees"))
when_imported("torch", partial(import_module, "distinput.distribute.devices.torch_pytrees"))
