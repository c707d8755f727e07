# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute.experimental`."""

from distinput.distribute import coordinator, rpc
from distinput.distribute.communication import (
    CollectiveCommunication,
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)
from distinput.distribute.preemption.handler import PreemptionCheckpointHandler
from distinput.distribute.preemption.termination_config import TerminationConfig
from distinput.distribute.preemption.watcher import PreemptionWatcher
from distinput.distribute.strategies.central_storage import CentralStorageStrategy
from distinput.distribute.strategies.multi_worker_mirrored import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from distinput.distribute.strategies.parameter_server import ParameterServerStrategy
from distinput.distribute.strategies.tpu import ExperimentalTPUStrategy as TPUStrategy
from distinput.distribute.value_context import ValueContext
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
