# SPDX-License-Identifier: Apache-2.0
"""Runs one program on many replicas, with the names of `tf.distribute`."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from distinput.names.registry import files_of, when_imported

if TYPE_CHECKING:
    from distinput.distribute import cluster_resolver, coordinator, experimental
    from distinput.distribute.collectives.strategy import MultiWorkerMirroredStrategy
    from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
    from distinput.distribute.core.cross_device import (
        CrossDeviceOps,
        HierarchicalCopyAllReduce,
        NcclAllReduce,
        ReductionToOneDevice,
    )
    from distinput.distribute.core.current import (
        experimental_set_strategy,
        get_replica_context,
        get_strategy,
        has_strategy,
        in_cross_replica_context,
    )
    from distinput.distribute.core.extended import StrategyExtended
    from distinput.distribute.core.mirrored import CentralStorageStrategy, MirroredStrategy
    from distinput.distribute.core.one_device import OneDeviceStrategy
    from distinput.distribute.core.options import InputContext, InputOptions, InputReplicationMode, RunOptions
    from distinput.distribute.core.reduction import ReduceOp
    from distinput.distribute.core.replica_context import ReplicaContext, ValueContext
    from distinput.distribute.core.sliced import IndexedSlices
    from distinput.distribute.core.strategy import Strategy
    from distinput.distribute.core.values import DistributedValues, Mirrored, PerReplica
    from distinput.distribute.input.dealing import PerReplicaSpec
    from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
    from distinput.distribute.input.distributed_iterator import DistributedIterator
    from distinput.distribute.server import Server, ServerDef
    from distinput.distribute.tpu.strategy import TPUStrategy
    from distinput.distribute.variables import (
        DistributedVariable,
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

_LAZY = {
    name: module
    for module, names in {
        "core.cross_device": "CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce ReductionToOneDevice",
        "core.current": "experimental_set_strategy get_replica_context get_strategy has_strategy in_cross_replica_context",
        "core.extended": "StrategyExtended",
        "core.mirrored": "CentralStorageStrategy MirroredStrategy",
        "core.one_device": "OneDeviceStrategy",
        "core.options": "InputContext InputOptions InputReplicationMode RunOptions",
        "core.reduction": "ReduceOp",
        "core.replica_context": "ReplicaContext ValueContext",
        "core.strategy": "Strategy",
        "core.values": "DistributedValues Mirrored PerReplica",
        "collectives.strategy": "MultiWorkerMirroredStrategy",
        "coordinator.parameter_server": "ParameterServerStrategy",
        "input.distributed_dataset": "DistributedDataset DistributedDatasetsFromFunction",
        "input.distributed_iterator": "DistributedIterator",
        "input.dealing": "PerReplicaSpec",
        "server": "Server ServerDef",
        "core.sliced": "IndexedSlices",
        "tpu.strategy": "TPUStrategy",
        "variables": "DistributedVariable Variable VariableAggregation VariableSynchronization",
    }.items()
    for name in names.split()
}
"""Names and the modules that have them, loaded when they are first named."""

if not TYPE_CHECKING:  # which would take every name for one that is there
    _file_named = files_of(__name__)

    def __getattr__(name: str) -> Any:
        """A name of the table, or a module or room of this package, loaded when it is first named."""
        if name not in _LAZY:
            return _file_named(name)
        globals()[name] = value = getattr(import_module(f"distinput.distribute.{_LAZY[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# JAX and PyTorch know no types of ours, whichever is imported first.
when_imported("jax", partial(import_module, "distinput.distribute.devices.pytrees"))
when_imported("torch", partial(import_module, "distinput.distribute.devices.torch_pytrees"))
