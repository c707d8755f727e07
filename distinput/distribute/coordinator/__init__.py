# SPDX-License-Identifier: Apache-2.0
"""Dispatches functions to the workers of a `ParameterServerStrategy`, with the names of `tf.distribute.coordinator`."""

from distinput.distribute.coordinator.closures import RemoteValue
from distinput.distribute.coordinator.coordinator import ClusterCoordinator
from distinput.distribute.coordinator.per_worker import PerWorkerValues
from distinput.distribute.coordinator.worker_seat import experimental_get_current_worker_index

PerWorkerValue = PerWorkerValues
"""The name in `tf.distribute.coordinator`; `PerWorkerValues` is the one in `tf.distribute.experimental.coordinator`."""

__all__ = [
    "ClusterCoordinator",
    "PerWorkerValue",
    "PerWorkerValues",
    "RemoteValue",
    "experimental_get_current_worker_index",
]
