# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.tpu.experimental`: frozen views of the devices that JAX has."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.tpu.device_assignment import DeviceAssignment as DeviceAssignment
    from distinput.tpu.device_assignment import DeviceOrderMode as DeviceOrderMode
    from distinput.tpu.system import TPUSystemMetadata as TPUSystemMetadata
    from distinput.tpu.system import initialize_tpu_system as initialize_tpu_system
    from distinput.tpu.system import shutdown_tpu_system as shutdown_tpu_system
    from distinput.tpu.topology import HardwareFeature as HardwareFeature
    from distinput.tpu.topology import Topology as Topology
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
