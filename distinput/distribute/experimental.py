# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute.experimental`."""

from distinput.distribute.strategies.central_storage import CentralStorageStrategy
from distinput.distribute.strategies.multi_worker_mirrored import CommunicationOptions, MultiWorkerMirroredStrategy
from distinput.distribute.value_context import ValueContext

__all__ = ["CentralStorageStrategy", "CommunicationOptions", "MultiWorkerMirroredStrategy", "ValueContext"]
