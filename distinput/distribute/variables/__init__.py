# SPDX-License-Identifier: Apache-2.0
"""Variables: values that a program changes, with a copy for each replica under a strategy."""

from distinput.distribute.variables.aggregating_variable import AggregatingVariable
from distinput.distribute.variables.distributed_variable import (
    DistributedVariable,
    MirroredVariable,
    SyncOnReadVariable,
)
from distinput.distribute.variables.indexed_slices import IndexedSlices
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy, VariableSynchronization
from distinput.distribute.variables.resource_variable import ResourceVariable
from distinput.distribute.variables.sharded import ShardedVariable
from distinput.distribute.variables.store import HostStore, Store
from distinput.distribute.variables.updates import UPDATES
from distinput.distribute.variables.variable import Variable

__all__ = [
    "UPDATES",
    "AggregatingVariable",
    "DistributedVariable",
    "HostStore",
    "IndexedSlices",
    "MirroredVariable",
    "ResourceVariable",
    "ShardedVariable",
    "Store",
    "SyncOnReadVariable",
    "Variable",
    "VariableAggregation",
    "VariablePolicy",
    "VariableSynchronization",
]
