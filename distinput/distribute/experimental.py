# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute.experimental`."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.distribute import coordinator as coordinator
    from distinput.distribute import rpc as rpc
    from distinput.distribute.collectives.multi_worker_strategy import ExperimentalMultiWorkerMirroredStrategy
    from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy as ParameterServerStrategy
    from distinput.distribute.core.contexts import ValueContext as ValueContext
    from distinput.distribute.core.mirrored import CentralStorageStrategy as CentralStorageStrategy
    from distinput.distribute.core.options import CollectiveCommunication as CollectiveCommunication
    from distinput.distribute.core.options import CollectiveHints as CollectiveHints
    from distinput.distribute.core.options import CommunicationImplementation as CommunicationImplementation
    from distinput.distribute.core.options import CommunicationOptions as CommunicationOptions
    from distinput.distribute.preemption import PreemptionCheckpointHandler as PreemptionCheckpointHandler
    from distinput.distribute.preemption import PreemptionWatcher as PreemptionWatcher
    from distinput.distribute.preemption import TerminationConfig as TerminationConfig
    from distinput.distribute.tpu.strategy import ExperimentalTPUStrategy
    from distinput.distribute.variables import partitioners as partitioners

    MultiWorkerMirroredStrategy = ExperimentalMultiWorkerMirroredStrategy
    TPUStrategy = ExperimentalTPUStrategy
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
