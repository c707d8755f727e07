# SPDX-License-Identifier: Apache-2.0
"""Several replicas in one process, with one copy of every variable."""

from collections.abc import Callable, Sequence
from typing import Any

from distinput.distribute.device_name import device_name
from distinput.distribute.devices.choice import chosen_devices
from distinput.distribute.strategy import Strategy
from distinput.distribute.variables.creation import aggregating, single
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.variable import Variable

__all__ = ["CentralStorageStrategy"]


class CentralStorageStrategy(Strategy):
    """Synchronous replicas in this process whose variables live on one device.

    A variable has one value; what replicas write to it must be aggregated. With one replica it is an ordinary variable.

    Args:
      compute_devices: a name for each replica, or device objects of JAX or PyTorch; None for one CPU.
      parameter_device: the device of the variables; None for the only compute device, or the CPU if there are several.
      backend: what the replicas run on; None to choose by the devices, as `MirroredStrategy` does.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
    >>> strategy.num_replicas_in_sync
    2

    Source: `tf.distribute.experimental.CentralStorageStrategy`.
    """

    per_replica_input = "ignored"
    _mirrors = False

    def __init__(
        self,
        compute_devices: Sequence[Any] | None = None,
        parameter_device: str | None = None,
        *,
        backend: str | None = None,
    ) -> None:
        names, backend = chosen_devices(compute_devices, backend, ["CPU:0"])
        super().__init__(names, backend=backend)
        self._parameter_devices = (device_name(parameter_device or (names[0] if len(names) == 1 else "CPU:0")),)

    def _create_variable(
        self, make_value: Callable[[], Any], policy: VariablePolicy, *, name: str, dtype: Any, shape: Any
    ) -> Variable:
        make = single if self._replicas.count == 1 else aggregating
        return make(self, make_value, policy, name, shape)
