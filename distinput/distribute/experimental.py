# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute.experimental`."""

from distinput.distribute import coordinator, rpc
from distinput.distribute.collectives.strategy import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.core.mirrored import CentralStorageStrategy
from distinput.distribute.core.options import (
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)
from distinput.distribute.core.replica_context import ValueContext
from distinput.distribute.preemption.handler import PreemptionCheckpointHandler, TerminationConfig
from distinput.distribute.preemption.notice import PreemptionWatcher
from distinput.distribute.tpu.strategy import ExperimentalTPUStrategy as TPUStrategy
from distinput.distribute.variables import partitioners

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "PreemptionCheckpointHandler",
    "PreemptionWatcher",
    "TPUStrategy",
    "TerminationConfig",
    "ValueContext",
    "coordinator",
    "partitioners",
    "rpc",
]
