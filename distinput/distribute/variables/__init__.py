# SPDX-License-Identifier: Apache-2.0
"""Variables: values that a program changes, with a copy for each replica under a strategy."""

from distinput.distribute.core.replica_reducer import IndexedSlices
from distinput.distribute.variables.kinds import (
    AggregatingVariable,
    DistributedVariable,
    MirroredVariable,
    ResourceVariable,
    SyncOnReadVariable,
    create_variable,
)
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy, VariableSynchronization
from distinput.distribute.variables.sharded import ShardedVariable
from distinput.distribute.variables.store import UPDATES, HostStore, Store
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

Variable._create = create_variable
