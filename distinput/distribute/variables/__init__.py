# SPDX-License-Identifier: Apache-2.0
"""Variables: values that a program changes, with a copy for each replica under a strategy."""

from distinput.distribute.core.replica_reducer import IndexedSlices as IndexedSlices
from distinput.distribute.variables.kinds import AggregatingVariable as AggregatingVariable
from distinput.distribute.variables.kinds import DistributedVariable as DistributedVariable
from distinput.distribute.variables.kinds import MirroredVariable as MirroredVariable
from distinput.distribute.variables.kinds import ResourceVariable as ResourceVariable
from distinput.distribute.variables.kinds import SyncOnReadVariable as SyncOnReadVariable
from distinput.distribute.variables.kinds import create_variable
from distinput.distribute.variables.policy import VariableAggregation as VariableAggregation
from distinput.distribute.variables.policy import VariablePolicy as VariablePolicy
from distinput.distribute.variables.policy import VariableSynchronization as VariableSynchronization
from distinput.distribute.variables.sharded import ShardedVariable as ShardedVariable
from distinput.distribute.variables.store import UPDATES as UPDATES
from distinput.distribute.variables.store import HostStore as HostStore
from distinput.distribute.variables.store import Store as Store
from distinput.distribute.variables.variable import Variable as Variable

Variable._create = create_variable
