# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.tpu.experimental`: frozen views of the devices that JAX has."""

from typing import TYPE_CHECKING, Any

from distinput.tpu.device_assignment import DeviceAssignment, DeviceOrderMode
from distinput.tpu.system import TPUSystemMetadata, initialize_tpu_system, shutdown_tpu_system
from distinput.tpu.topology import HardwareFeature, Topology

__all__ = [
    "DeviceAssignment",
    "DeviceOrderMode",
    "HardwareFeature",
    "TPUSystemMetadata",
    "Topology",
    "initialize_tpu_system",
    "shutdown_tpu_system",
]

if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        raise AttributeError(_absent(name))


def _absent(name: str) -> str:
    from distinput.names.absent import absent  # for messages only

    return absent(__name__, name, __all__)
